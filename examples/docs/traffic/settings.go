package main

import (
	"time"

	"github.com/brownout-go/breaker"
)

// perMinute is for one call a minute.
func perMinute() breaker.Settings {
	return breaker.Settings{
		ConsecutiveFailures: 3,
		FailureRatio:        0.5,
		MinCalls:            5,
		Window:              15 * time.Minute,
		BreakDuration:       2 * time.Minute,
		MaxBreakDuration:    10 * time.Minute,
		ProbeSuccesses:      1,
	}
}

// tenPerSecond is for ten calls a second: the defaults, and a ramp.
func tenPerSecond() breaker.Settings {
	return breaker.Settings{
		Recovery: breaker.Recovery{Fraction: 0.25},
	}
}

// tenThousandPerSecond is for ten thousand calls a second.
func tenThousandPerSecond() breaker.Settings {
	return breaker.Settings{
		ConsecutiveFailures: 50,
		FailureRatio:        0.2,
		MinCalls:            1000,
		Window:              10 * time.Second,
		BreakDuration:       2 * time.Second,
		MaxBreakDuration:    30 * time.Second,
		ProbeCohort:         100,
	}
}

// fleet is for many processes whose dependency takes half a minute to warm up.
func fleet() breaker.Settings {
	return breaker.Settings{
		MaxBreakDuration: 30 * time.Second,
		Recovery:         breaker.Recovery{Fraction: 1, Min: 15 * time.Second},
	}
}

// flaky is for a dependency that fails 30 % of its calls on a good day.
func flaky() breaker.Settings {
	return breaker.Settings{
		ConsecutiveFailures: breaker.Disabled,
		FailureRatio:        0.6,
		Failures:            breaker.Failures{Off: true},
		ProbeCohort:         10,
	}
}

// bimodal is for a dependency that answers half of its calls from a cache in 1 ms and the other half from a disk in 25 ms.
func bimodal() breaker.Settings {
	return breaker.Settings{
		SlowCallThreshold: 250 * time.Millisecond,
		SlowCalls:         breaker.SlowCalls{Off: true},
	}
}
