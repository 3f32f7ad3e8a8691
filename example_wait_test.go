package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/brownout-go/breaker"
)

// A caller that has time waits for the circuit instead of being refused. Those who wait go in order of arrival; a ramp lets them
// go one after the other, and MaxWaiting bounds their number.
func ExampleBreaker_Acquire() {
	mock := clock.NewMock()
	b := breaker.MustNew(breaker.Settings{
		Name:                "warehouse",
		ConsecutiveFailures: 1,
		BreakJitter:         breaker.JitterNone,
		BreakDuration:       15 * time.Second,
		Recovery:            breaker.Recovery{Fraction: 0.25},
		MaxWaiting:          100,
		Clock:               mock,
	})
	ctx := context.Background()
	_ = b.Execute(ctx, func(context.Context) error { return errors.New("warehouse is down") })
	start := mock.Now()

	done := make(chan struct{})
	go func() {
		defer close(done)
		permit, err := b.Acquire(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer permit.Release()
		fmt.Println("admitted after", mock.Since(start), "- as a probe:", permit.IsProbe())
		permit.Done(ctx, nil)
	}()
	for b.Snapshot().Waiting == 0 { // the output below is that of a fake clock
		runtime.Gosched()
	}
	mock.Add(b.Settings().BreakDuration)
	<-done
	// Output: admitted after 15s - as a probe: true
}

// With WhenOpen, Execute and its siblings wait as well. The context bounds the wait, and so does MaxWait.
func ExampleSettings_whenOpen() {
	b := breaker.MustNew(breaker.Settings{
		Name:                "warehouse",
		ConsecutiveFailures: 1,
		BreakDuration:       15 * time.Second,
		BreakJitter:         breaker.JitterNone,
		WhenOpen:            breaker.Wait,
		MaxWait:             breaker.Disabled, // the context alone
		Clock:               instantClock{clock.NewMock()},
	})
	start := b.Settings().Clock.Now()
	for _, err := range []error{errors.New("warehouse is down"), nil} {
		err := b.Execute(context.Background(), func(context.Context) error { return err })
		fmt.Println(err, "after", b.Settings().Clock.Since(start))
	}
	// Output:
	// warehouse is down after 0s
	// <nil> after 15s
}
