package entry

import (
	"context"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/adaptivethrottler"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
)

const failsafeModule = "github.com/failsafe-go/failsafe-go"

func failsafes() []Entry {
	const library = "failsafe-go"
	return []Entry{
		{
			Library: library, Config: asItComes, Module: failsafeModule,
			Setup: "`circuitbreaker.NewWithDefaults`: opens on the first failure, for a minute",
			New:   func(uint64) Guard { return newFailsafe(circuitbreaker.NewWithDefaults[any]()) },
		},
		{
			Library: library, Config: tuned, Module: failsafeModule,
			Setup: "the values of its page: `WithFailureRateThreshold(0.2, 5, time.Minute)`, `WithDelay(30 s)`, " +
				"`WithSuccessThreshold(5)`; cancelled calls excluded with `HandleIf`",
			New:   func(uint64) Guard { return newFailsafe(failsafeTuned().Build()) },
			Bench: failsafeBench,
		},
	}
}

func failsafeTuned() circuitbreaker.Builder[any] {
	return circuitbreaker.NewBuilder[any]().
		WithFailureRateThreshold(0.2, 5, time.Minute).
		WithDelay(30 * time.Second).
		WithSuccessThreshold(5).
		HandleIf(func(_ any, err error) bool { return isFailure(err) })
}

type failsafeGuard struct {
	b        circuitbreaker.CircuitBreaker[any]
	executor failsafe.Executor[any]
}

func newFailsafe(b circuitbreaker.CircuitBreaker[any]) Guard {
	return failsafeGuard{b, failsafe.With[any](b)}
}

func (g failsafeGuard) Call(ctx context.Context, fn Func) error {
	return g.executor.WithContext(ctx).Run(func() error { return fn(ctx) })
}

func (g failsafeGuard) State() State { return stateOf(g.b.IsClosed()) }

func failsafeBench() Bench {
	build := func(delay time.Duration) failsafe.Executor[any] {
		return failsafe.With[any](failsafeTuned().WithSuccessThreshold(1).WithDelay(delay).Build())
	}
	closed, open, halfOpen := build(time.Hour), build(time.Hour), build(1)
	for range 5 {
		_ = open.Run(failPlain)
		_ = halfOpen.Run(failPlain)
	}
	calls := func(e failsafe.Executor[any], n int) {
		for range n {
			_ = e.Run(succeedPlain)
		}
	}
	return Bench{
		Success: func(n int) { calls(closed, n) },
		Refused: func(n int) { calls(open, n) },
		HalfOpen: func(n int) { // from within the probe, which then fails
			_ = halfOpen.Run(func() error { calls(halfOpen, n); return errBench })
		},
		New:  func() any { return build(time.Hour) },
		Warm: func(e any) { calls(e.(failsafe.Executor[any]), benchSamples) },
	}
}

func throttlers() []Entry {
	const library = "failsafe-go throttler"
	return []Entry{
		{
			Library: library, Config: asItComes, Module: failsafeModule, Sheds: true,
			Setup: "`adaptivethrottler.NewWithDefaults`: refuses a share of up to 90 % from 10 % failures a minute on",
			New:   func(uint64) Guard { return newThrottler(adaptivethrottler.NewWithDefaults[any]()) },
		},
		{
			Library: library, Config: tuned, Module: failsafeModule, Sheds: true,
			Setup: "the values of its page: `WithFailureRateThreshold(0.1, 5, time.Minute)`, `WithMaxRejectionRate(0.9)`; " +
				"cancelled calls excluded with `HandleIf`",
			New:   func(uint64) Guard { return newThrottler(throttlerTuned()) },
			Bench: throttlerBench,
		},
	}
}

func throttlerTuned() adaptivethrottler.AdaptiveThrottler[any] {
	return adaptivethrottler.NewBuilder[any]().
		WithFailureRateThreshold(0.1, 5, time.Minute).
		WithMaxRejectionRate(0.9).
		HandleIf(func(_ any, err error) bool { return isFailure(err) }).
		Build()
}

type throttlerGuard struct {
	shedding
	executor failsafe.Executor[any]
}

func newThrottler(t adaptivethrottler.AdaptiveThrottler[any]) Guard {
	return &throttlerGuard{executor: failsafe.With[any](t)}
}

func (g *throttlerGuard) Call(ctx context.Context, fn Func) error {
	err := g.executor.WithContext(ctx).Run(func() error { return fn(ctx) })
	g.note(err == adaptivethrottler.ErrExceeded)
	return err
}

func throttlerBench() Bench {
	build := func() failsafe.Executor[any] { return failsafe.With[any](throttlerTuned()) }
	closed := build()
	calls := func(e failsafe.Executor[any], n int) {
		for range n {
			_ = e.Run(succeedPlain)
		}
	}
	return Bench{
		Success: func(n int) { calls(closed, n) },
		New:     func() any { return build() },
		Warm:    func(e any) { calls(e.(failsafe.Executor[any]), benchSamples) },
	}
}
