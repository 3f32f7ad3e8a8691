package migrating

import (
	"context"
	"errors"
	"time"

	circuitbreaker "github.com/mercari/go-circuitbreaker"

	"github.com/brownout-go/breaker"
)

func mercariBefore(fetch fetcher) fetcher {
	cb := circuitbreaker.New(
		circuitbreaker.WithTripFunc(circuitbreaker.NewTripFuncFailureRate(20, 0.5)),
		circuitbreaker.WithCounterResetInterval(30*time.Second),
		circuitbreaker.WithOpenTimeout(15*time.Second),
		circuitbreaker.WithHalfOpenMaxSuccesses(2),
		circuitbreaker.WithFailOnContextDeadline(true),
	)
	return func(ctx context.Context, item string) (int, error) {
		price, err := cb.Do(ctx, func() (any, error) {
			price, err := fetch(ctx, item)
			if errors.Is(err, errNoPrice) {
				return 0, circuitbreaker.MarkAsSuccess(err)
			}
			return price, err
		})
		if err != nil {
			return 0, err
		}
		return price.(int), nil
	}
}

func mercariAfter(fetch fetcher) fetcher {
	s := breaker.Classic()
	s.Name = "prices"
	s.ConsecutiveFailures = breaker.Disabled
	s.FailureRatio = 0.5
	b := breaker.MustNew(s)
	return func(ctx context.Context, item string) (int, error) {
		return breaker.Execute(ctx, b, func(ctx context.Context) (int, error) {
			price, err := fetch(ctx, item)
			if errors.Is(err, errNoPrice) {
				return 0, breaker.Mark(err, breaker.Success)
			}
			return price, err
		})
	}
}
