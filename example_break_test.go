package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/brownout-go/breaker"
)

// busyError is the answer of a dependency that says when to come back.
type busyError struct{ After time.Duration }

func (e *busyError) Error() string { return "busy" }

// A dependency that says when to come back knows better than a growing break. Its answer is taken as it is, so bound it. For
// HTTP this is breakerhttp.BreakDuration.
func ExampleSettings_breakDurationFunc() {
	b := breaker.MustNew(breaker.Settings{
		Name:                "inventory",
		ConsecutiveFailures: 1,
		BreakDurationFunc: func(_ context.Context, change breaker.StateChange) (time.Duration, error) {
			var busy *busyError
			if errors.As(change.Err, &busy) && busy.After > 0 {
				return min(busy.After, 10*time.Minute), nil
			}
			return change.Break, nil // no hint: the break that is served anyway
		},
		Clock: clock.NewMock(),
	})
	err := b.Execute(context.Background(), func(context.Context) error {
		return &busyError{After: 90 * time.Second}
	})
	wait, _ := b.RetryAfter()
	fmt.Println(err, "- back in", wait)
	// Output: busy - back in 1m30s
}

// With a ramp, a circuit that has recovered takes its load back step by step. The ramp's length follows the break just served.
func ExampleSettings_recovery() {
	mock := clock.NewMock()
	b := breaker.MustNew(breaker.Settings{
		Name:                "database",
		ConsecutiveFailures: 1,
		BreakDuration:       40 * time.Second,
		BreakJitter:         breaker.JitterNone,
		ProbeSuccesses:      1,
		Recovery:            breaker.Recovery{Fraction: 0.25},
		Clock:               mock,
	})
	ctx := context.Background()
	_ = b.Execute(ctx, func(context.Context) error { return errors.New("too many connections") })
	mock.Add(40 * time.Second)
	_ = b.Execute(ctx, func(context.Context) error { return nil }) // the probe
	for range 4 {
		fmt.Printf("%s, %.0f %% admitted\n", b.State(), 100*b.Snapshot().AdmittedFraction)
		mock.Add(4 * time.Second)
	}
	// Output:
	// recovering, 5 % admitted
	// recovering, 43 % admitted
	// recovering, 81 % admitted
	// closed, 100 % admitted
}

// Settings that contradict each other do not make a breaker. Every problem is reported at once, with its field.
func ExampleSettings_Validate() {
	err := breaker.Settings{
		FailureRatio:     1.5,
		BreakDuration:    time.Minute,
		MaxBreakDuration: time.Second,
	}.Validate()
	var problems *breaker.SettingsError
	if errors.As(err, &problems) {
		for _, p := range problems.Problems {
			fmt.Println(p)
		}
	}
	// Output:
	// Settings.FailureRatio is 1.5: must be in (0, 1], or 0 for off
	// Settings.BreakDuration is 1m0s: must not exceed Settings.MaxBreakDuration, which is 1s
}
