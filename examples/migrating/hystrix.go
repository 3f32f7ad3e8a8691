package migrating

import (
	"context"
	"time"

	"github.com/afex/hystrix-go/hystrix"

	"github.com/brownout-go/breaker"
)

func hystrixBefore(fetch fetcher) fetcher {
	hystrix.ConfigureCommand("prices", hystrix.CommandConfig{
		ErrorPercentThreshold:  50,
		RequestVolumeThreshold: 20,
		SleepWindow:            5000,
		Timeout:                1000,
		MaxConcurrentRequests:  100,
	})
	return func(ctx context.Context, item string) (int, error) {
		prices := make(chan int, 1) // the function runs on a goroutine of its own, and may outlive the call
		err := hystrix.DoC(ctx, "prices", func(ctx context.Context) error {
			price, err := fetch(ctx, item)
			if err == nil {
				prices <- price
			}
			return err
		}, nil)
		if err != nil {
			return 0, err
		}
		return <-prices, nil
	}
}

func hystrixAfter(fetch fetcher) fetcher {
	s := breaker.Classic()
	s.Name = "prices"
	s.ConsecutiveFailures = breaker.Disabled
	s.FailureRatio = 0.5
	s.Window = 10 * time.Second
	s.BreakDuration = 5 * time.Second
	s.ProbeSuccesses = 1
	b := breaker.MustNew(s)
	calls := make(limit, 100)
	return func(ctx context.Context, item string) (int, error) {
		if !calls.enter() {
			return 0, errBusy
		}
		defer calls.leave()
		return breaker.Execute(ctx, b, func(ctx context.Context) (int, error) {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			return fetch(ctx, item)
		})
	}
}
