package breaker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The arguments of docs/simulation.md.

// pulse is a fleet of 200 that an outage opens together.
func pulse(j Jitter) Simulation {
	return Simulation{
		Settings: Classically(Settings{BreakJitter: j}),
		Dependency: Dependency{
			P50: 10 * time.Millisecond, P99: 50 * time.Millisecond,
			Incidents: []Incident{{After: 20 * time.Second, For: time.Minute, Failing: 1}},
		},
		Load:     Load{PerSecond: 20},
		Breakers: 200,
		Duration: 2 * time.Minute,
		Seed:     1,
	}
}

func TestArgumentJitterSpreadsProbes(t *testing.T) {
	none, equal := simulate(t, pulse(JitterNone)), simulate(t, pulse(JitterEqual))
	assert.GreaterOrEqual(t, none.PeakProbesPerSecond, 150)
	assert.Less(t, 2*equal.PeakProbesPerSecond, none.PeakProbesPerSecond)
}

func TestArgumentRampOutlivesTheCliff(t *testing.T) {
	served := func(recovery Recovery) (after int, r Report) {
		r = simulate(t, Simulation{
			Settings: Classically(Settings{BreakDuration: 5 * time.Second, Recovery: recovery}),
			Dependency: Dependency{
				P50: 100 * time.Millisecond, P99: 200 * time.Millisecond, Capacity: 40, Warmup: 20 * time.Second,
				Incidents: []Incident{{After: 20 * time.Second, For: 10 * time.Second, Failing: 1}},
			},
			Load:     Load{PerSecond: 200},
			Duration: 2 * time.Minute,
			Seed:     1,
		})
		for _, s := range r.Timeline[30:] {
			after += s.Succeeded
		}
		return after, r
	}
	ramp, ramped := served(Recovery{Fraction: 0.25})
	cliff, fallen := served(Recovery{})
	assert.True(t, ramped.Recovered)
	assert.False(t, fallen.Recovered)
	assert.Greater(t, ramp, 10*cliff)
}

// brownout is a dependency that answers ten times as slowly, and answers.
func brownout(s Settings) Simulation {
	return Simulation{
		Settings: s,
		Dependency: Dependency{
			P50: 20 * time.Millisecond, P99: 80 * time.Millisecond, FailureRate: 0.001,
			Incidents: []Incident{{After: 2 * time.Minute, For: time.Minute, Slower: 10}},
		},
		Load:     Load{PerSecond: 50},
		Duration: 5 * time.Minute,
		Seed:     1,
	}
}

func TestArgumentBlindBreakerMissesABrownout(t *testing.T) {
	blind := simulate(t, brownout(Classically(Settings{SlowCalls: SlowCalls{Off: true}})))
	assert.Zero(t, blind.Opens)
	seeing := simulate(t, brownout(Classically(Settings{})))
	assert.True(t, seeing.Opened)
	assert.Less(t, seeing.TimeToOpen, 20*time.Second)
	assert.Zero(t, seeing.FalseOpens)
	assert.Less(t, seeing.Latency(0.9), blind.Latency(0.9)/2)
}

// A baseline over ten seconds takes a brownout for normal before half of the trip window is slow. New refuses it; here the
// check is bypassed to show why.
func TestArgumentRaceLosingBaseline(t *testing.T) {
	losing := brownout(Classically(Settings{SlowCalls: SlowCalls{Window: 10 * time.Second}}))
	_, err := losing.Run(t.Context())
	require.ErrorContains(t, err, "absorb an incident")

	r, thresholds, slow := unchecked(t, losing)
	assert.InDelta(t, 68*time.Millisecond, thresholds[119], float64(5*time.Millisecond), "before the brownout")
	assert.Greater(t, thresholds[128], 600*time.Millisecond, "nine seconds into it, at three times the latency of the brownout")
	assert.Less(t, slow, 0.2, "so the window never fills with slow calls")
	assert.Zero(t, r.Opens)

	r, thresholds, slow = unchecked(t, brownout(Classically(Settings{})))
	assert.Equal(t, thresholds[119], thresholds[128], "the same breaker with a window that New admits")
	assert.GreaterOrEqual(t, slow, 0.5)
	assert.True(t, r.Opened)
}

// unchecked runs a single breaker whose settings are not validated. It returns the slow threshold at the end of each second
// and the largest ratio of slow calls that a second ended with.
func unchecked(t *testing.T, s Simulation) (r Report, thresholds []time.Duration, slow float64) {
	t.Helper()
	var b *Breaker
	s.OnSample = func(Sample) {
		snapshot := b.Snapshot()
		thresholds = append(thresholds, snapshot.SlowThreshold)
		slow = max(slow, snapshot.Counts.SlowRatio())
	}
	r, err := s.run(t.Context(), func(s Settings) (*Breaker, error) {
		b = newBreaker(s)
		return b, nil
	})
	require.NoError(t, err)
	return r, thresholds, slow
}
