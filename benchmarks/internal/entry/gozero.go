package entry

import (
	"context"

	"github.com/zeromicro/go-zero/core/breaker"
	"github.com/zeromicro/go-zero/core/logx"
	"github.com/zeromicro/go-zero/core/stat"
)

func goZeros() []Entry {
	const library, module = "go-zero", "github.com/zeromicro/go-zero"
	return []Entry{
		{
			Library: library, Config: asItComes, Module: module, Sheds: true,
			Setup: "`breaker.NewBreaker`, called with `DoCtx`; it has nothing to set",
			New:   func(uint64) Guard { return newGoZero(func(err error) bool { return err == nil }) },
			Bench: goZeroBench,
		},
		{
			Library: library, Config: tuned, Module: module, Sheds: true,
			Setup: "the same, called with `DoWithAcceptableCtx`: cancelled calls are acceptable",
			New:   func(uint64) Guard { return newGoZero(func(err error) bool { return !isFailure(err) }) },
		},
	}
}

type goZeroGuard struct {
	shedding
	b          breaker.Breaker
	acceptable breaker.Acceptable
}

func newGoZero(acceptable breaker.Acceptable) Guard {
	quietGoZero()
	return &goZeroGuard{b: breaker.NewBreaker(breaker.WithName("dependency")), acceptable: acceptable}
}

func (g *goZeroGuard) Call(ctx context.Context, fn Func) error {
	err := g.b.DoWithAcceptableCtx(ctx, func() error { return fn(ctx) }, g.acceptable)
	g.note(err == breaker.ErrServiceUnavailable)
	return err
}

// quietGoZero turns off the log lines about use of the processor, once a minute, and the alerts about dropped calls.
func quietGoZero() {
	logx.Disable()
	stat.SetReporter(nil)
}

func goZeroBench() Bench {
	quietGoZero()
	closed := breaker.NewBreaker()
	calls := func(b breaker.Breaker, n int) {
		for range n {
			_ = b.Do(succeedPlain)
		}
	}
	return Bench{
		Success: func(n int) { calls(closed, n) },
		New:     func() any { return breaker.NewBreaker() },
		Warm:    func(b any) { calls(b.(breaker.Breaker), benchSamples) },
	}
}
