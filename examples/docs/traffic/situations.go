package main

import (
	"time"

	"github.com/brownout-go/breaker"
)

// situation is one kind of traffic on one kind of day.
type situation struct {
	kind, day string
	settings  breaker.Settings // of the kind
	seeds     uint64           // so many runs
	breaker.Simulation
}

func situations() []situation {
	return []situation{
		{"one a minute", "1 % fail", perMinute(), 5, model(1./60, 24*time.Hour, 0.01)},
		{"one a minute", "an outage of 1 h", perMinute(), 10, model(1./60, 4*time.Hour, 0, outage(2*time.Hour, time.Hour))},
		{"one a minute", "10 times slower for 1 h", perMinute(), 10, model(1./60, 4*time.Hour, 0, brownout(2*time.Hour, time.Hour))},
		{"ten a second", "0.1 % fail", tenPerSecond(), 1, model(10, 6*time.Hour, 0.001)},
		{"ten a second", "an outage of 1 min", tenPerSecond(), 10, model(10, 15*time.Minute, 0, outage(10*time.Minute, time.Minute))},
		{"ten a second", "10 times slower for 1 min", tenPerSecond(), 10,
			model(10, 15*time.Minute, 0, brownout(10*time.Minute, time.Minute))},
		{"ten thousand a second", "10 % fail", tenThousandPerSecond(), 1, model(10_000, time.Minute, 0.1)},
		{"ten thousand a second", "an outage of 10 s", tenThousandPerSecond(), 1,
			model(10_000, time.Minute, 0.001, outage(20*time.Second, 10*time.Second))},
		{"ten thousand a second", "10 times slower for 10 s", tenThousandPerSecond(), 1,
			model(10_000, time.Minute, 0.001, brownout(20*time.Second, 10*time.Second))},
		{"a fleet of 50", "an outage of 30 s", fleet(), 3, fleetModel()},
		{"a flaky dependency", "30 % fail", flaky(), 5, model(10, time.Hour, 0.3)},
		{"a flaky dependency", "an outage of 1 min", flaky(), 10, model(10, 15*time.Minute, 0.3, outage(10*time.Minute, time.Minute))},
	}
}

// candidate is one way to configure a breaker for a situation.
type candidate struct {
	name     string
	settings breaker.Settings
}

// candidates are the fixed rules, the settings of the row and, if that has none, the fixed rules with a ramp.
func (s situation) candidates() []candidate {
	list := []candidate{{"classic", breaker.Classic()}, {"row", s.settings}}
	if s.settings.Recovery.Fraction == 0 {
		list = append(list, candidate{"ramp", tenPerSecond()})
	}
	return list
}

// model is a dependency with a latency of 20 ms and 80 ms at the 99th percentile.
func model(perSecond float64, length time.Duration, failing float64, incidents ...breaker.Incident) breaker.Simulation {
	return breaker.Simulation{
		Dependency: breaker.Dependency{
			P50: 20 * time.Millisecond, P99: 80 * time.Millisecond, FailureRate: failing, Incidents: incidents,
		},
		Load:     breaker.Load{PerSecond: perSecond},
		Duration: length,
	}
}

func outage(after, length time.Duration) breaker.Incident {
	return breaker.Incident{After: after, For: length, Failing: 1}
}

func brownout(after, length time.Duration) breaker.Incident {
	return breaker.Incident{After: after, For: length, Slower: 10}
}

// fleetModel shares a dependency that serves some 12,000 calls a second warm, and a twentieth of that cold.
func fleetModel() breaker.Simulation {
	s := model(20, 6*time.Minute, 0.0001, outage(time.Minute, 30*time.Second))
	s.Breakers = 50
	s.Dependency.P99 = 60 * time.Millisecond
	s.Dependency.Capacity, s.Dependency.Warmup = 75, 30*time.Second
	return s
}
