package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/brownout-go/breaker"
	"github.com/brownout-go/breaker/examples/docs/internal/manual"
)

// traffic is independent calls at a mean rate through a breaker.
type traffic struct {
	clock   *manual.Clock
	breaker *breaker.Breaker
	random  *rand.Rand
	rate    float64 // a second
	calls   int     // admitted
	closed  bool    // before the last call
}

func newTraffic(s breaker.Settings, rate float64, seed uint64) *traffic {
	clock := new(manual.Clock)
	s.Clock = clock
	random := rand.New(rand.NewPCG(seed, 0))
	s.Random = random.Float64
	return &traffic{clock: clock, breaker: breaker.MustNew(s), random: random, rate: rate, closed: true}
}

// call makes the next call, which fails by chance, and reports whether it opened a closed circuit.
func (t *traffic) call(failing float64) (opened bool) {
	t.clock.Advance(t.gap())
	failed := t.random.Float64() < failing
	p, err := t.breaker.TryAcquire(context.Background())
	if err != nil {
		return false
	}
	t.calls++
	wasClosed := t.breaker.State() == breaker.Closed
	if failed {
		p.Record(breaker.Transient)
	} else {
		p.Record(breaker.Success)
	}
	return wasClosed && t.breaker.State() == breaker.Open
}

func (t *traffic) gap() time.Duration {
	return time.Duration(t.random.ExpFloat64() * float64(time.Second) / t.rate)
}

func (t *traffic) elapsed() time.Duration { return t.clock.Since(time.Unix(0, 0)) }

// weather tells which part of the calls fails at a time that never goes back.
type weather func(*rand.Rand, time.Duration) float64

func always(failing float64) weather {
	return func(*rand.Rand, time.Duration) float64 { return failing }
}

// opens counts how often the circuit opens.
func (t *traffic) opens(length time.Duration, failing weather) (n int) {
	for t.elapsed() < length {
		if t.call(failing(t.random, t.elapsed())) {
			n++
		}
	}
	return n
}

// detections returns the median number of calls until a breaker notices a change for the worse, and the part of the runs in which
// it does not within five minutes.
func detections(s breaker.Settings, rate, from, to float64, runs int) (median string, missed float64) {
	const normally, noticed = 10 * time.Minute, 5 * time.Minute
	var calls []int
	for seed := uint64(0); len(calls) < runs; seed++ {
		t := newTraffic(s, rate, seed)
		t.opens(normally, always(from))
		if t.breaker.State() != breaker.Closed {
			continue
		}
		t.calls = 0
		for t.elapsed() < normally+noticed && !t.call(to) {
		}
		if t.breaker.State() == breaker.Closed {
			missed += 1 / float64(runs)
			t.calls = never
		}
		calls = append(calls, t.calls)
	}
	slices.Sort(calls)
	if calls[runs/2] == never {
		return "never", missed
	}
	return fmt.Sprint(calls[runs/2]), missed
}

const never = 1 << 40

// burst is a dependency in two states that follow each other by chance (a Markov-modulated rate).
type burst struct {
	every, lasting time.Duration // mean time from one to the next, and mean length; 0: no bursts
	failing        float64       // in a burst
}

const calm = 0.01

func burstiness() []burst {
	return []burst{
		{0, 0, calm},
		{time.Minute, time.Second, 0.1},
		{time.Minute, time.Second, 0.5},
		{10 * time.Minute, 10 * time.Second, 0.03},
		{10 * time.Minute, 10 * time.Second, 0.05},
		{10 * time.Minute, 10 * time.Second, 0.1},
		{time.Hour, time.Minute, 0.03},
		{time.Hour, time.Minute, 0.05},
		{time.Hour, time.Minute, 0.1},
	}
}

func (b burst) String() string {
	if b.every == 0 {
		return "none"
	}
	return fmt.Sprintf("%v of %.0f %% every %v", b.lasting, 100*b.failing, b.every)
}

// weather draws when bursts begin and end.
func (b burst) weather() weather {
	if b.every == 0 {
		return always(calm)
	}
	bursting, until := false, time.Duration(0)
	return func(r *rand.Rand, now time.Duration) float64 {
		for now >= until {
			bursting = !bursting && until > 0
			length := b.every - b.lasting
			if bursting {
				length = b.lasting
			}
			until += time.Duration(r.ExpFloat64() * float64(length))
		}
		if bursting {
			return b.failing
		}
		return calm
	}
}
