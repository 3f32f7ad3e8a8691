package entry

import (
	"context"
	"time"

	"github.com/cenk/backoff"
	circuit "github.com/rubyist/circuitbreaker"
)

func rubyists() []Entry {
	const library, module = "rubyist", "github.com/rubyist/circuitbreaker"
	return []Entry{
		{
			Library: library, Config: asItComes, Module: module,
			Setup: "`circuit.NewThresholdBreaker(10)`, the first example of its README; it opens for 0.5 s, growing",
			New:   func(uint64) Guard { return rubyistGuard{b: circuit.NewThresholdBreaker(10)} },
			Bench: rubyistBench,
		},
		{
			Library: library, Config: tuned, Module: module,
			Setup: "`circuit.NewConsecutiveBreaker(10)` and its time-out of 5 s, both from its README",
			New:   func(uint64) Guard { return rubyistGuard{circuit.NewConsecutiveBreaker(10), 5 * time.Second} },
		},
	}
}

type rubyistGuard struct {
	b       *circuit.Breaker
	timeout time.Duration
}

func (g rubyistGuard) Call(ctx context.Context, fn Func) error {
	return g.b.CallContext(ctx, func() error { return fn(ctx) }, g.timeout)
}

func (g rubyistGuard) State() State { return stateOf(!g.b.Tripped()) }

func rubyistBench() Bench {
	build := func() *circuit.Breaker {
		return circuit.NewBreakerWithOptions(&circuit.Options{
			ShouldTrip: circuit.ConsecutiveTripFunc(10), BackOff: backoff.NewConstantBackOff(time.Hour),
		})
	}
	closed, open := build(), build()
	for range 10 {
		_ = open.Call(failPlain, 0)
	}
	calls := func(b *circuit.Breaker, n int) {
		for range n {
			_ = b.Call(succeedPlain, 0)
		}
	}
	return Bench{
		Success: func(n int) { calls(closed, n) },
		Refused: func(n int) { calls(open, n) },
		New:     func() any { return build() },
		Warm:    func(b any) { calls(b.(*circuit.Breaker), benchSamples) },
	}
}
