package main

import (
	"context"
	"time"

	"github.com/brownout-go/breaker"
	"github.com/brownout-go/breaker/examples/docs/internal/manual"
)

// The reference experiment: a dependency that comes back cold. It has little capacity at first, regains it while it is used
// gently, and loses it again when it is overrun.
const (
	stepLength = 100 * time.Millisecond
	steps      = 600 // after the prelude
	offered    = 20  // calls in a step, and the full capacity
	down, back = 100, 150
	normal     = 10 * time.Millisecond // latency of a call that the dependency has room for
)

// step is what became of the calls of 100 ms.
type step struct {
	served, failed, refused int
	capacity                float64 // at its end; 0 while the dependency is down
	state                   breaker.State
}

type experiment struct {
	clock    *manual.Clock
	breaker  *breaker.Breaker
	capacity float64
}

// run sends the same load through a breaker with these settings.
func run(s breaker.Settings) []step {
	c := new(manual.Clock)
	s.Clock = c
	s.BreakDuration = 5 * time.Second
	s.BreakJitter = breaker.JitterNone
	e := experiment{c, breaker.MustNew(s), offered}
	for range 30 {
		for range 2 {
			e.call(breaker.Success, normal)
		}
		c.Advance(stepLength)
	}
	var series []step
	for n := range steps {
		switch {
		case n == back:
			e.capacity = 1
		case n >= down && n < back:
			e.capacity = 0
		}
		series = append(series, e.step(n >= down && n < back))
		c.Advance(stepLength)
	}
	return series
}

// call asks for admission and records what the dependency would answer. It reports whether the call was admitted.
func (e *experiment) call(o breaker.Outcome, latency time.Duration) bool {
	p, err := e.breaker.TryAcquire(context.Background())
	if err != nil {
		return false
	}
	p.RecordLatency(o, latency)
	return true
}

// step offers the calls of one step, all at once.
func (e *experiment) step(isDown bool) (s step) {
	limit := max(e.capacity, 1)
	admitted := 0
	for range offered {
		o, latency := answer(float64(admitted+1), limit)
		switch {
		case !e.call(o, latency):
			s.refused++
			continue
		case o == breaker.Success:
			s.served++
		default:
			s.failed++
		}
		admitted++
	}
	if !isDown {
		e.warm(admitted)
	}
	s.capacity, s.state = e.capacity, e.breaker.State()
	return s
}

// answer is what the k-th call of a step meets.
func answer(k, limit float64) (breaker.Outcome, time.Duration) {
	latency := normal.Seconds() * offered / limit
	switch {
	case k > 3*limit:
		return breaker.Transient, normal
	case k > limit:
		latency *= k / limit
	}
	return breaker.Success, time.Duration(latency * float64(time.Second))
}

// warm moves the capacity on after a step.
func (e *experiment) warm(admitted int) {
	switch {
	case admitted > 2*max(int(e.capacity), 1):
		e.capacity = max(1, e.capacity-1)
	case admitted == 0:
		e.capacity = min(offered, e.capacity+0.05)
	default:
		e.capacity = min(offered, e.capacity+0.2)
	}
}

// served counts the successes from the moment the dependency is back.
func served(series []step) (n int) {
	for _, s := range series[back:] {
		n += s.served
	}
	return n
}
