package breaker_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/benbjohnson/clock"

	"github.com/brownout-go/breaker"
)

// reply is what a service answers; its errors come as a code.
type reply struct{ Code string }

// Some dependencies answer without an error and say in the answer that they failed. A classifier for the call sees both.
func ExampleExecuteClassified() {
	b := breaker.MustNew(breaker.Settings{Name: "payments", Clock: clock.NewMock()})
	classify := func(r reply, err error) breaker.Outcome {
		switch {
		case err != nil, r.Code == "UNAVAILABLE":
			return breaker.Transient
		case r.Code == "RESOURCE_EXHAUSTED":
			return breaker.Throttled
		case r.Code == "INVALID_ARGUMENT":
			return breaker.Permanent
		default:
			return breaker.Success
		}
	}
	for _, code := range []string{"OK", "INVALID_ARGUMENT", "RESOURCE_EXHAUSTED", "UNAVAILABLE"} {
		r, err := breaker.ExecuteClassified(context.Background(), b, func(context.Context) (reply, error) {
			return reply{code}, nil
		}, classify)
		fmt.Println(r.Code, err)
	}
	counts := b.Snapshot().Counts
	fmt.Println("calls:", counts.Calls, "failures:", counts.Failures)
	// Output:
	// OK <nil>
	// INVALID_ARGUMENT <nil>
	// RESOURCE_EXHAUSTED <nil>
	// UNAVAILABLE <nil>
	// calls: 2 failures: 1
}

var errNoRows = errors.New("no rows")

// Classify judges the errors of every call. An answer that is no failure of the dependency must not open its circuit.
func ExampleSettings_classify() {
	b := breaker.MustNew(breaker.Settings{
		Name: "database",
		Classify: func(err error) breaker.Outcome {
			if errors.Is(err, errNoRows) {
				return breaker.Success // the database has done its work
			}
			return breaker.Transient
		},
		Clock: clock.NewMock(),
	})
	for range 100 {
		_ = b.Execute(context.Background(), func(context.Context) error { return errNoRows })
	}
	fmt.Println(b.State())
	// Output: closed
}

// A deadline that ran out counts as a failure, because a dependency that hangs fails in no other way. Where the budget of a call
// is smaller than the dependency needs on a good day, the deadline says nothing about it.
func ExampleSettings_classify_tinyBudget() {
	b := breaker.MustNew(breaker.Settings{
		Name: "suggestions",
		Classify: func(err error) breaker.Outcome {
			if errors.Is(err, context.DeadlineExceeded) {
				return breaker.Ignored
			}
			return breaker.Transient
		},
		Clock: clock.NewMock(),
	})
	for range 100 {
		_ = b.Execute(context.Background(), func(context.Context) error { return context.DeadlineExceeded })
	}
	fmt.Println(b.State(), b.Snapshot().Totals.Ignored)
	// Output: closed 100
}

// The place that knows what a failure means can say it, whatever the classifiers further up make of the error.
func ExampleMark() {
	b := breaker.MustNew(breaker.Settings{Name: "payments", ConsecutiveFailures: 1, Clock: clock.NewMock()})
	err := b.Execute(context.Background(), func(context.Context) error {
		return breaker.Mark(errors.New("card number has 15 digits"), breaker.Permanent)
	})
	fmt.Println(err)
	fmt.Println(b.State())
	// Output:
	// card number has 15 digits
	// closed
}
