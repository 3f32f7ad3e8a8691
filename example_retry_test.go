package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/brownout-go/breaker"
)

// instantClock is a fake clock for examples: every wait ends at once, and moves the clock forward by its length.
type instantClock struct{ *clock.Mock }

func (c instantClock) After(d time.Duration) <-chan time.Time {
	fired := c.Mock.After(d)
	c.Add(d)
	return fired
}

// retry calls f until it succeeds or the attempts are used up. It is outside the breaker: each attempt counts, so the one that
// opens the circuit stops the next. A refusal is not an attempt, and there is no point in trying again before its RetryAfter.
func retry(ctx context.Context, clk breaker.Clock, b *breaker.Breaker, attempts int, f func(context.Context) error) error {
	pause := 100 * time.Millisecond
	for {
		err := b.Execute(ctx, f)
		wait := pause
		var refusal *breaker.RejectedError
		if errors.As(err, &refusal) {
			if left, ok := refusal.RetryAfter(); ok {
				wait = left
			}
		} else {
			attempts--
			pause *= 2
		}
		if err == nil || attempts == 0 {
			return err
		}
		select {
		case <-clk.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// With ten attempts and a limit of three failures, a dependency that is down is called three times, then left alone for the break.
func Example_retry() {
	clk := instantClock{clock.NewMock()}
	start := clk.Now()
	b := breaker.MustNew(breaker.Settings{
		Name:                "inventory",
		ConsecutiveFailures: 3,
		BreakDuration:       15 * time.Second,
		BreakJitter:         breaker.JitterNone,
		Clock:               clk,
	})
	err := retry(context.Background(), clk, b, 10, func(context.Context) error {
		fmt.Println("asked after", clk.Since(start))
		if clk.Since(start) < 10*time.Second {
			return errors.New("connection refused")
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// asked after 0s
	// asked after 100ms
	// asked after 300ms
	// asked after 15.3s
	// <nil>
}
