package entry

import (
	"context"
	"time"

	"github.com/eapache/go-resiliency/breaker"
)

func resiliencies() []Entry {
	const library, module = "go-resiliency", "github.com/eapache/go-resiliency"
	return []Entry{
		{
			Library: library, Config: asItComes, Module: module,
			Setup: "`breaker.New(3, 1, 5 s)`, the example of its README; it has no defaults",
			New:   func(uint64) Guard { return resiliencyGuard{b: breaker.New(3, 1, 5*time.Second)} },
			Bench: resiliencyBench,
		},
		{
			Library: library, Config: tuned, Module: module,
			Setup: "`breaker.New(10, 2, 5 s)`: ten errors without 5 s free of them; its documentation names no other values; " +
				"cancelled calls hidden from it, since it cannot tell errors apart",
			New: func(uint64) Guard { return resiliencyGuard{b: breaker.New(10, 2, 5*time.Second), hide: true} },
		},
	}
}

type resiliencyGuard struct {
	b    *breaker.Breaker
	hide bool // cancelled calls
}

func (g resiliencyGuard) Call(ctx context.Context, fn Func) error {
	var result error
	err := g.b.Run(func() error {
		result = fn(ctx)
		if g.hide && !isFailure(result) {
			return nil
		}
		return result
	})
	if err == breaker.ErrBreakerOpen {
		return err
	}
	return result
}

func (g resiliencyGuard) State() State { return stateOf(g.b.GetState() == breaker.Closed) }

func resiliencyBench() Bench {
	closed, open := breaker.New(3, 1, time.Hour), breaker.New(3, 1, time.Hour)
	for range 3 {
		_ = open.Run(failPlain)
	}
	calls := func(b *breaker.Breaker, n int) {
		for range n {
			_ = b.Run(succeedPlain)
		}
	}
	return Bench{
		Success: func(n int) { calls(closed, n) },
		Refused: func(n int) { calls(open, n) },
		New:     func() any { return breaker.New(3, 1, time.Hour) },
		Warm:    func(b any) { calls(b.(*breaker.Breaker), benchSamples) },
	}
}
