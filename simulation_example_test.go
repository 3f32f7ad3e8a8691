package breaker_test

import (
	"context"
	"fmt"
	"time"

	"github.com/brownout-go/breaker"
)

// Would these settings have opened in a brownout that errors never showed, and how fast?
func ExampleSimulation() {
	simulation := breaker.Simulation{
		Settings: breaker.Settings{Recovery: breaker.Recovery{Fraction: 0.25}},
		Dependency: breaker.Dependency{
			P50: 20 * time.Millisecond,
			P99: 80 * time.Millisecond,
			Incidents: []breaker.Incident{
				{After: 2 * time.Minute, For: time.Minute, Slower: 10},
			},
		},
		Load:     breaker.Load{PerSecond: 50},
		Duration: 5 * time.Minute,
		Seed:     1,
	}
	report, err := simulation.Run(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("opened:", report.Opened)
	fmt.Println("within 20 s:", report.TimeToOpen < 20*time.Second)
	fmt.Println("false opens:", report.FalseOpens)
	fmt.Println("recovered:", report.Recovered)
	// Output:
	// opened: true
	// within 20 s: true
	// false opens: 0
	// recovered: true
}
