package breaker

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Admission in Closed trusts the word, so it must say what the machine says whenever the lock is free.
func TestWordSaysWhatTheMachineSays(t *testing.T) {
	for name, s := range map[string]Settings{
		"consecutive": only(func(s *Settings) { s.ConsecutiveFailures, s.HalfOpenProbes = 3, 2 }),
		"default":     {FailureRatio: 0.3, MinCalls: 5},
		"classic":     Classically(Settings{HalfOpenProbes: 2}),
		"ramp":        Classically(Settings{Recovery: Recovery{Fraction: 0.2}}),
		"overdue":     seeingOverdue(Settings{}),
	} {
		t.Run(name, func(t *testing.T) {
			var c handClock
			s.Clock = &c
			b := MustNew(s)
			random := rand.New(rand.NewPCG(1, 7))
			var flying []*Permit
			for range 5_000 {
				operate(b, &c, random, &flying)
				requireWord(t, b)
			}
			require.Greater(t, b.Snapshot().Totals.Opens, uint64(3))
		})
	}
}

// operate does one thing to a breaker.
func operate(b *Breaker, c *handClock, random *rand.Rand, flying *[]*Permit) {
	switch pick(random, 50, 40, 20, 1, 1, 5) {
	case 0:
		if p, err := b.TryAcquire(context.Background()); err == nil {
			*flying = append(*flying, p)
		}
	case 1:
		if n := len(*flying); n > 0 {
			i := random.IntN(n)
			(*flying)[i].Record(Outcome(pick(random, 60, 30, 1, 1, 1)))
			(*flying)[i] = (*flying)[n-1]
			*flying = (*flying)[:n-1]
		}
	case 2:
		c.advance(time.Duration(random.ExpFloat64() * float64(2*time.Second)))
	case 3:
		b.Isolate()
	case 4:
		b.Reset()
	case 5:
		b.Snapshot()
	}
}

func requireWord(t *testing.T, b *Breaker) {
	t.Helper()
	want := wordOf(b.machine.state, b.machine.epoch)
	if !b.sampled && b.machine.streak > 0 {
		want |= wordStreak
	}
	require.Equal(t, want, b.present())
	require.Same(t, b.machine.flights, b.flights.Load())
	require.Equal(t, b.machine.state == Closed, b.refusal.Load() == nil)
}

// Where only consecutive failures are configured, a success that finds no streak in the word takes no lock. A failing probe
// that landed in Closed began a streak and did not write the word, so the success after it did not end that streak, and the
// circuit opened one failure early.
func TestRegression_SuccessEndsTheStreakOfASpareProbe(t *testing.T) {
	var c handClock
	b := MustNewClassic(only(func(s *Settings) {
		s.ConsecutiveFailures, s.HalfOpenProbes, s.ProbeSuccesses, s.Clock = 2, 2, 1, &c
	}))
	call := func(o Outcome) {
		p, err := b.TryAcquire(t.Context())
		require.NoError(t, err)
		p.Record(o)
	}
	call(Transient)
	call(Transient)
	c.advance(15 * time.Second)
	enough, err := b.TryAcquire(t.Context())
	require.NoError(t, err)
	spare, err := b.TryAcquire(t.Context())
	require.NoError(t, err)
	enough.Record(Success)
	spare.Record(Transient)
	require.Equal(t, 1, b.Snapshot().Counts.ConsecutiveFailures)
	call(Success)
	require.Zero(t, b.Snapshot().Counts.ConsecutiveFailures)
	call(Transient)
	assert.Equal(t, Closed, b.State())
}

// What a closed breaker answers, and a refusal while the break goes on, costs no lock: neither looks at the machine, whatever
// that may say meanwhile.
func TestAnswersThatTakeNoLock(t *testing.T) {
	t.Run("closed", func(t *testing.T) {
		b := MustNewClassic(brittle(nil))
		repair := spoil(b, Isolated)
		assert.Equal(t, Closed, b.State())
		p, err := b.TryAcquire(t.Context())
		require.NoError(t, err)
		repair()
		p.Release()
	})
	t.Run("closed, where successes are not sampled", func(t *testing.T) {
		faults := new(faultLog)
		b := MustNewClassic(only(func(s *Settings) { s.ConsecutiveFailures, s.OnCallbackError = 3, faults.add }))
		repair := spoil(b, HalfOpen)
		pass(t, b)
		repair()
		assert.Empty(t, faults.all())
		assert.Equal(t, uint64(1), b.Snapshot().Totals.Successes)
	})
	t.Run("open", func(t *testing.T) {
		s := brittle(nil)
		s.BreakDuration = time.Hour
		b := MustNewClassic(s)
		trip(t, b)
		repair := spoil(b, Closed)
		_, err := b.TryAcquire(t.Context())
		require.ErrorIs(t, err, ErrRejected)
		require.ErrorIs(t, b.Execute(t.Context(), func(context.Context) error { return nil }), ErrRejected)
		repair()
		assert.Equal(t, uint64(2), b.Snapshot().Totals.Rejected)
	})
}
