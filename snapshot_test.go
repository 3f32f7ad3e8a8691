package breaker_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
)

// What is unknown or does not apply is left out, so a reader can tell it from zero.
func TestSnapshotAsJSON(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(*driven)
		want string
	}{
		{"new", func(*driven) {}, `{
			"name": "orders", "state": "closed", "since": "1970-01-01T00:00:00Z", "admitted_fraction": 1,
			"totals": {"successes":0,"transient":0,"throttled":0,"permanent":0,"ignored":0,"slow":0,"discarded":0,"rejected":0,"opens":0}
		}`},
		{"measured", func(d *driven) {
			for range 20 {
				d.permit().RecordLatency(success, 10*time.Millisecond)
			}
		}, `{
			"name": "orders", "state": "closed", "since": "1970-01-01T00:00:00Z", "admitted_fraction": 1,
			"counts": {"calls":20,"failures":0,"slow":0,"consecutive_failures":0},
			"normal_latency": "10.24ms", "slow_threshold": "30.72ms", "normal_failure_rate": 0, "trip_ratio": 0.05,
			"totals": {"successes":20,"transient":0,"throttled":0,"permanent":0,"ignored":0,"slow":0,"discarded":0,"rejected":0,"opens":0}
		}`},
		{"open", func(d *driven) { d.trip(); d.clock.Add(2500 * time.Millisecond); d.refused() }, `{
			"name": "orders", "state": "open", "reason": "consecutive-failures", "since": "1970-01-01T00:00:00Z",
			"opened_at": "1970-01-01T00:00:00Z", "retry_after": "12.5s", "break": "15s", "break_basis": "written", "admitted_fraction": 0,
			"totals": {"successes":0,"transient":5,"throttled":0,"permanent":0,"ignored":0,"slow":0,"discarded":0,"rejected":1,"opens":1}
		}`},
		{"half-open", func(d *driven) { d.halfOpen().Record(success); d.permit() }, `{
			"name": "orders", "state": "half-open", "reason": "break-elapsed", "since": "1970-01-01T00:00:15Z",
			"opened_at": "1970-01-01T00:00:00Z", "break": "15s", "break_basis": "written", "admitted_fraction": 0, "probes_in_flight": 1, "probe_successes": 1,
			"counts": {"calls":1,"failures":0,"slow":0,"consecutive_failures":0},
			"totals": {"successes":1,"transient":5,"throttled":0,"permanent":0,"ignored":0,"slow":0,"discarded":0,"rejected":0,"opens":1}
		}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := drive(t, settings{Name: "orders", Failures: failures{MinSamples: 20}})
			test.do(d)
			s := d.Snapshot()
			s.Since, s.OpenedAt = inUTC(s.Since), inUTC(s.OpenedAt)
			encoded, err := json.Marshal(s)
			require.NoError(t, err)
			assert.JSONEq(t, test.want, string(encoded))
			var got breaker.Snapshot
			require.NoError(t, json.Unmarshal(encoded, &got))
			assert.Equal(t, s, got)
		})
	}
}

// inUTC keeps a zero time as it is.
func inUTC(at time.Time) time.Time {
	if at.IsZero() {
		return at
	}
	return at.UTC()
}

func TestSnapshotFromWrongJSON(t *testing.T) {
	for text, says := range map[string]string{
		`{"state": "ajar"}`:       "ajar",
		`{"retry_after": "soon"}`: "soon",
	} {
		s := breaker.Snapshot{Name: "orders"}
		require.ErrorContains(t, json.Unmarshal([]byte(text), &s), says)
		assert.Equal(t, breaker.Snapshot{Name: "orders"}, s)
	}
}

// A snapshot is a copy: what happens later is not in it.
func TestSnapshotIsACopy(t *testing.T) {
	d := drive(t, settings{Failures: failures{MinSamples: 20}})
	for range 20 {
		d.report(success)
	}
	s := d.Snapshot()
	d.report(transient)
	require.NotNil(t, s.NormalFailureRate)
	assert.Zero(t, *s.NormalFailureRate)
	assert.Equal(t, uint64(20), s.Totals.Successes)
}

// Where no ratio is judged there is no window, and the counts of every event were 0: an operator could not see on what evidence the
// circuit had opened. They count from when the circuit closed, also what is recorded without the lock.
func TestRegression_CountsAreRealWhereNoRatioIsJudged(t *testing.T) {
	d := drive(t, onlyConsecutive())
	for range 2 { // the second time round nothing is left of the first
		for range 10 {
			d.runs(nil)
		}
		d.report(transient, transient, success, breaker.Throttled, transient)
		assert.Equal(t, breaker.Counts{Calls: 14, Failures: 3, ConsecutiveFailures: 1}, d.Snapshot().Counts)
		d.report(transient, transient, transient, transient)
		want := breaker.Counts{Calls: 18, Failures: 7, ConsecutiveFailures: 5}
		assert.Equal(t, want, d.last().Counts)
		assert.Equal(t, breaker.ReasonConsecutiveFailures, d.last().Reason)
		assert.Zero(t, d.Snapshot().Counts, "while open")

		d.clock.Add(firstBreak)
		assert.Zero(t, d.Snapshot().Counts, "as good as half-open")
		d.runs(nil)
		assert.Equal(t, breaker.Counts{Calls: 1}, d.Snapshot().Counts, "half-open")
		d.runs(nil)
		assert.Equal(t, breaker.Counts{Calls: 2}, d.last().Counts)
		d.requireState(breaker.Closed)
		assert.Zero(t, d.Snapshot().Counts)
	}
}

// Control begins the counts anew, as it does those of a window.
func TestRegression_CountsBeginAnewWithControl(t *testing.T) {
	for name, s := range map[string]breaker.Settings{"window": {}, "consecutive alone": onlyConsecutive()} {
		t.Run(name, func(t *testing.T) {
			d := drive(t, s)
			fill := func() {
				for range 3 {
					d.runs(nil)
				}
				d.report(transient)
				require.Equal(t, breaker.Counts{Calls: 4, Failures: 1, ConsecutiveFailures: 1}, d.Snapshot().Counts)
			}
			fill()
			d.Reset()
			assert.Zero(t, d.Snapshot().Counts)
			fill()
			d.Isolate()
			assert.Equal(t, breaker.Counts{Calls: 4, Failures: 1, ConsecutiveFailures: 1}, d.last().Counts)
			assert.Zero(t, d.Snapshot().Counts)
			d.Reset()
			assert.Zero(t, d.Snapshot().Counts)
			fill()
		})
	}
}

// In a ramp the counts are those of the ramp. One that has come to its end reads closed before any call has closed it; at that moment
// the calls from before the break were counted once more.
func TestRegression_CountsOfARampThatHasEnded(t *testing.T) {
	s := onlyConsecutive()
	s.Recovery = ramped.Recovery
	d := drive(t, s)
	for range 10 {
		d.runs(nil)
	}
	d.recovering()
	d.clock.Add(9 * time.Second)
	admitted := d.offer(10, 0)
	require.Positive(t, admitted)
	assert.Equal(t, breaker.Counts{Calls: admitted}, d.Snapshot().Counts)
	d.clock.Add(time.Hour)
	d.requireState(breaker.Closed)
	assert.Zero(t, d.Snapshot().Counts)
	d.runs(nil)
	assert.Equal(t, breaker.Counts{Calls: admitted}, d.last().Counts)
	assert.Equal(t, breaker.Counts{Calls: 1}, d.Snapshot().Counts)
}

// While half-open and recovering the snapshot tells what the probes and the calls of the ramp have brought so far.
func TestRegression_SnapshotCountsOutsideClosed(t *testing.T) {
	d := drive(t, breaker.Settings{ProbeCohort: 4, FailureRatio: 0.75, SlowCallThreshold: time.Second, SlowCallRatio: 1})
	d.halfOpen().Record(success)
	d.permit().RecordLatency(success, 2*time.Second)
	d.report(transient)
	s := d.Snapshot()
	assert.Equal(t, breaker.Counts{Calls: 3, Failures: 1, Slow: 1, ConsecutiveFailures: 1}, s.Counts)
	assert.Equal(t, 2, s.ProbeSuccesses)
}
