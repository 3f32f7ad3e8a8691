// Command fleet runs the fleets of docs/recovery.md: how many probes a second meet a dependency that has just come back, and how
// long a ramp must be for one that warms up slowly.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/brownout-go/breaker"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	fmt.Println("200 processes, one probe at a time each: probes in the worst second")
	for _, j := range []breaker.Jitter{breaker.JitterNone, breaker.JitterEqual, breaker.JitterFull} {
		r, err := pulse(j).Run(ctx)
		if err != nil {
			return err
		}
		fmt.Printf("%8s %4d\n", j, r.PeakProbesPerSecond)
	}
	fmt.Println("\n50 processes, served of all calls, by the time the dependency takes to warm up and the length of the ramp")
	fmt.Printf("%8s", "")
	for _, ramp := range ramps {
		fmt.Printf(" %8v", ramp)
	}
	fmt.Println()
	for _, warmup := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute} {
		fmt.Printf("%8v", warmup)
		for _, ramp := range ramps {
			r, err := cold(warmup, ramp).Run(ctx)
			if err != nil {
				return err
			}
			fmt.Printf(" %6.1f %%", 100*r.Availability())
		}
		fmt.Println()
	}
	return nil
}

// pulse is a fleet that an outage opens together.
func pulse(j breaker.Jitter) breaker.Simulation {
	return breaker.Simulation{
		Settings: jittered(j),
		Dependency: breaker.Dependency{
			P50: 10 * time.Millisecond, P99: 50 * time.Millisecond,
			Incidents: []breaker.Incident{{After: 20 * time.Second, For: time.Minute, Failing: 1}},
		},
		Load:     breaker.Load{PerSecond: 20},
		Breakers: 200,
		Duration: 2*time.Minute + 30*time.Second,
		Seed:     1,
	}
}

func jittered(j breaker.Jitter) breaker.Settings {
	s := breaker.Classic()
	s.BreakJitter = j
	return s
}

var ramps = []time.Duration{0, 5 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute}

// cold is a fleet whose dependency is down for 30 s and then has a twentieth of its capacity.
func cold(warmup, ramp time.Duration) breaker.Simulation {
	s := breaker.Simulation{
		Settings: breaker.Classic(),
		Dependency: breaker.Dependency{
			P50: 20 * time.Millisecond, P99: 60 * time.Millisecond, FailureRate: 0.0001, Capacity: 75, Warmup: warmup,
			Incidents: []breaker.Incident{{After: time.Minute, For: 30 * time.Second, Failing: 1}},
		},
		Load:     breaker.Load{PerSecond: 20},
		Breakers: 50,
		Duration: 10 * time.Minute,
		Seed:     1,
	}
	s.Settings.MaxBreakDuration = 30 * time.Second
	if ramp > 0 {
		s.Settings.Recovery = breaker.Recovery{Fraction: 1, Min: ramp, Max: ramp}
	}
	return s
}
