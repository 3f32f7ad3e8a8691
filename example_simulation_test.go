package breaker_test

import (
	"context"
	"fmt"
	"time"

	"github.com/brownout-go/breaker"
)

// A dependency that comes back cold from an outage, and takes its load back along a ramp.
func ExampleSimulation_Run() {
	ctx := context.Background()
	report, err := breaker.Simulation{
		Settings: breaker.Settings{BreakDuration: 5 * time.Second, Recovery: breaker.Recovery{Fraction: 0.25}},
		Dependency: breaker.Dependency{
			P50: 100 * time.Millisecond, P99: 200 * time.Millisecond, Capacity: 40, Warmup: 20 * time.Second,
			Incidents: []breaker.Incident{{After: 20 * time.Second, For: 10 * time.Second, Failing: 1}},
		},
		Load:     breaker.Load{PerSecond: 200},
		Duration: 2 * time.Minute,
		Seed:     1,
	}.Run(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("recovered:", report.Recovered)
	fmt.Println("succeeded, of those admitted:", report.Succeeded*100/report.Admitted >= 95)
	// Output:
	// recovered: true
	// succeeded, of those admitted: true
}
