package breaker_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/brownout-go/breaker"
)

// offer makes n calls that succeed with a latency where they are admitted, and returns how many were.
func (d *driven) offer(n int, latency time.Duration) (admitted int) {
	d.t.Helper()
	for range n {
		if p, err := d.TryAcquire(d.t.Context()); err == nil {
			p.RecordLatency(success, latency)
			admitted++
		}
	}
	return admitted
}

func TestRecoveringAdmitsAGrowingFraction(t *testing.T) {
	d := drive(t, ramped)
	d.recovering()
	assert.Equal(t, 0.1, d.Snapshot().AdmittedFraction)
	for _, step := range []struct {
		fraction float64
		admitted int // of 100
	}{
		{0.325, 32}, {0.55, 55}, {0.775, 78},
	} {
		d.clock.Add(2500 * time.Millisecond)
		assert.InDelta(t, step.fraction, d.Snapshot().AdmittedFraction, 1e-9)
		assert.InDelta(t, step.admitted, d.offer(100, 0), 1)
		d.requireState(breaker.Recovering)
	}
	d.clock.Add(2500*time.Millisecond - 1)
	assert.Less(t, d.Snapshot().AdmittedFraction, 1.0)
	d.requireState(breaker.Recovering)
	d.clock.Add(1)
	assert.Equal(t, 1.0, d.Snapshot().AdmittedFraction)
	assert.Equal(t, 100, d.offer(100, 0))
	assert.Equal(t, breaker.ReasonRampCompleted, d.last().Reason)
}

// The ramp is a fraction of the break that was served, as it was grown and jittered.
func TestRampLengthFollowsTheBreakServed(t *testing.T) {
	d := drive(t, breaker.Settings{
		BreakDuration: 10 * time.Second, BreakJitter: breaker.JitterFull, Random: func() float64 { return 0.8 },
		Recovery: breaker.Recovery{Fraction: 0.5, Max: time.Hour},
	})
	d.trip()
	d.clock.Add(8 * time.Second)
	d.report(transient)
	d.clock.Add(16 * time.Second)
	d.report(success, success)
	d.requireState(breaker.Recovering)
	d.clock.Add(8*time.Second - 1)
	d.requireState(breaker.Recovering)
	d.clock.Add(1)
	d.requireState(breaker.Closed)
}

// A refused ramp call is refused as such, and the reason is still that of the open period.
func TestRecoveringRefuses(t *testing.T) {
	d := drive(t, ramped)
	d.recovering()
	rejected := d.refused()
	assert.Equal(t, breaker.Recovering, rejected.State)
	assert.Equal(t, breaker.ReasonConsecutiveFailures, rejected.Reason)
	_, ok := rejected.RetryAfter()
	assert.False(t, ok)
	assert.Equal(t, `breaker: "" is recovering`, rejected.Error())
}

// Only a ramp that completes forgets the growth: a failure in it re-opens with the grown break.
func TestRampFailureReopensWithTheGrownBreak(t *testing.T) {
	d := drive(t, ramped)
	d.recovering()
	d.clock.Add(9 * time.Second)
	for d.last().To == breaker.Recovering {
		_ = d.Execute(t.Context(), func(context.Context) error { return errDown })
	}
	last := d.last()
	assert.Equal(t, breaker.ReasonRampFailed, last.Reason)
	assert.Equal(t, 2*firstBreak, last.Break)
	assert.Equal(t, errDown, last.Err)
	assert.Equal(t, breaker.Counts{Calls: 1, Failures: 1, ConsecutiveFailures: 1}, last.Counts)

	d.clock.Add(2 * firstBreak)
	d.report(success, success)
	d.clock.Add(10 * time.Second)
	d.report(success)
	d.trip()
	assert.Equal(t, firstBreak, d.last().Break, "a completed ramp starts again at the first break")
}

// Slow calls in a ramp hold it back, for as long as they stay slow, but they never open the circuit.
func TestSlowCallsHoldTheRampBack(t *testing.T) {
	settings := ramped
	settings.SlowCallThreshold, settings.MinCalls = time.Second, 1
	d := drive(t, settings)
	d.recovering()
	for range 10 {
		d.clock.Add(9 * time.Second)
		assert.Positive(t, d.offer(40, 2*time.Second))
		d.requireState(breaker.Recovering)
		assert.Equal(t, 0.1, d.Snapshot().AdmittedFraction)
	}
	// Each two fast calls in a row add a tenth.
	for range 300 {
		d.offer(1, time.Second)
	}
	assert.Equal(t, breaker.ReasonRampCompleted, d.last().Reason)
	assert.Zero(t, d.Snapshot().Counts.Slow)
}
