package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/brownout-go/breaker"
)

// The quickest way to start: five failures in a row open the circuit, and the sixth call never reaches the dependency. A breaker
// whose ConsecutiveFailures and BreakDuration are not written goes by what is normal for the dependency instead.
func ExampleBreaker_Execute() {
	b := breaker.MustNew(breaker.Settings{
		Name:                "inventory",
		ConsecutiveFailures: 5,
		BreakDuration:       15 * time.Second,
		BreakJitter:         breaker.JitterNone, // for the output below; leave it out in a program
		Clock:               clock.NewMock(),    // this one too
	})
	reserve := func(ctx context.Context) error {
		return errors.New("connection refused")
	}
	for range 6 {
		err := b.Execute(context.Background(), reserve)
		fmt.Println(err)
	}
	// Output:
	// connection refused
	// connection refused
	// connection refused
	// connection refused
	// connection refused
	// breaker: "inventory" is open, retry after 15 s
}

// The package function Execute is for calls with a result. errors.As tells whether an error is a refusal.
func ExampleExecute() {
	b := breaker.MustNew(breaker.Settings{Name: "inventory", Clock: clock.NewMock()})
	stock := func(ctx context.Context) (int, error) { return 42, nil }

	n, err := breaker.Execute(context.Background(), b, stock)
	fmt.Println(n, err)

	b.Isolate() // as an operator would, during maintenance
	_, err = breaker.Execute(context.Background(), b, stock)
	var refusal *breaker.RejectedError
	if errors.As(err, &refusal) {
		fmt.Println("not asked:", refusal.Name, "is", refusal.State)
	}
	// Output:
	// 42 <nil>
	// not asked: inventory is isolated
}

// inventory is a client with one breaker, which all of its calls share.
type inventory struct {
	breaker *breaker.Breaker
	down    bool
}

func (c *inventory) Stock(ctx context.Context, item string) (int, error) {
	return breaker.Execute(ctx, c.breaker, func(ctx context.Context) (int, error) {
		if c.down {
			return 0, errors.New("connection refused")
		}
		return 42, nil
	})
}

func (c *inventory) Reserve(ctx context.Context, item string) error {
	return c.breaker.Execute(ctx, func(ctx context.Context) error {
		if c.down {
			return errors.New("connection refused")
		}
		return nil
	})
}

// A breaker knows only about the calls that go through it. If all calls to a dependency share one, it notices an outage in any of
// them and stops all of them. With one breaker for each kind of call, each would have to find out for itself.
func Example_shareOneBreaker() {
	client := &inventory{
		breaker: breaker.MustNew(breaker.Settings{Name: "inventory", ConsecutiveFailures: 2, Clock: clock.NewMock()}),
		down:    true,
	}
	ctx := context.Background()
	_, err := client.Stock(ctx, "apples")
	fmt.Println("stock:", err)
	err = client.Reserve(ctx, "apples")
	fmt.Println("reserve:", err)
	_, err = client.Stock(ctx, "pears")
	fmt.Println("stock refused:", errors.Is(err, breaker.ErrRejected))
	// Output:
	// stock: connection refused
	// reserve: connection refused
	// stock refused: true
}
