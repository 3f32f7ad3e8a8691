package main

import (
	"time"

	"github.com/brownout-go/breaker"
)

// perMinute is for one call a minute.
func perMinute() breaker.Settings {
	s := breaker.Classic()
	s.ConsecutiveFailures = 3
	s.FailureRatio = 0.5
	s.Failures = breaker.Failures{Off: true}
	s.MinCalls = 5
	s.Window = 15 * time.Minute
	s.SlowCalls.Window = 30*time.Minute + time.Second
	s.BreakDuration = 2 * time.Minute
	s.MaxBreakDuration = 10 * time.Minute
	s.ProbeSuccesses = 1
	return s
}

// tenPerSecond is for ten calls a second: Classic with a ramp.
func tenPerSecond() breaker.Settings {
	s := breaker.Classic()
	s.Recovery = breaker.Recovery{Fraction: 0.25}
	return s
}

// tenThousandPerSecond is for ten thousand calls a second.
func tenThousandPerSecond() breaker.Settings {
	s := breaker.Classic()
	s.ConsecutiveFailures = 50
	s.FailureRatio = 0.2
	s.MinCalls = 1000
	s.Window = 10 * time.Second
	s.BreakDuration = 2 * time.Second
	s.MaxBreakDuration = 30 * time.Second
	s.ProbeCohort = 100
	return s
}

// fleet is for many processes whose dependency takes half a minute to warm up.
func fleet() breaker.Settings {
	s := breaker.Classic()
	s.MaxBreakDuration = 30 * time.Second
	s.Recovery = breaker.Recovery{Fraction: 1, Min: 15 * time.Second}
	return s
}

// flaky is for a dependency that fails 30 % of its calls on a good day.
func flaky() breaker.Settings {
	s := breaker.Classic()
	s.ConsecutiveFailures = breaker.Disabled
	s.FailureRatio = 0.6
	s.Failures = breaker.Failures{Off: true}
	s.ProbeCohort = 10
	return s
}

// bimodal is for a dependency that answers half of its calls from a cache in 1 ms and the other half from a disk in 25 ms.
func bimodal() breaker.Settings {
	s := breaker.Classic()
	s.SlowCallThreshold = 250 * time.Millisecond
	s.SlowCalls = breaker.SlowCalls{Off: true, EndedOnly: true}
	return s
}
