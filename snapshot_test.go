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
			"opened_at": "1970-01-01T00:00:00Z", "retry_after": "12.5s", "admitted_fraction": 0,
			"totals": {"successes":0,"transient":5,"throttled":0,"permanent":0,"ignored":0,"slow":0,"discarded":0,"rejected":1,"opens":1}
		}`},
		{"half-open", func(d *driven) { d.halfOpen().Record(success); d.permit() }, `{
			"name": "orders", "state": "half-open", "reason": "break-elapsed", "since": "1970-01-01T00:00:15Z",
			"opened_at": "1970-01-01T00:00:00Z", "admitted_fraction": 0, "probes_in_flight": 1, "probe_successes": 1,
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
