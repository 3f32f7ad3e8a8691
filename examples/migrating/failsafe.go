package migrating

import (
	"context"
	"errors"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/retrypolicy"

	"github.com/brownout-go/breaker"
)

func failsafeBefore(fetch fetcher) fetcher {
	cb := circuitbreaker.NewBuilder[int]().
		WithFailureRateThreshold(0.5, 20, 30*time.Second).
		WithDelay(15 * time.Second).
		WithJitterFactor(0.25).
		WithSuccessThreshold(2).
		HandleIf(func(_ int, err error) bool {
			return err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, errNoPrice)
		}).
		Build()
	retries := retrypolicy.NewBuilder[int]().
		WithMaxRetries(2).
		AbortOnErrors(circuitbreaker.ErrOpen, errNoPrice).
		ReturnLastFailure().
		Build()
	executor := failsafe.With[int](retries, cb)
	return func(ctx context.Context, item string) (int, error) {
		return executor.WithContext(ctx).Get(func() (int, error) { return fetch(ctx, item) })
	}
}

func failsafeAfter(fetch fetcher) fetcher {
	s := breaker.Classic()
	s.Name = "prices"
	s.ConsecutiveFailures = breaker.Disabled
	s.FailureRatio = 0.5
	s.Classify = func(err error) breaker.Outcome {
		if errors.Is(err, errNoPrice) {
			return breaker.Success
		}
		return breaker.Transient
	}
	b := breaker.MustNew(s)
	retries := retrypolicy.NewBuilder[int]().
		WithMaxRetries(2).
		AbortOnErrors(breaker.ErrRejected, errNoPrice).
		ReturnLastFailure().
		Build()
	executor := failsafe.With[int](retries)
	return func(ctx context.Context, item string) (int, error) {
		return executor.WithContext(ctx).Get(func() (int, error) {
			return breaker.Execute(ctx, b, func(ctx context.Context) (int, error) { return fetch(ctx, item) })
		})
	}
}
