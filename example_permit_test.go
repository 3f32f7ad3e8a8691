package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/brownout-go/breaker"
)

// A permit is for work that does not fit into one function. Releasing it in a defer is always safe: once Done has reported, the
// release does nothing.
func ExamplePermit() {
	b := breaker.MustNew(breaker.Settings{Name: "mail", Clock: clock.NewMock()})
	send := func(ctx context.Context, to string) error {
		permit, err := b.TryAcquire(ctx)
		if err != nil {
			return err
		}
		defer permit.Release()
		if to == "" {
			return errors.New("no address") // the mail server was never asked: the release counts nothing
		}
		err = deliver(ctx, to)
		permit.Done(ctx, err)
		return err
	}
	fmt.Println(send(context.Background(), "ann@example.com"))
	fmt.Println(send(context.Background(), ""))
	totals := b.Snapshot().Totals
	fmt.Println("successes:", totals.Successes, "ignored:", totals.Ignored)
	// Output:
	// <nil>
	// no address
	// successes: 1 ignored: 1
}

func deliver(context.Context, string) error { return nil }

// If the work has been measured already, or ran elsewhere, report its latency with the permit.
func ExamplePermit_RecordLatency() {
	b := breaker.MustNew(breaker.Settings{
		Name:              "render",
		SlowCallThreshold: time.Second,
		Clock:             clock.NewMock(),
	})
	permit, err := b.TryAcquire(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer permit.Release()
	type job struct{ took time.Duration }
	finished := job{took: 3 * time.Second} // from a queue of results
	counted := permit.RecordLatency(breaker.Success, finished.took)
	fmt.Println("counted:", counted, "slow:", b.Snapshot().Counts.Slow)
	// Output: counted: true slow: 1
}

type message string

// When a consumer is refused, the message has not been tried: it is neither done nor bad. It goes back to the queue without being
// acknowledged, and the consumer comes back when the break is over.
func Example_consumer() {
	b := breaker.MustNew(breaker.Settings{
		Name:                "warehouse",
		ConsecutiveFailures: 1,
		BreakDuration:       15 * time.Second,
		BreakJitter:         breaker.JitterNone,
		Clock:               clock.NewMock(),
	})
	handle := func(m message) error {
		return b.Execute(context.Background(), func(context.Context) error { return errors.New("warehouse is down") })
	}
	for _, m := range []message{"order 1", "order 2"} {
		err := handle(m)
		var refusal *breaker.RejectedError
		switch {
		case errors.As(err, &refusal):
			wait, _ := refusal.RetryAfter()
			fmt.Printf("%s: back to the queue, consumer pauses for %v\n", m, wait)
		case err != nil:
			fmt.Printf("%s: one attempt used up: %v\n", m, err)
		default:
			fmt.Printf("%s: acknowledged\n", m)
		}
	}
	// Output:
	// order 1: one attempt used up: warehouse is down
	// order 2: back to the queue, consumer pauses for 15s
}
