package entry

import (
	"context"
	"errors"
	"time"

	"github.com/sony/gobreaker/v2"
)

const gobreakerModule = "github.com/sony/gobreaker/v2"

func gobreakers() []Entry {
	const library, module = "gobreaker", gobreakerModule
	return []Entry{
		{
			Library: library, Config: asItComes, Module: module,
			Setup: "`Settings{}`: opens on the sixth failure in a row, for 60 s",
			New:   func(uint64) Guard { return newGobreaker(gobreaker.Settings{}) },
		},
		{
			Library: library, Config: tuned, Module: module,
			Setup: "the `ReadyToTrip` of its example (three requests or more, 60 % failed) over a rolling window of 10 × 3 s; " +
				"cancelled calls excluded with `IsExcluded`",
			New:   func(uint64) Guard { return newGobreaker(gobreakerTuned()) },
			Bench: GobreakerBench,
		},
	}
}

func gobreakerTuned() gobreaker.Settings {
	s := gobreakerRolling(0)
	s.ReadyToTrip = func(c gobreaker.Counts) bool {
		return c.Requests >= 3 && float64(c.TotalFailures)/float64(c.Requests) >= 0.6
	}
	s.IsExcluded = func(err error) bool { return errors.Is(err, context.Canceled) }
	return s
}

// gobreakerRolling is a rolling window as long and as finely divided as ours is by default.
func gobreakerRolling(timeout time.Duration) gobreaker.Settings {
	return gobreaker.Settings{Interval: 30 * time.Second, BucketPeriod: 3 * time.Second, Timeout: timeout}
}

type gobreakerGuard struct {
	b *gobreaker.CircuitBreaker[any]
}

func newGobreaker(s gobreaker.Settings) Guard {
	return gobreakerGuard{gobreaker.NewCircuitBreaker[any](s)}
}

func (g gobreakerGuard) Call(ctx context.Context, fn Func) error {
	_, err := g.b.Execute(func() (any, error) { return nil, fn(ctx) })
	return err
}

func (g gobreakerGuard) State() State { return stateOf(g.b.State() == gobreaker.StateClosed) }

// GobreakerBench measures gobreaker with its rolling window.
func GobreakerBench() Bench {
	ok := func() (any, error) { return nil, nil }
	bad := func() (any, error) { return nil, errBench }
	build := func(timeout time.Duration) *gobreaker.CircuitBreaker[any] {
		return gobreaker.NewCircuitBreaker[any](gobreakerRolling(timeout))
	}
	closed, open, halfOpen := build(time.Hour), build(time.Hour), build(1)
	for range 6 {
		_, _ = open.Execute(bad)
		_, _ = halfOpen.Execute(bad)
	}
	calls := func(b *gobreaker.CircuitBreaker[any], n int) {
		for range n {
			_, _ = b.Execute(ok)
		}
	}
	return Bench{
		Success: func(n int) { calls(closed, n) },
		Refused: func(n int) { calls(open, n) },
		HalfOpen: func(n int) { // from within the probe, which then fails, so that the next round finds the same state
			_, _ = halfOpen.Execute(func() (any, error) { calls(halfOpen, n); return nil, errBench })
		},
		New:  func() any { return build(time.Hour) },
		Warm: func(b any) { calls(b.(*gobreaker.CircuitBreaker[any]), benchSamples) },
	}
}
