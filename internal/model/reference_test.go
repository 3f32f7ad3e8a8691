package model_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/brownout-go/breaker"
	"github.com/brownout-go/breaker/internal/model"
)

// TestModelReproducesReferenceExperiment checks the model by itself: the published figures of the ramp experiment come out.
func TestModelReproducesReferenceExperiment(t *testing.T) {
	assert.Equal(t, 8250, successesAfterOutage(breaker.Recovery{Fraction: 0.25}), "with a ramp")
	assert.Equal(t, 3002, successesAfterOutage(breaker.Recovery{Off: true}), "without")
}

// experiment is a dependency that fails wholly for a while, comes back at a twentieth of its capacity and is easily overrun.
type experiment struct {
	model    *model.Model
	now      time.Duration
	capacity float64
	good     int // successes since the dependency came back
}

const (
	calls      = 20 // offered in each step
	outage     = 100
	back       = 150
	lastStep   = 600
	stepLength = 100 * time.Millisecond
	healthy    = 10 * time.Millisecond
)

func successesAfterOutage(ramp breaker.Recovery) int {
	s := breaker.Classic()
	s.BreakDuration, s.BreakJitter, s.Recovery = 5*time.Second, breaker.JitterNone, ramp
	e := experiment{capacity: calls, model: model.New(s, birth)}
	for range 30 {
		e.offer(breaker.Success, healthy)
		e.offer(breaker.Success, healthy)
		e.now += stepLength
	}
	for i := range lastStep {
		e.step(i)
		e.now += stepLength
	}
	return e.good
}

func (e *experiment) step(i int) {
	switch i {
	case outage:
		e.capacity = 0
	case back:
		e.capacity = 1
	}
	start, limit, admitted := e.capacity, max(e.capacity, 1), 0
	for range calls {
		k := float64(admitted + 1)
		o, latency := breaker.Success, time.Duration(float64(healthy)*calls/limit*max(1, k/limit))
		if i >= outage && i < back || k > 3*limit {
			o, latency = breaker.Transient, healthy
		}
		if e.offer(o, latency) {
			admitted++
			if o == breaker.Success && i >= back {
				e.good++
			}
		}
	}
	if i < outage || i >= back {
		e.recover(start, admitted)
	}
}

// recover moves the capacity on: down where it was overrun, else up, and faster while it is used.
func (e *experiment) recover(start float64, admitted int) {
	switch {
	case admitted > 2*max(int(start), 1):
		e.capacity = max(1, e.capacity-1)
	case admitted == 0:
		e.capacity = min(calls, e.capacity+0.05)
	default:
		e.capacity = min(calls, e.capacity+0.2)
	}
}

func (e *experiment) offer(o breaker.Outcome, latency time.Duration) bool {
	r := model.Reading{Raw: e.now, After: e.now, Seen: true}
	p, refusal := e.model.Admit(r, func() {})
	if refusal != nil {
		return false
	}
	return e.model.End(p, model.Report{Outcome: o, Measured: true, Latency: latency}, r)
}

// TestModelRoundsLatencyUp checks the bounds of histogram counters that the specification states or implies.
func TestModelRoundsLatencyUp(t *testing.T) {
	for latency, bound := range map[time.Duration]time.Duration{
		0:                     time.Microsecond,
		999:                   time.Microsecond,
		7 * time.Microsecond:  8 * time.Microsecond,
		8 * time.Microsecond:  9 * time.Microsecond,
		15 * time.Microsecond: 16 * time.Microsecond,
		16 * time.Microsecond: 18 * time.Microsecond,
		10 * time.Millisecond: 10_240 * time.Microsecond,
		14 * time.Minute:      13 << 26 * time.Microsecond,
		math.MaxInt64:         math.MaxInt64,
	} {
		m := model.New(breaker.Settings{SlowCalls: breaker.SlowCalls{MinSamples: 1}}, birth)
		e := experiment{model: m}
		e.offer(breaker.Success, latency)
		assert.Equal(t, bound, m.Snapshot().NormalLatency, "a latency of %v", latency)
	}
}
