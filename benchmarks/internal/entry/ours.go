package entry

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/brownout-go/breaker"
)

// ours are the configurations of this module's breaker, zero settings first. A line here is all that another one takes: the
// targets command finds it as "ours", and the page gives it a column.
func ours() []Entry {
	return []Entry{
		oursEntry("zero settings", "`Settings{}`", breaker.Settings{}),
		oursEntry("classic", "`Classic()`", breaker.Classic()),
		oursEntry(tuned, "`Classic()` with `FailureRatio: 0.5`, `Failures{Floor: 0.2}`, `SlowCallThreshold: 500 ms` in place of the "+
			"measured one, `SlowCallRatio: 0.25`, `BreakDuration: 5 s`, `MaxBreakDuration: 30 s`, `Recovery{Fraction: 0.5}`", oursTuned()),
	}
}

// oursTuned is what somebody writes who knows the dependency of the scenarios: it answers within 500 ms when it is well, and
// one error in five is not normal for it.
func oursTuned() breaker.Settings {
	s := breaker.Classic()
	s.FailureRatio = 0.5
	s.Failures.Floor = 0.2
	s.SlowCallThreshold, s.SlowCalls.Off = 500*time.Millisecond, true
	s.SlowCallRatio = 0.25
	s.BreakDuration, s.MaxBreakDuration = 5*time.Second, 30*time.Second
	s.Recovery = breaker.Recovery{Fraction: 0.5}
	return s
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
	open, halfOpen := tripped(withBreak(s, time.Hour)), tripped(withBreak(s, 1))
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

// tripped returns a breaker that failures have opened. They are spread over time: in one burst they are one event.
func tripped(s breaker.Settings) *breaker.Breaker {
	b := breaker.MustNew(s)
	for range 1000 {
		_ = b.Execute(context.Background(), fail)
		if b.State() != breaker.Closed {
			return b
		}
		time.Sleep(10 * time.Millisecond)
	}
	panic("a thousand failures in a row have not opened the breaker")
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
