package grid

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/brownout-go/breaker"
)

// clock stands still until the stream moves it. It serves one breaker on one goroutine.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time                       { return c.now }
func (c *clock) Since(t time.Time) time.Duration      { return c.now.Sub(t) }
func (c *clock) After(time.Duration) <-chan time.Time { return nil } // TryAcquire never waits
func half() float64                                   { return 0.5 }

// stream is a breaker and the calls that ask it: at exponential gaps, and over at once.
type stream struct {
	breaker *breaker.Breaker
	clock   *clock
	random  *rand.Rand
	gap     float64 // nanoseconds between calls, on average
	trouble Trouble
	weather weather
	start   time.Time
}

// newStream starts a stream of calls that fail independently of each other. The same seed gives the same calls, whatever the settings are.
func newStream(s breaker.Settings, rate float64, seed uint64) *stream {
	c := &clock{time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)}
	s.Clock, s.Random = c, half
	return &stream{
		breaker: breaker.MustNew(s), clock: c, random: rand.New(rand.NewPCG(seed, 0)), gap: float64(time.Second) / rate,
		weather: independent, start: c.now,
	}
}

// call makes the next call, of which the given fraction is bad in the long run, and reports whether the breaker opened. Some
// rules open at a good call; that is seen as the next one is refused.
func (s *stream) call(steady float64) (opened bool) {
	s.clock.now = s.clock.now.Add(time.Duration(s.random.ExpFloat64() * s.gap))
	bad := s.random.Float64() < s.weather(s.clock.now.Sub(s.start), steady)
	permit, err := s.breaker.TryAcquire(context.Background())
	if err != nil {
		return true
	}
	permit.RecordLatency(s.ending(bad))
	return bad && s.breaker.State() == breaker.Open
}

// ending is how a call ends.
func (s *stream) ending(bad bool) (breaker.Outcome, time.Duration) {
	switch {
	case s.trouble == Failing && bad:
		return breaker.Transient, 0
	case s.trouble == Failing:
		return breaker.Success, 0
	case bad:
		return breaker.Success, slowCall
	default:
		return breaker.Success, fastCall
	}
}

// healthy runs for a while in which nothing changes, and returns how often the breaker opened. It is reset each time.
func (s *stream) healthy(failing float64, length time.Duration) (opens int) {
	for end := s.clock.now.Add(length); s.clock.now.Before(end); {
		if s.call(failing) {
			opens++
			s.breaker.Reset()
		}
	}
	return opens
}

// untilOpen counts the calls until the breaker opens, the one that opens it included.
func (s *stream) untilOpen(failing float64, within time.Duration) (calls int, opened bool) {
	for end := s.clock.now.Add(within); s.clock.now.Before(end); {
		calls++
		if s.call(failing) {
			return calls, true
		}
	}
	return calls, false
}
