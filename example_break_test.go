package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/brownout-go/breaker"
)

// statusError is a failed HTTP response.
type statusError struct {
	Code   int
	Header http.Header
}

func (e *statusError) Error() string { return http.StatusText(e.Code) }

// retryAfter reads the header of that name, which holds seconds or a date.
func retryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	text := h.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil {
		return time.Duration(seconds) * time.Second, seconds > 0
	}
	at, err := http.ParseTime(text)
	return at.Sub(now), err == nil && at.After(now)
}

// A dependency that says when to come back knows better than a growing break. Its answer is used as it is, so put a limit on it.
func ExampleSettings_breakDurationFunc() {
	b := breaker.MustNew(breaker.Settings{
		Name:                "inventory",
		ConsecutiveFailures: 1,
		BreakDurationFunc: func(_ context.Context, change breaker.StateChange) (time.Duration, error) {
			var failed *statusError
			if errors.As(change.Err, &failed) {
				if d, ok := retryAfter(failed.Header, change.At); ok {
					return min(d, 10*time.Minute), nil
				}
			}
			return change.Break, nil // no hint: the break that is served anyway
		},
		Clock: clock.NewMock(),
	})
	err := b.Execute(context.Background(), func(context.Context) error {
		return &statusError{http.StatusServiceUnavailable, http.Header{"Retry-After": {"90"}}}
	})
	wait, _ := b.RetryAfter()
	fmt.Println(err, "- back in", wait)
	// Output: Service Unavailable - back in 1m30s
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

// New rejects settings that contradict each other. It reports every problem at once, with its field.
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
