package model_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
)

// leapingClock goes further in one step than a duration can hold.
type leapingClock struct{ now time.Time }

func (c *leapingClock) Now() time.Time                       { return c.now }
func (c *leapingClock) Since(t time.Time) time.Duration      { return c.now.Sub(t) }
func (c *leapingClock) After(time.Duration) <-chan time.Time { return nil }

// TestExtremeClocks checks what holds of any clock: one that stands still, one that leaps by 146 years in either direction, and
// one that does so within a call or a callback. Time that overflowed once ended in an index out of range under the lock, and
// that in a deadlock.
func TestExtremeClocks(t *testing.T) {
	const leap = 1 << 62
	for name, steps := range map[string][]time.Duration{
		"stands still":    {0},
		"leaps forward":   {leap},
		"leaps back":      {-leap},
		"leaps both ways": {leap, -leap, math.MaxInt64, math.MinInt64, 0, time.Second},
		"leaps at times":  {leap, -leap, 0, 0, 1, time.Millisecond, time.Second, time.Second, time.Minute, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(50) {
				newLeaper(t, seed, steps).run()
			}
		})
	}
}

// leaper drives one breaker with random settings by random calls.
type leaper struct {
	*breaker.Breaker
	t       *testing.T
	random  *rand.Rand
	clock   *leapingClock
	steps   []time.Duration
	flying  []*breaker.Permit
	changes []breaker.StateChange // since the last check
	last    breaker.StateChange
	opens   uint64
}

func newLeaper(t *testing.T, seed uint64, steps []time.Duration) *leaper {
	l := &leaper{t: t, random: rand.New(rand.NewPCG(seed, 2)), clock: &leapingClock{birth}, steps: steps,
		last: breaker.StateChange{At: birth}}
	s := breaker.Settings{ConsecutiveFailures: -2}
	for s.Validate() != nil {
		s = (&source{randomBytes(l.random, 60)}).settings()
		if seed%2 == 0 { // the narrowest buckets have the largest numbers
			s.SlowCallRatio, s.SlowCalls = 1e-12, breaker.SlowCalls{Window: 1}
		}
	}
	s.Clock = l.clock
	s.Random = l.random.Float64
	s.OnStateChange = func(_ context.Context, c breaker.StateChange) {
		l.changes = append(l.changes, c)
		l.step()
		if l.random.IntN(2) == 0 {
			l.end()
		}
	}
	l.Breaker = breaker.MustNew(s)
	return l
}

func (l *leaper) run() {
	for range 200 {
		switch l.random.IntN(16) {
		case 0:
			l.Isolate()
		case 1, 2:
			l.Reset()
		case 3, 4, 5:
			l.step()
		case 6, 7, 8:
			l.end()
		default:
			l.admit()
		}
		l.check()
	}
}

func (l *leaper) step() { l.clock.now = l.clock.now.Add(l.steps[l.random.IntN(len(l.steps))]) }

func (l *leaper) admit() {
	p, err := l.TryAcquire(context.Background())
	if err != nil {
		require.ErrorIs(l.t, err, breaker.ErrRejected)
		return
	}
	l.flying = append(l.flying, p)
}

func (l *leaper) end() {
	if len(l.flying) > 0 {
		p := l.flying[0]
		l.flying = l.flying[1:]
		p.Record(breaker.Outcome(l.random.IntN(int(breaker.Ignored) + 1)))
	}
}

// check asserts what must hold after every operation.
func (l *leaper) check() {
	l.checkChanges()
	s, settings := l.Snapshot(), l.Settings()
	require.Equal(l.t, l.opens, s.Totals.Opens)
	require.Equal(l.t, s.State == breaker.Open, s.RetryAfter > 0, "%v for %v", s.State, s.RetryAfter)
	require.LessOrEqual(l.t, s.RetryAfter, max(0, l.last.Break))
	require.LessOrEqual(l.t, s.ProbesInFlight, max(settings.HalfOpenProbes, settings.ProbeCohort))
	require.False(l.t, s.ProbesInFlight > 0 && s.State != breaker.HalfOpen, "probes in %v", s.State)
	require.LessOrEqual(l.t, s.Counts.Failures, s.Counts.Calls)
	require.LessOrEqual(l.t, s.Counts.Slow, s.Counts.Calls)
	require.Equal(l.t, s.State == breaker.Closed, s.AdmittedFraction == 1, "%v admits %v", s.State, s.AdmittedFraction)
	for _, share := range []float64{s.AdmittedFraction, s.Evidence, s.SlowEvidence, s.TripRatio} {
		require.True(l.t, 0 <= share && share <= 1, "%+v", s)
	}
}

// checkChanges asserts that the changes since it was called last go on from there, in state and in time.
func (l *leaper) checkChanges() {
	for _, c := range l.changes {
		require.Equal(l.t, l.last.To, c.From)
		require.False(l.t, c.At.Before(l.last.At), "from %v back to %v", l.last.At, c.At)
		if c.To == breaker.Open {
			l.opens++
		}
		l.last = c
	}
	l.changes = nil
}
