package migrating

import (
	"context"
	"errors"
	"time"

	"github.com/cep21/circuit/v4"
	"github.com/cep21/circuit/v4/closers/hystrix"

	"github.com/brownout-go/breaker"
)

func circuitBefore(fetch fetcher, fallback int) fetcher {
	trips := hystrix.Factory{
		ConfigureOpener: hystrix.ConfigureOpener{
			ErrorThresholdPercentage: 50,
			RequestVolumeThreshold:   20,
			RollingDuration:          30 * time.Second,
		},
		ConfigureCloser: hystrix.ConfigureCloser{
			SleepWindow:                  15 * time.Second,
			HalfOpenAttempts:             2,
			RequiredConcurrentSuccessful: 2,
		},
	}
	manager := circuit.Manager{DefaultCircuitProperties: []circuit.CommandPropertiesConstructor{trips.Configure}}
	c := manager.MustCreateCircuit("prices", circuit.Config{
		Execution: circuit.ExecutionConfig{Timeout: time.Second, MaxConcurrentRequests: 100},
	})
	return func(ctx context.Context, item string) (price int, err error) {
		err = c.Execute(ctx, func(ctx context.Context) error {
			price, err = fetch(ctx, item)
			if errors.Is(err, errNoPrice) {
				return circuit.SimpleBadRequest{Err: err}
			}
			return err
		}, func(context.Context, error) error {
			price = fallback
			return nil
		})
		return price, err
	}
}

func circuitAfter(fetch fetcher, fallback int) fetcher {
	s := breaker.Classic()
	s.Name = "prices"
	s.ConsecutiveFailures = breaker.Disabled
	s.FailureRatio = 0.5
	s.HalfOpenProbes = 2
	b := breaker.MustNew(s)
	calls := make(limit, 100)
	return func(ctx context.Context, item string) (int, error) {
		if !calls.enter() {
			return fallback, nil
		}
		defer calls.leave()
		price, err := breaker.Execute(ctx, b, func(ctx context.Context) (int, error) {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			price, err := fetch(ctx, item)
			if errors.Is(err, errNoPrice) {
				return 0, breaker.Mark(err, breaker.Permanent)
			}
			return price, err
		})
		if err != nil && !errors.Is(err, errNoPrice) {
			return fallback, nil
		}
		return price, err
	}
}
