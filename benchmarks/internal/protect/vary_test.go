package protect

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestVary_is_deterministic_and_unseen(t *testing.T) {
	abouts := func(p Plan) (abouts []string) {
		for _, s := range p.All() {
			abouts = append(abouts, s.Key+s.About)
		}
		return abouts
	}
	tuning, report := Plan{Pace: Quick, Seeds: Tuning, Vary: 3}, Plan{Pace: Quick, Seeds: Report, Vary: 3}
	assert.Equal(t, abouts(tuning), abouts(tuning))
	assert.NotEqual(t, abouts(tuning), abouts(report))
	assert.Len(t, abouts(tuning), 3*len(Plan{Pace: Quick}.All()))
}

func TestVary_leaves_the_scenario_as_it_is_and_keeps_to_bounds(t *testing.T) {
	for _, s := range (Plan{Pace: Quick}).All() {
		before := append([]Incident(nil), s.Dependency.Incidents...)
		for _, v := range s.vary(20, 1) {
			assert.LessOrEqual(t, v.calls(), max(mostCalls*1.1, s.calls()*0.6), v.Key)
			assert.Equal(t, s.Healthy, v.Healthy)
			require.Len(t, v.Dependency.Incidents, len(before))
			for i, incident := range v.Dependency.Incidents {
				assert.LessOrEqual(t, incident.End(), v.Length, v.Key)
				assert.Equal(t, before[i].Failing == 1, incident.Failing == 1, "an outage stays one, and nothing else becomes one: %s", v.Key)
				if i > 0 {
					assert.Less(t, v.Dependency.Incidents[i-1].End(), incident.After, "incidents stay apart: %s", v.Key)
				}
			}
		}
		assert.Equal(t, before, s.Dependency.Incidents)
	}
}

func TestVariation_changes_what_it_says(t *testing.T) {
	s := Scenario{
		Length: time.Minute, Load: Load{PerSecond: 10, Budget: time.Second, Timeout: 5 * time.Second},
		Dependency: Dependency{Latency: LogNormal(time.Second, time.Second), FailureRate: 0.1,
			Incidents: []Incident{{After: 10 * time.Second, For: 20 * time.Second, Slower: 20, Share: 0.3}}},
	}
	v := variation{rate: 5, length: 1.5, severity: 0.6, latency: 0.2, shape: asDeclared}
	assert.Equal(t, "calls × 5, length of incidents × 1.5, severity × 0.6, latency × 0.2", v.String())
	got := v.of(s)
	assert.InDelta(t, 50, got.Load.PerSecond, 1e-9)
	assert.Equal(t, 200*time.Millisecond, got.Load.Budget)
	assert.Equal(t, 5*time.Second, got.Load.Timeout, "time-outs only grow")
	assert.Equal(t, 70*time.Second, got.Length)
	assert.InDelta(t, 0.06, got.Dependency.FailureRate, 1e-9)
	assert.Equal(t, 200*time.Millisecond, got.Dependency.Latency(random(), 0))
	assert.Equal(t, Incident{After: 10 * time.Second, For: 30 * time.Second, Slower: 12, Share: 0.18}, got.Dependency.Incidents[0])
}

func TestShaped(t *testing.T) {
	l := LogNormal(time.Millisecond, time.Millisecond)
	for _, test := range []struct {
		shape string
		q     float64
		want  time.Duration
	}{
		{asDeclared, 0.99, time.Millisecond}, {longerTail, 0.97, time.Millisecond}, {longerTail, 0.99, 10 * time.Millisecond},
		{secondHump, 0.6, time.Millisecond}, {secondHump, 0.7, 5 * time.Millisecond}, {slowWeather, 0.5, 2 * time.Millisecond},
	} {
		assert.Equal(t, test.want, quantiles(shaped(l, test.shape), 15*time.Minute, test.q)[0], test.shape)
	}
}
