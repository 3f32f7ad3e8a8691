package model_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
)

// bench is a breaker on a clock that a test moves.
type bench struct {
	*breaker.Breaker
	t     *testing.T
	clock *steppedClock
	last  breaker.StateChange
}

func newBench(t *testing.T, s breaker.Settings) *bench {
	b := &bench{t: t, clock: &steppedClock{}}
	s.Clock, s.BreakJitter = b.clock, breaker.JitterNone
	s.OnStateChange = func(_ context.Context, c breaker.StateChange) { b.last = c }
	b.Breaker = breaker.MustNew(s)
	return b
}

func (b *bench) step(d time.Duration) { b.clock.elapsed += d }

func (b *bench) admit() *breaker.Permit {
	p, err := b.TryAcquire(context.Background())
	require.NoError(b.t, err)
	return p
}

func (b *bench) call(o breaker.Outcome, latency time.Duration) { b.admit().RecordLatency(o, latency) }

func giveUp(p *breaker.Permit) { p.Done(cancelled(), context.Canceled) }

// constant are classic rules with one constant threshold, under which calls in flight count.
func constant() breaker.Settings {
	s := breaker.Classic()
	s.SlowCallThreshold, s.SlowCalls.Off, s.SlowCalls.EndedOnly = 100*time.Millisecond, true, false
	s.Failures.Off, s.ConsecutiveFailures = true, breaker.Disabled
	return s
}

// A fast success at whose end the calls in flight were due to be looked at was judged by every condition, and opened the circuit
// where it brought the window the number of calls that it needs. Whether it did hung on how many nanoseconds lay between two ends.
func TestRegression_AFastSuccessNeverTripsWhenCallsInFlightAreDue(t *testing.T) {
	s := constant()
	s.FailureRatio, s.MinCalls = 0.5, 4
	b := newBench(t, s)
	b.call(breaker.Transient, 0)
	b.call(breaker.Transient, 0)
	b.call(breaker.Transient, 0)
	p := b.admit()
	b.step(50 * time.Millisecond)
	p.RecordLatency(breaker.Success, 0)
	assert.Equal(t, breaker.Closed, b.State(), "%v", b.last)
	b.call(breaker.Transient, 0)
	assert.Equal(t, breaker.ReasonFailureRatio, b.last.Reason)
}

// A slow call that was given up before any other call had ended fell out of the trip window, which did not exist yet.
func TestRegression_ASlowCallGivenUpFirstOfAllCounts(t *testing.T) {
	s := constant()
	s.SlowCalls.EndedOnly, s.MinCalls = true, 1
	b := newBench(t, s)
	p := b.admit()
	b.step(200 * time.Millisecond)
	giveUp(p)
	assert.Equal(t, breaker.ReasonSlowCalls, b.last.Reason)
	assert.Equal(t, breaker.Counts{Calls: 1, Slow: 1}, b.last.Counts)
}

// A call that had counted as slow while it was in flight counted again, as fast, when it ended within the threshold of that time,
// and took back what it had shown.
func TestRegression_ACallThatCrossedTheThresholdInFlightCountsOnce(t *testing.T) {
	b := newBench(t, breaker.Settings{SlowCallThreshold: 100 * time.Millisecond, MinCalls: 100})
	hangs := b.admit()
	b.step(200 * time.Millisecond)
	b.admit().Release() // at which the calls in flight are looked at
	evidence := b.Snapshot().SlowEvidence
	require.Positive(t, evidence)
	hangs.RecordLatency(breaker.Success, 0)
	assert.InDelta(t, evidence, b.Snapshot().SlowEvidence, 1e-9)
}

// recovering opens a breaker by two failures and brings it to the start of a ramp by evidence alone.
func recovering(t *testing.T, s breaker.Settings) *bench {
	s.ConsecutiveFailures, s.BreakDuration, s.ProbeSuccesses = 2, time.Second, 1
	s.SlowCallThreshold = 10 * time.Millisecond
	b := newBench(t, s)
	b.call(breaker.Transient, 0)
	b.call(breaker.Transient, 0)
	b.step(time.Second)
	b.call(breaker.Success, 0)
	require.Equal(t, breaker.Recovering, b.State())
	return b
}

// A call given up while the circuit was recovering ended the row of failures, and was a success to the test on failures: of a
// dependency that hangs some calls and fails the others, the test then saw half.
func TestRegression_ACallGivenUpOnARampIsNoSuccess(t *testing.T) {
	b := recovering(t, breaker.Settings{Recovery: breaker.Recovery{Initial: 0.9}})
	_, err := b.TryAcquire(context.Background()) // which leaves credit for the next
	require.ErrorIs(t, err, breaker.ErrRejected)
	hangs := b.admit()
	b.call(breaker.Transient, 0)
	before := b.Snapshot()
	require.Positive(t, before.Evidence)
	b.step(11 * time.Millisecond)
	giveUp(hangs)
	after := b.Snapshot()
	assert.InDelta(t, before.Evidence, after.Evidence, 1e-9)
	assert.Equal(t, breaker.Counts{Calls: 2, Failures: 1, Slow: 1, ConsecutiveFailures: 1}, after.Counts)
}

// A call that a dry run admits although the breaker would have refused it was one of the calls in flight all the same: it slowed the
// ramp, and after that was evidence of the closed circuit.
func TestRegression_ACallThatADryRunWouldRefuseIsNoCallInFlight(t *testing.T) {
	b := recovering(t, breaker.Settings{ObserveOnly: true})
	start := b.Snapshot()
	b.admit() // never ends
	require.Equal(t, start.Totals.Rejected+1, b.Snapshot().Totals.Rejected)
	b.step(200 * time.Millisecond) // in which the fraction doubles twice
	b.admit().Release()            // at which the calls in flight are looked at
	assert.InDelta(t, 4*start.AdmittedFraction, b.Snapshot().AdmittedFraction, 1e-9)
}

// A break as long as the first of its incident said that the traffic made it so, also where the incident before had.
func TestRegression_AFurtherBreakHasTheReasonOfTheFirst(t *testing.T) {
	b := newBench(t, breaker.Settings{ConsecutiveFailures: 1})
	b.call(breaker.Transient, 0)
	require.Equal(t, breaker.BreakTraffic, b.Snapshot().BreakBasis)
	b.step(time.Second)
	b.Reset()
	b.call(breaker.Transient, 0)
	first := b.Snapshot()
	require.Equal(t, breaker.BreakIncident, first.BreakBasis)
	b.step(first.Break)
	b.call(breaker.Transient, 0)
	assert.Equal(t, 2, b.last.Opens)
	assert.Equal(t, first.Break, b.Snapshot().Break)
	assert.Equal(t, breaker.BreakIncident, b.Snapshot().BreakBasis)
}
