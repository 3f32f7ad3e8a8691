package breaker_test

import (
	"fmt"
	"time"

	"github.com/brownout-go/breaker"
)

// The three settings that are off by default: a failure trip with a bounded rate of false alarms, a slow threshold for latency
// with two humps, and hangs seen before a call returns.
func ExampleSettings_beyond() {
	settings := breaker.Settings{
		Failures:  breaker.Failures{FalseAlarmEvery: 30 * 24 * time.Hour},
		SlowCalls: breaker.SlowCalls{TailQuantile: 0.75, Overdue: true},
	}
	b := breaker.MustNew(settings)
	fmt.Println(b.Settings().Failures.Window, b.Settings().SlowCalls.Window)
	// Output: 5m0s 5m0s
}
