package entry

import (
	"context"
	"time"

	"github.com/go-kratos/aegis/circuitbreaker"
	"github.com/go-kratos/aegis/circuitbreaker/sre"
)

func aegises() []Entry {
	const library, module = "aegis sre", "github.com/go-kratos/aegis"
	return []Entry{
		{
			Library: library, Config: asItComes, Module: module, Sheds: true,
			Setup: "`sre.NewBreaker`: sheds from 100 requests in 3 s and 40 % failures on; used as the Kratos client middleware " +
				"uses it, which marks refusals as failed",
			New:   func(uint64) Guard { return newAegis(func(err error) bool { return err != nil }) },
			Bench: aegisBench,
		},
		{
			Library: library, Config: tuned, Module: module, Sheds: true,
			Setup: "`WithRequest(20)`, `WithWindow(10 s)`, since 100 requests in 3 s are more than most scenarios offer; its " +
				"documentation names these options and no values; cancelled calls marked as success, as the middleware does",
			New: func(uint64) Guard {
				return newAegis(isFailure, sre.WithRequest(20), sre.WithWindow(10*time.Second))
			},
		},
	}
}

type aegisGuard struct {
	shedding
	b      circuitbreaker.CircuitBreaker
	failed func(error) bool
}

func newAegis(failed func(error) bool, options ...sre.Option) Guard {
	return &aegisGuard{b: sre.NewBreaker(options...), failed: failed}
}

func (g *aegisGuard) Call(ctx context.Context, fn Func) error {
	if err := g.b.Allow(); err != nil {
		g.b.MarkFailed()
		g.note(true)
		return err
	}
	err := fn(ctx)
	if g.failed(err) {
		g.b.MarkFailed()
	} else {
		g.b.MarkSuccess()
	}
	return err
}

func aegisBench() Bench {
	closed := sre.NewBreaker()
	calls := func(b circuitbreaker.CircuitBreaker, n int) {
		for range n {
			if b.Allow() == nil {
				b.MarkSuccess()
			}
		}
	}
	return Bench{
		Success: func(n int) { calls(closed, n) },
		New:     func() any { return sre.NewBreaker() },
		Warm:    func(b any) { calls(b.(circuitbreaker.CircuitBreaker), benchSamples) },
	}
}
