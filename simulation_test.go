package breaker

import (
	"context"
	"errors"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// brownoutScenario has everything a report can show: a brownout, an outage that overlaps it, a cold dependency, and time-outs.
func brownoutScenario() Simulation {
	return Simulation{
		Settings: Settings{
			Name: "orders", BreakDuration: 3 * time.Second, MaxBreakDuration: 12 * time.Second, Recovery: Recovery{Fraction: 0.5},
		},
		Dependency: Dependency{
			P50: 40 * time.Millisecond, P99: 160 * time.Millisecond, FailureRate: 0.001, Capacity: 40, Warmup: 10 * time.Second,
			Incidents: []Incident{
				{After: 20 * time.Second, For: 20 * time.Second, Slower: 6, Failing: 0.1},
				{After: 30 * time.Second, For: 5 * time.Second, Failing: 1},
			},
		},
		Load:     Load{PerSecond: 50},
		Breakers: 3,
		Timeout:  500 * time.Millisecond,
		Duration: 90*time.Second + 250*time.Millisecond,
		Seed:     7,
	}
}

func simulate(t *testing.T, s Simulation) Report {
	t.Helper()
	report, err := s.Run(t.Context())
	require.NoError(t, err)
	return report
}

// steady is a dependency without incidents.
func steady(perSecond float64, d time.Duration) Simulation {
	return Simulation{Dependency: Dependency{P50: 10 * time.Millisecond}, Load: Load{PerSecond: perSecond}, Duration: d, Seed: 1}
}

func TestSimulationIsReproducible(t *testing.T) {
	s := brownoutScenario()
	first := simulate(t, s)
	assert.Equal(t, first, simulate(t, s))
	assert.Equal(t, first.String(), simulate(t, s).String())
	s.Seed++
	assert.NotEqual(t, first.Timeline, simulate(t, s).Timeline)
}

func TestSimulationLeavesFunctionsOut(t *testing.T) {
	s := brownoutScenario()
	want := simulate(t, s)
	var m Monitor
	s.Settings.Monitor = &m
	s.Settings.Clock = noClock{}
	s.Settings.Random = func() float64 { t.Error("Random was asked"); return 0 }
	s.Settings.Classify = func(error) Outcome { t.Error("Classify was asked"); return Ignored }
	s.Settings.OnStateChange = func(context.Context, StateChange) { t.Error("OnStateChange was told") }
	s.Settings.OnCallbackError = func(context.Context, *CallbackError) { t.Error("OnCallbackError was told") }
	s.Settings.BreakDurationFunc = func(context.Context, StateChange) (time.Duration, error) {
		t.Error("BreakDurationFunc was asked")
		return time.Hour, nil
	}
	assert.Equal(t, want, simulate(t, s))
	assert.Empty(t, m.Breakers())
	assert.NotNil(t, s.Settings.Random, "what the caller wrote is left alone")
}

// noClock must not be asked.
type noClock struct{}

func (noClock) Now() time.Time                       { panic("the clock of the settings was read") }
func (noClock) Since(time.Time) time.Duration        { panic("the clock of the settings was read") }
func (noClock) After(time.Duration) <-chan time.Time { panic("the clock of the settings was read") }

func TestSimulationNeverWaits(t *testing.T) {
	s := brownoutScenario()
	want := simulate(t, s)
	s.Settings.WhenOpen = Wait
	s.Settings.RejectionDelay = time.Hour
	got := simulate(t, s)
	assert.Equal(t, want.Timeline, got.Timeline)
	assert.Positive(t, got.Rejected)
}

func TestSimulationReportsTheSettingsAsTheyRan(t *testing.T) {
	s := brownoutScenario()
	assert.Equal(t, s.Settings.WithDefaults(), simulate(t, s).Settings)
}

func TestSimulationCountsEveryCallOnce(t *testing.T) {
	r := simulate(t, brownoutScenario())
	var sum Sample
	for i, s := range r.Timeline {
		assert.Equal(t, time.Duration(i)*time.Second, s.At)
		assert.Equal(t, s.Offered, s.Admitted+s.Rejected, "second %d", i)
		assert.Equal(t, s.Admitted, s.Succeeded+s.Failed, "second %d", i)
		sum.Offered += s.Offered
		sum.Admitted += s.Admitted
		sum.Rejected += s.Rejected
		sum.Succeeded += s.Succeeded
		sum.Failed += s.Failed
	}
	assert.Len(t, r.Timeline, 91)
	assert.Equal(t, Sample{
		Offered: r.Calls, Admitted: r.Admitted, Rejected: r.Rejected, Succeeded: r.Succeeded, Failed: r.Failed,
	}, sum)
	for name, n := range map[string]int{
		"rejected": r.Rejected, "succeeded": r.Succeeded, "failed": r.Failed, "slow": r.Slow, "opens": r.Opens,
	} {
		assert.Positive(t, n, name)
	}
}

func TestSimulationOffersThePoissonLoad(t *testing.T) {
	r := simulate(t, steady(50, 1000*time.Second))
	const mean = 50.0
	var variance float64
	for _, s := range r.Timeline {
		variance += (float64(s.Offered) - mean) * (float64(s.Offered) - mean) / 1000
	}
	assert.InDelta(t, 50_000, r.Calls, 4*math.Sqrt(50_000))
	assert.InDelta(t, mean, variance, 10, "exponential gaps make the variance of a second its mean")
}

// Two settings meet the same calls, and the same call meets the same dependency, whatever became of the calls before it.
func TestSimulationGivesTwoSettingsTheSameLoad(t *testing.T) {
	s := steady(100, 5*time.Minute)
	s.Dependency.FailureRate = 0.22
	s.Settings = Settings{ConsecutiveFailures: 5, BreakDuration: 3 * time.Second, Failures: Failures{Off: true}}
	opening := simulate(t, s)
	s.Settings = Settings{ConsecutiveFailures: 1000, Failures: Failures{Off: true}}
	closed := simulate(t, s)
	require.Zero(t, closed.Rejected)
	undisturbed := 0
	for i := range opening.Timeline {
		a, b := opening.Timeline[i], closed.Timeline[i]
		require.Equal(t, a.Offered, b.Offered)
		if a.Rejected == 0 {
			undisturbed++
			assert.Equal(t, a.Failed, b.Failed, "second %d", i)
		}
	}
	assert.Greater(t, opening.Opens, 5)
	assert.Greater(t, undisturbed, 20, "the test has something to compare")
}

func TestSimulationFleet(t *testing.T) {
	s := steady(20, 10*time.Second)
	one := simulate(t, s)
	s.Breakers = 1
	assert.Equal(t, one, simulate(t, s), "0 means 1")

	s.Breakers = 8
	eight := simulate(t, s)
	assert.InDelta(t, 8*one.Calls, eight.Calls, 200, "the load is that of each breaker")

	// Alone, none of them has more than four calls in flight at a time; together they do.
	s.Dependency.Capacity = 4
	together := simulate(t, s)
	assert.Greater(t, together.Latency(1), eight.Latency(1), "they share the capacity")
	s.Breakers = 1
	assert.Equal(t, one.Latency(1), simulate(t, s).Latency(1))
}

// Five failures in a row open a breaker; a breaker of the fleet opens on its own failures alone.
func TestSimulationFleetHasABreakerForEach(t *testing.T) {
	s := steady(20, 10*time.Second)
	s.Settings = Classic()
	s.Breakers = 50
	s.Dependency.P50 = time.Microsecond // so that no call is in flight when its breaker opens
	s.Dependency.Incidents = []Incident{{5 * time.Second, 5 * time.Second, 1, 1}}
	r := simulate(t, s)
	assert.Equal(t, 50, r.Opens)
	assert.Equal(t, 5*50, r.Failed)
	assert.Equal(t, Open, r.Timeline[9].State)
	assert.Zero(t, r.Timeline[9].AdmittedFraction)
	assert.Equal(t, 1.0, r.Timeline[4].AdmittedFraction)
	s.Duration = 5*time.Second + 250*time.Millisecond
	last := simulate(t, s).Timeline[5]
	assert.Equal(t, Open, last.State, "the worst of the fleet")
	assert.Greater(t, last.AdmittedFraction, 0.1, "and the mean over it")
	assert.Less(t, last.AdmittedFraction, 0.9)
}

func TestSimulationTimesOut(t *testing.T) {
	s := steady(10, 20*time.Second)
	s.Settings = Classic()
	s.Dependency.Incidents = []Incident{{10 * time.Second, 10 * time.Second, 1e9, 0}}
	for timeout, want := range map[time.Duration]time.Duration{0: time.Minute, 3 * time.Second: 3 * time.Second} {
		s.Timeout = timeout
		r := simulate(t, s)
		assert.Equal(t, want, r.Latency(1))
		assert.True(t, r.Opened, "a time-out is a transient failure")
		assert.InDelta(t, want, r.TimeToOpen, float64(2*time.Second), "the fifth is known then")
		assert.Equal(t, r.Admitted, r.Succeeded+r.Failed, "calls in flight at the end are followed to theirs")
	}
}

func TestSimulationTellsOfEachSecond(t *testing.T) {
	s := brownoutScenario()
	var told []Sample
	s.OnSample = func(sample Sample) { told = append(told, sample) }
	r := simulate(t, s)
	require.Len(t, told, len(r.Timeline))
	unfinished := 0
	for i, now := range told {
		later := r.Timeline[i]
		unfinished += later.Succeeded + later.Failed - now.Succeeded - now.Failed
		now.Succeeded, now.Failed = later.Succeeded, later.Failed
		assert.Equal(t, later, now, "second %d", i)
	}
	assert.Positive(t, unfinished, "calls in flight have not ended yet")
}

func TestSimulationEndsEachSecondOnTime(t *testing.T) {
	m, err := newSimulator(steady(1, 2*time.Second+time.Millisecond).withDefaults(), New)
	require.NoError(t, err)
	var ends []time.Duration
	m.OnSample = func(Sample) { ends = append(ends, m.clock.now) }
	require.NoError(t, m.play(t.Context()))
	assert.Equal(t, []time.Duration{time.Second, 2 * time.Second, 2*time.Second + time.Millisecond}, ends)
}

func TestSimulationWithoutCalls(t *testing.T) {
	r := simulate(t, steady(1e-300, 2*time.Second))
	assert.Zero(t, r.Calls)
	assert.Equal(t, []Sample{{At: 0, AdmittedFraction: 1}, {At: time.Second, AdmittedFraction: 1}}, r.Timeline)
	assert.Zero(t, r.Availability())
	assert.Zero(t, r.LoadFraction())
	assert.Zero(t, r.Latency(0.5))
	assert.False(t, r.Recovered)
	assert.NotContains(t, r.String(), "NaN")
}

// The breakers themselves know how often they opened. What the simulator sees of them from outside must agree, also where
// breaks are so short that no state ever reads open, and where one ends with the ramp that follows it.
func TestSimulationSeesEveryOpen(t *testing.T) {
	for name, settings := range map[string]Settings{
		"default":        {},
		"ramp":           {BreakDuration: time.Second, Recovery: Recovery{Fraction: 1}},
		"full jitter":    {BreakJitter: JitterFull, Recovery: Recovery{Fraction: 0.1, Min: time.Millisecond}},
		"no break":       {BreakDuration: 1, MaxBreakDuration: 1, ConsecutiveFailures: 1},
		"lost probes":    {BreakDuration: time.Second, ProbeTimeout: 100 * time.Millisecond},
		"cohort":         {BreakDuration: time.Second, ProbeCohort: 10, FailureRatio: 0.5},
		"trigger-happy":  {BreakDuration: 50 * time.Millisecond, ConsecutiveFailures: 1, ProbeSuccesses: 1},
		"observing only": {BreakDuration: time.Second, ObserveOnly: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := brownoutScenario()
			s.Settings = settings
			m, err := newSimulator(s.withDefaults(), New)
			require.NoError(t, err)
			require.NoError(t, m.play(t.Context()))
			var opens, rejected uint64
			for _, c := range m.clients {
				opens += c.breaker.Snapshot().Totals.Opens
				rejected += c.breaker.Snapshot().Totals.Rejected
			}
			r := m.report()
			assert.Positive(t, r.Opens)
			assert.EqualValues(t, opens, r.Opens)
			if settings.ObserveOnly {
				assert.Zero(t, r.Rejected, "a dry run admits every call")
			} else {
				assert.EqualValues(t, rejected, r.Rejected)
			}
		})
	}
}

