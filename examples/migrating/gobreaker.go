package migrating

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/brownout-go/breaker"
)

func gobreakerBefore(fetch fetcher) fetcher {
	cb := gobreaker.NewCircuitBreaker[int](gobreaker.Settings{
		Name:         "prices",
		Interval:     30 * time.Second,
		BucketPeriod: 3 * time.Second,
		ReadyToTrip: func(c gobreaker.Counts) bool {
			return c.ConsecutiveFailures >= 5 ||
				c.Requests >= 20 && float64(c.TotalFailures)/float64(c.Requests) >= 0.5
		},
		Timeout:      15 * time.Second,
		MaxRequests:  2,
		IsSuccessful: func(err error) bool { return err == nil || errors.Is(err, errNoPrice) },
		IsExcluded:   func(err error) bool { return errors.Is(err, context.Canceled) },
		OnStateChange: func(name string, from, to gobreaker.State) {
			slog.Info("circuit", "name", name, "from", from, "to", to)
		},
	})
	return func(ctx context.Context, item string) (int, error) {
		return cb.Execute(func() (int, error) { return fetch(ctx, item) })
	}
}

func gobreakerAfter(fetch fetcher) fetcher {
	s := breaker.Classic()
	s.Name = "prices"
	s.FailureRatio = 0.5
	s.Classify = func(err error) breaker.Outcome {
		if errors.Is(err, errNoPrice) {
			return breaker.Success
		}
		return breaker.Transient
	}
	s.OnStateChange = func(ctx context.Context, c breaker.StateChange) {
		slog.InfoContext(ctx, "circuit", "change", c)
	}
	b := breaker.MustNew(s)
	return func(ctx context.Context, item string) (int, error) {
		return breaker.Execute(ctx, b, func(ctx context.Context) (int, error) { return fetch(ctx, item) })
	}
}
