package breaker

import (
	"context"
	"time"
)

// Simulation asks what a breaker with some settings would do: it runs the breaker itself, none of its rules restated, on a
// virtual clock against a modelled dependency. The dependency, its incidents and the load are a model; every admission and
// every change of state is the breaker's own.
//
// Load and dependency are drawn from Seed, one number of each kind for every offered call, admitted or not. So two settings
// with the same seed meet the same calls, and the same call meets the same dependency. The same Simulation gives the same
// report, to the byte, on one architecture and Go version.
type Simulation struct {
	// Settings of every breaker. Clock and Random are replaced by simulated ones. Functions and Monitor are left out, and so
	// is what Execute does with a refusal: a call that is not admitted is refused.
	Settings Settings
	// Dependency is what the calls go to.
	Dependency Dependency
	// Load is what each breaker is offered.
	Load Load
	// Breakers is the size of the fleet: processes with a breaker and a load of their own that share the dependency. 0: 1.
	Breakers int
	// Timeout is when callers give up: a call that still runs then fails as [Transient] and leaves the dependency. 0: 1 min.
	Timeout time.Duration
	// Duration is how long calls are offered. Those still in flight at its end are followed to theirs.
	Duration time.Duration
	// Seed gives every random number.
	Seed uint64
	// OnSample hears of each second of simulated time as it ends, from the goroutine of Run. Calls of that second that are
	// still in flight have neither succeeded nor failed yet; in Report.Timeline they have. nil: nobody.
	OnSample func(Sample)
}

// Dependency models what the breakers protect.
//
// A healthy call takes a log-normal time, multiplied by the incidents in progress when it starts, and fails by chance with
// FailureRate. A failing call takes P50. With c calls in flight, itself included, and a capacity of n, a call takes max(1, c/n)
// times as long, and beyond 3n it fails.
type Dependency struct {
	// P50 and P99 are quantiles of healthy latency. P99 0: every call takes P50.
	P50, P99 time.Duration
	// FailureRate is the fraction of healthy calls that fail, in [0, 1].
	FailureRate float64
	// Capacity is how many concurrent calls are served at full speed. 0: unlimited.
	Capacity int
	// Warmup makes an outage, an incident with Failing 1, leave the dependency cold: its capacity is 1/20 of Capacity, at least
	// 1. From there it regrows by Capacity/Warmup a second while it is used, a quarter as fast while it is idle. Each 100 ms in
	// which more than twice the capacity was admitted cost Capacity/20 instead, down to cold. 0: an outage leaves the capacity
	// as it was. Needs Capacity.
	Warmup time.Duration
	// Incidents may overlap: their Slower multiply, and so do the fractions that do not fail.
	Incidents []Incident
}

// Incident is a time in which the dependency is worse. It applies to the calls that start in it.
type Incident struct {
	// After is its start, measured from the start of the simulation.
	After time.Duration
	// For is its length.
	For time.Duration
	// Slower multiplies the latency, at least 1. 0: 1.
	Slower float64
	// Failing is the fraction of calls that fail, in [0, 1]. 1 is an outage.
	Failing float64
}

func (i Incident) end() time.Duration { return later(i.After, i.For) }

// Load is the traffic that each breaker is offered.
type Load struct {
	// PerSecond is the mean number of calls a second. The gaps between calls are exponential.
	PerSecond float64
}

// Run simulates and reports. It sleeps nowhere and starts no goroutine. Impossible input, of the settings too, and a run of
// more than 100 million expected events are a *[SettingsError] with every problem, before anything runs. When ctx ends, so
// does the run, with the error of ctx.
func (s Simulation) Run(ctx context.Context) (Report, error) {
	mustHaveContext(ctx)
	if err := s.validate(); err != nil {
		return Report{}, err
	}
	return s.run(ctx, New)
}

// run simulates a model that has been found possible, with breakers from build.
func (s Simulation) run(ctx context.Context, build func(Settings) (*Breaker, error)) (Report, error) {
	m, err := newSimulator(s.withDefaults(), build)
	if err != nil {
		return Report{}, err
	}
	if err := m.play(ctx); err != nil {
		return Report{}, err
	}
	return m.report(), nil
}

// withDefaults writes out the defaults and strips the settings of everything that is not a number, without touching what the
// caller wrote.
func (s Simulation) withDefaults() Simulation {
	setDefault(&s.Breakers, 1)
	setDefault(&s.Timeout, time.Minute)
	incidents := make([]Incident, len(s.Dependency.Incidents))
	for i, incident := range s.Dependency.Incidents {
		setDefault(&incident.Slower, 1)
		incidents[i] = incident
	}
	s.Dependency.Incidents = incidents
	s.Settings = s.Settings.withoutFunctions()
	return s
}

// withoutFunctions returns what a report can hold and compare: the numbers.
func (s Settings) withoutFunctions() Settings {
	s.BreakDurationFunc = nil
	s.Classify = nil
	s.OnStateChange = nil
	s.OnCallbackError = nil
	s.Monitor = nil
	s.Clock = nil
	s.Random = nil
	return s
}
