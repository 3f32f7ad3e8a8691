package entry

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/brownout-go/breaker"
)

func ours() []Entry {
	ramp := breaker.Settings{Recovery: breaker.Recovery{Fraction: 0.5}}
	return []Entry{
		oursEntry("zero settings", "`Settings{}`", breaker.Settings{}),
		oursEntry("with a ramp", "`Recovery{Fraction: 0.5}`, all else zero", ramp),
		oursEntry(tuned, "`FailureRatio: 0.5`, `Failures{Floor: 0.2}`, `SlowCallThreshold: 500 ms` in place of the measured one, "+
			"`SlowCallRatio: 0.25`, `BreakDuration: 5 s`, `MaxBreakDuration: 30 s`, `Recovery{Fraction: 0.5}`", oursTuned()),
		oursEntry("all three", "`Failures{FalseAlarmEvery: 30 days}`, `SlowCalls{TailQuantile: 0.75, Overdue: true}`, all else zero", AllThree()),
	}
}

// AllThree are zero settings with the three that no other breaker has.
func AllThree() breaker.Settings {
	return breaker.Settings{
		Failures:  breaker.Failures{FalseAlarmEvery: 30 * 24 * time.Hour},
		SlowCalls: breaker.SlowCalls{TailQuantile: 0.75, Overdue: true},
	}
}

// oursTuned is what somebody writes who knows the dependency of the scenarios: it answers within 500 ms when it is well, and
// one error in five is not normal for it.
func oursTuned() breaker.Settings {
	return breaker.Settings{
		FailureRatio:      0.5,
		Failures:          breaker.Failures{Floor: 0.2},
		SlowCallThreshold: 500 * time.Millisecond,
		SlowCalls:         breaker.SlowCalls{Off: true},
		SlowCallRatio:     0.25,
		BreakDuration:     5 * time.Second,
		MaxBreakDuration:  30 * time.Second,
		Recovery:          breaker.Recovery{Fraction: 0.5},
	}
}

func oursEntry(config, setup string, s breaker.Settings) Entry {
	return Entry{
		Library: "ours", Config: config, Kind: Ours, Setup: setup,
		New: func(seed uint64) Guard { return newOurs(s, seed) },
	}
}

type oursGuard struct{ b *breaker.Breaker }

func newOurs(s breaker.Settings, seed uint64) Guard {
	var mu sync.Mutex
	r := rand.New(rand.NewPCG(seed, 0))
	s.Random = func() float64 {
		mu.Lock()
		defer mu.Unlock()
		return r.Float64()
	}
	return oursGuard{breaker.MustNew(s)}
}

func (g oursGuard) Call(ctx context.Context, fn Func) error { return g.b.Execute(ctx, fn) }

func (g oursGuard) State() State {
	switch g.b.State() {
	case breaker.Closed:
		return Closed
	case breaker.Recovering:
		return Ramping
	default:
		return Open
	}
}

// OursBench measures our breaker under the settings.
func OursBench(s breaker.Settings) Bench {
	ctx := context.Background()
	closed := breaker.MustNew(s)
	open, halfOpen := breaker.MustNew(withBreak(s, time.Hour)), breaker.MustNew(withBreak(s, 1))
	for range 5 {
		_ = open.Execute(ctx, fail)
		_ = halfOpen.Execute(ctx, fail)
	}
	calls := func(b *breaker.Breaker, n int) {
		for range n {
			_ = b.Execute(ctx, succeed)
		}
	}
	return Bench{
		Success: func(n int) { calls(closed, n) },
		Refused: func(n int) { calls(open, n) },
		HalfOpen: func(n int) { // from within the probe, which then fails, so that the next round finds the same state
			_ = halfOpen.Execute(ctx, func(context.Context) error { calls(halfOpen, n); return errBench })
		},
		New:  func() any { return breaker.MustNew(s) },
		Warm: func(b any) { calls(b.(*breaker.Breaker), benchSamples) },
	}
}

// withBreak gives s a break of exactly d, however often it opens, and probes that may take for ever.
func withBreak(s breaker.Settings, d time.Duration) breaker.Settings {
	s.BreakDuration, s.MaxBreakDuration, s.BreakJitter = d, d, breaker.JitterNone
	s.ProbeTimeout = breaker.Disabled
	return s
}

// OursPermits times a permit taken and given back in place of Execute.
func OursPermits(s breaker.Settings) func(n int) {
	ctx := context.Background()
	b := breaker.MustNew(s)
	return func(n int) {
		for range n {
			if p, err := b.TryAcquire(ctx); err == nil {
				p.Done(ctx, nil)
			}
		}
	}
}

// ConsecutiveOnly are our settings with every trip off but the count of failures in a row.
func ConsecutiveOnly() breaker.Settings {
	return breaker.Settings{
		ConsecutiveFailures: 5,
		Failures:            breaker.Failures{Off: true},
		SlowCalls:           breaker.SlowCalls{Off: true},
	}
}