func TestSimulationPassesOnWhatCannotBeBuilt(t *testing.T) {
	broken := errors.New("broken")
	_, err := steady(1, time.Second).run(t.Context(), func(Settings) (*Breaker, error) { return nil, broken })
	assert.Equal(t, broken, err)
}

// Ten times the calls must not take more memory, but for the timeline.
func TestSimulationMemoryIsFlat(t *testing.T) {
	s := brownoutScenario()
	s.Duration = 10 * time.Minute
	live := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	var early, late uint64
	s.OnSample = func(sample Sample) {
		switch sample.At {
		case time.Minute:
			early = live()
		case s.Duration - time.Second:
			late = live()
		}
	}
	r := simulate(t, s)
	const timeline = 3 * 600 * 100 // samples of about 80 B, in a slice that may have grown to twice its length
	require.Greater(t, r.Calls, 80_000)
	assert.Less(t, late, early+timeline)
}

// fiveMinutes and fleet are the runs whose real time is bounded: one second and ten.
func BenchmarkSimulation(b *testing.B) {
	fiveMinutes := steady(500, 5*time.Minute)
	fiveMinutes.Dependency.P99 = 50 * time.Millisecond
	fiveMinutes.Dependency.Incidents = []Incident{{2 * time.Minute, time.Minute, 5, 0.3}}
	fleet := pulse(JitterEqual)
	for name, s := range map[string]Simulation{"5min×500/s": fiveMinutes, "200×20/s×2min": fleet} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Run(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
