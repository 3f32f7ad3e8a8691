package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/brownout-go/breaker"
	"github.com/brownout-go/breaker/examples/docs/internal/manual"
)

// call sends one call through a breaker and reports whether it was admitted.
func call(b *breaker.Breaker, o breaker.Outcome, latency time.Duration) bool {
	p, err := b.TryAcquire(context.Background())
	if err != nil {
		return false
	}
	p.RecordLatency(o, latency)
	return true
}

// holdsOut tells how long a quantile stays where it was when every call has become ten times slower: it depends on how much of
// the current quarter of its window is over by then.
func holdsOut(quantile float64, window time.Duration) (earliest, latest time.Duration) {
	earliest = window
	for phase := time.Duration(0); phase < window/4; phase += window / 60 {
		d := holdsOutFrom(quantile, window, 2*window+phase)
		earliest, latest = min(earliest, d), max(latest, d)
	}
	return earliest, latest
}

func holdsOutFrom(quantile float64, window, incident time.Duration) time.Duration {
	const normal, gap = 10 * time.Millisecond, 100 * time.Millisecond
	clock := new(manual.Clock)
	b := breaker.MustNew(breaker.Settings{
		SlowCallRatio: quantile,                                                              // wins its race at any of them
		SlowCalls:     breaker.SlowCalls{Quantile: quantile, Window: window, Multiple: 1000}, // nothing is slow: this only measures
		Clock:         clock,
	})
	for range incident / gap {
		call(b, breaker.Success, normal)
		clock.Advance(gap)
	}
	before, _ := b.NormalLatency()
	for after := time.Duration(0); ; after += gap {
		if now, _ := b.NormalLatency(); now != before {
			return after
		}
		call(b, breaker.Success, 10*normal)
		clock.Advance(gap)
	}
}

// probesToClose returns the mean number of probes until a half-open circuit closes, when so many of them end neutral.
func probesToClose(neutral float64) float64 {
	const rounds = 2000
	random := rand.New(rand.NewPCG(1, 1))
	probes := 0
	for range rounds {
		clock := new(manual.Clock)
		s := breaker.Classic()
		s.ConsecutiveFailures, s.Clock = 1, clock
		b := breaker.MustNew(s)
		call(b, breaker.Transient, 0)
		clock.Advance(b.Settings().BreakDuration)
		for b.State() != breaker.Closed {
			o := breaker.Success
			if random.Float64() < neutral {
				o = breaker.Throttled
			}
			call(b, o, 0)
			probes++
		}
	}
	return float64(probes) / rounds
}
