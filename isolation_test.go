package breaker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
)

func TestIsolateFromEveryState(t *testing.T) {
	for _, state := range everyState {
		t.Run(state.String(), func(t *testing.T) {
			d := drive(t, ramped)
			d.enter(state)
			changes, totals := len(d.changes), d.Snapshot().Totals
			isolated := d.clock.Now()
			if state == breaker.Isolated {
				changes--
			}
			d.Isolate()
			require.Len(t, d.changes, changes+1)
			last := d.last()
			assert.Equal(t, breaker.Isolated, last.To)
			assert.Equal(t, breaker.ReasonIsolated, last.Reason)
			assert.Zero(t, last.Break)
			assert.Zero(t, last.Opens)
			assert.Equal(t, totals, d.Snapshot().Totals, "isolation is no open")

			d.clock.Add(1000 * time.Hour)
			rejected := d.refused()
			assert.Equal(t, breaker.Isolated, rejected.State)
			assert.Equal(t, breaker.ReasonIsolated, rejected.Reason)
			assert.NoError(t, rejected.Cause)
			opened, ok := d.OpenedAt()
			assert.True(t, ok)
			assert.Equal(t, isolated, opened)
			_, ok = d.RetryAfter()
			assert.False(t, ok)
		})
	}
}

func TestIsolateAgainTellsNobody(t *testing.T) {
	d := drive(t, breaker.Settings{})
	d.Isolate()
	want := d.Snapshot()
	d.clock.Add(time.Minute)
	d.Isolate()
	assert.Len(t, d.changes, 1)
	assert.Equal(t, want, d.Snapshot(), "the isolation goes on from when it began")
}

func TestResetFromEveryState(t *testing.T) {
	for _, state := range everyState[1:] {
		t.Run(state.String(), func(t *testing.T) {
			d := drive(t, ramped)
			d.enter(state)
			changes := len(d.changes)
			d.Reset()
			require.Len(t, d.changes, changes+1)
			assert.Equal(t, state, d.last().From)
			assert.Equal(t, breaker.Closed, d.last().To, "without a ramp")
			assert.Equal(t, breaker.ReasonReset, d.last().Reason)
			s := d.Snapshot()
			assert.Zero(t, s.Counts)
			assert.Zero(t, s.OpenedAt)
			assert.Equal(t, 1.0, s.AdmittedFraction)
			d.trip()
			assert.Equal(t, firstBreak, d.last().Break, "the growth is forgotten")
		})
	}
}

// Growth waits for Reset: the breaker that was isolated in its third break begins again.
func TestResetForgetsTheGrowth(t *testing.T) {
	d := drive(t, breaker.Settings{})
	d.trip()
	d.clock.Add(firstBreak)
	d.report(transient)
	require.Equal(t, 2, d.last().Opens)
	d.Isolate()
	d.Reset()
	d.trip()
	assert.Equal(t, 1, d.last().Opens)
	assert.Equal(t, uint64(3), d.Snapshot().Totals.Opens)
}

func TestResetOfAClosedBreaker(t *testing.T) {
	d := drive(t, breaker.Settings{})
	d.report(transient, transient, transient, transient)
	d.Reset()
	assert.Empty(t, d.changes, "there is nothing to tell")
	assert.Zero(t, d.Snapshot().Counts, "yet window and streak are cleared")
	assert.Equal(t, uint64(4), d.Snapshot().Totals.Transient)
	d.report(transient, transient, transient, transient)
	d.requireState(breaker.Closed)
}

// A baseline measures the dependency: nothing clears it.
func TestControlKeepsTheBaselines(t *testing.T) {
	d := drive(t, breaker.Settings{Failures: breaker.Failures{MinSamples: 20}})
	for range 20 {
		d.permit().RecordLatency(success, 10*time.Millisecond)
	}
	before := d.Snapshot()
	d.Isolate()
	d.Reset()
	after := d.Snapshot()
	assert.Equal(t, 10240*time.Microsecond, after.NormalLatency)
	require.NotNil(t, after.NormalFailureRate)
	assert.Zero(t, *after.NormalFailureRate)
	assert.Equal(t, before.SlowThreshold, after.SlowThreshold)
	assert.Zero(t, after.Counts)
}

// The counts of an isolation are the evidence so far: the trip window from Closed, else the tally of the state it ends.
func TestIsolationTellsTheCounts(t *testing.T) {
	d := drive(t, breaker.Settings{})
	d.report(success, transient)
	d.Isolate()
	assert.Equal(t, breaker.Counts{Calls: 2, Failures: 1, ConsecutiveFailures: 1}, d.last().Counts)
	d.Reset()
	d.halfOpen().Record(success)
	d.Isolate()
	assert.Equal(t, breaker.Counts{Calls: 1}, d.last().Counts)
}
