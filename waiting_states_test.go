package breaker

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWaiting_IsolatedWaitsForReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := MustNewClassic(brittle(nil))
		trip(t, b)
		first := acquireLater(t.Context(), b)
		b.Isolate()
		second := acquireLater(t.Context(), b)
		time.Sleep(time.Minute)
		require.True(t, first.waiting(), "the break that it waited for is over, and means nothing now")
		require.True(t, second.waiting())
		b.Reset()
		require.False(t, first.waiting())
		require.False(t, second.waiting())
		assert.Equal(t, time.Minute, first.after)
		assert.NoError(t, first.err)
		assert.NoError(t, second.err)
	})
}

func TestWaiting_ResetServesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := MustNewClassic(brittle(nil))
		trip(t, b)
		callers := make([]*admission, 100)
		for i := range callers {
			callers[i] = acquireLater(t.Context(), b)
		}
		b.Reset()
		for _, a := range callers {
			require.False(t, a.waiting())
			require.NoError(t, a.err)
		}
		assert.Zero(t, b.Snapshot().Waiting)
	})
}

// A waiting caller wakes for a lost probe, re-opens the circuit, and goes on waiting for the break that this begins.
func TestWaiting_LostProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heard := new(watchLog)
		s := brittle(nil)
		s.ProbeTimeout, s.OnStateChange = time.Minute, heard.add
		b := MustNewClassic(s)
		trip(t, b)
		first, second := acquireLater(t.Context(), b), acquireLater(t.Context(), b)
		pastBreak(t, b)
		require.False(t, first.waiting()) // and forgets its permit
		time.Sleep(time.Minute - 1)
		require.True(t, second.waiting())
		assert.Equal(t, HalfOpen, b.State())
		time.Sleep(time.Nanosecond)
		require.True(t, second.waiting())
		require.Equal(t, []State{Open, HalfOpen, Open}, heard.states())
		assert.Equal(t, ReasonProbeTimeout, heard.all()[2].Reason)
		assert.Equal(t, 20*time.Second, heard.all()[2].Break)
		pastBreak(t, b)
		require.False(t, second.waiting())
		assert.True(t, second.permit.Record(Success))
		assert.False(t, first.permit.Record(Transient), "of an earlier epoch")
		assert.Equal(t, Closed, b.State())
	})
}

// Whatever ends a probe wakes the first of those who wait.
func TestWaiting_FreedProbeSlot(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *Permit){
		"Release":       func(_ *testing.T, p *Permit) { p.Release() },
		"Ignored":       func(_ *testing.T, p *Permit) { p.Record(Ignored) },
		"RecordLatency": func(_ *testing.T, p *Permit) { p.RecordLatency(Success, time.Second) },
		"Done":          func(t *testing.T, p *Permit) { p.Done(t.Context(), Mark(errDown, Permanent)) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := brittle(nil)
				s.ProbeSuccesses = 2
				b := MustNewClassic(s)
				trip(t, b)
				first, second := acquireLater(t.Context(), b), acquireLater(t.Context(), b)
				pastBreak(t, b)
				time.Sleep(time.Second)
				require.True(t, second.waiting())
				end(t, first.permit)
				require.False(t, second.waiting())
				assert.True(t, second.permit.IsProbe())
				second.permit.Release()
			})
		})
	}
}

// A ramp with nobody but waiting callers finishes: one goes whenever nothing is in flight, and more by credit.
func TestWaiting_RampWithNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := brittle(nil)
		s.Recovery = Recovery{Fraction: 1, Initial: 0.01}
		b := MustNewClassic(s)
		trip(t, b)
		var all sync.WaitGroup
		for range 200 {
			all.Go(func() {
				p, err := b.Acquire(context.Background())
				assert.NoError(t, err)
				time.Sleep(100 * time.Millisecond)
				p.Record(Success)
			})
		}
		pastBreak(t, b)
		start := time.Now()
		all.Wait()
		assert.LessOrEqual(t, time.Since(start), 10*time.Second+300*time.Millisecond, "the probe, the ramp and the calls at its end")
		assert.Equal(t, Closed, b.State())
		assert.Equal(t, uint64(200), b.Snapshot().Totals.Successes)
	})
}

// A ramp call that hangs holds those who wait up for no longer than a probe could.
func TestWaiting_RampCallThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := brittle(nil)
		s.Recovery, s.ProbeTimeout = Recovery{Fraction: 6}, 4*time.Second
		s.Recovery.Max = time.Hour
		b := MustNewClassic(s)
		trip(t, b)
		time.Sleep(10 * time.Second)
		pass(t, b)
		require.Equal(t, Recovering, b.State())
		first, second := acquireLater(t.Context(), b), acquireLater(t.Context(), b)
		require.False(t, first.waiting(), "nothing is in flight")
		time.Sleep(4*time.Second - 1)
		require.True(t, second.waiting())
		time.Sleep(time.Nanosecond)
		require.False(t, second.waiting())
		assert.NoError(t, second.err)
		assert.Equal(t, Recovering, b.State())
	})
}

// onRamp returns a breaker that has just begun to recover.
func onRamp(t *testing.T, r Recovery) *Breaker {
	t.Helper()
	s := brittle(nil)
	s.Recovery = r
	b := MustNewClassic(s)
	trip(t, b)
	time.Sleep(10 * time.Second)
	pass(t, b)
	return b
}

// A waiter with calls in flight before it is let through at the end of the ramp.
func TestWaiting_EndOfTheRamp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := onRamp(t, Recovery{Fraction: 1})
		first, second := acquireLater(t.Context(), b), acquireLater(t.Context(), b)
		require.False(t, first.waiting())
		time.Sleep(10*time.Second - 1)
		require.True(t, second.waiting())
		time.Sleep(time.Nanosecond)
		require.False(t, second.waiting())
		assert.Equal(t, 10*time.Second, second.after)
		assert.Equal(t, Closed, b.State())
	})
}

// Slow calls hold the fraction down past the clock's end of the ramp. Those who wait must bring it up again by themselves.
func TestWaiting_RampHeldDownByEvidence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := brittle(nil)
		s.Recovery, s.SlowCallThreshold = Recovery{Fraction: 0.1, Initial: 0.2}, time.Second
		b := MustNewClassic(s)
		trip(t, b)
		time.Sleep(10 * time.Second)
		pass(t, b)
		p, err := b.Acquire(t.Context())
		require.NoError(t, err)
		time.Sleep(2 * time.Second) // slow, and longer than the ramp
		p.Record(Success)
		require.Equal(t, Recovering, b.State())
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				p, err := b.Acquire(context.Background())
				assert.NoError(t, err)
				time.Sleep(100 * time.Millisecond)
				p.Record(Success)
			})
		}
		all.Wait()
		assert.Equal(t, Closed, b.State())
	})
}

// Calls that come while somebody waits are refused, and bring the first of those who wait their credit.
func TestWaiting_CreditOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := onRamp(t, Recovery{Fraction: 3, Initial: 0.25})
		first := acquireLater(t.Context(), b)
		require.False(t, first.waiting(), "nothing in flight")
		second := acquireLater(t.Context(), b) // its own arrival is worth a quarter
		for range 2 {
			_, err := b.TryAcquire(t.Context())
			require.ErrorIs(t, err, ErrRejected)
			require.True(t, second.waiting())
		}
		_, err := b.TryAcquire(t.Context())
		require.ErrorIs(t, err, ErrRejected, "nobody overtakes, though this one makes the credit whole")
		assert.False(t, second.waiting())
		first.permit.Release()
		second.permit.Release()
	})
}

// A call that ends is an offer too, or nobody would bring the first its credit where all callers wait.
func TestWaiting_CreditOfCallsThatEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := onRamp(t, Recovery{Fraction: 3, Initial: 0.25})
		var flying []*Permit
		for offers := 0; len(flying) < 4; offers++ { // the first with nothing in flight, the others by a credit each
			require.Less(t, offers, 20)
			if p, err := b.TryAcquire(t.Context()); err == nil {
				flying = append(flying, p)
			}
		}
		waits := acquireLater(t.Context(), b) // its own arrival is worth a quarter
		for _, p := range flying[:3] {
			require.True(t, waits.waiting())
			p.Release()
		}
		require.False(t, waits.waiting(), "the fourth quarter")
		waits.permit.Release()
		flying[3].Release()
	})
}

// A failure during the ramp sends those who wait back to waiting for the break.
func TestWaiting_RampThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := onRamp(t, Recovery{Fraction: 1})
		first, second := acquireLater(t.Context(), b), acquireLater(t.Context(), b)
		require.False(t, first.waiting())
		first.permit.Done(t.Context(), errDown)
		require.True(t, second.waiting())
		require.Equal(t, Open, b.State())
		pastBreak(t, b)
		require.False(t, second.waiting())
		assert.Equal(t, 20*time.Second, second.after)
		second.permit.Release()
	})
}

// An answer of BreakDurationFunc that comes while somebody waits moves the alarm, either way.
func TestWaiting_BreakIsReplaced(t *testing.T) {
	for _, test := range []struct{ answer, want time.Duration }{
		{4 * time.Second, 4 * time.Second},
		{30 * time.Second, 30 * time.Second},
		{1 * time.Second, 2 * time.Second}, // over before the answer came
	} {
		t.Run(test.answer.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := brittle(nil)
				s.BreakDurationFunc = func(context.Context, StateChange) (time.Duration, error) {
					time.Sleep(2 * time.Second)
					return test.answer, nil
				}
				b := MustNewClassic(s)
				go trip(t, b)
				synctest.Wait()
				p, err := b.Acquire(t.Context())
				require.NoError(t, err)
				opened, _ := b.OpenedAt()
				assert.Equal(t, test.want, time.Since(opened))
				p.Release()
			})
		})
	}
}

// Latency runs from the moment the permit is handed out, not from the beginning of the wait.
func TestWaiting_IsNoLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := brittle(nil)
		s.SlowCallThreshold, s.WhenOpen = time.Second, Wait
		b := MustNewClassic(s)
		trip(t, b)
		pass(t, b)
		assert.Equal(t, Closed, b.State())
		assert.Zero(t, b.Snapshot().Totals.Slow)
	})
}

// A caller that re-opens the circuit while it waits delivers the event. It must not hold up those behind it meanwhile: one of
// them may be the observer itself.
func TestRegression_ObserverThatWaitsBehindTheWaiterThatTellsIt(t *testing.T) {
	for _, test := range []struct {
		name     string
		newcomer bool
	}{{"first in the queue", false}, {"newcomer", true}} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var b *Breaker
				var observed error
				s := brittle(nil)
				s.ProbeTimeout, s.MaxWait = time.Minute, Disabled
				s.OnStateChange = func(_ context.Context, c StateChange) {
					if c.Reason == ReasonProbeTimeout {
						observed = b.Execute(context.Background(), func(context.Context) error { return nil })
					}
				}
				s.WhenOpen = Wait
				b = MustNewClassic(s)
				trip(t, b)
				time.Sleep(10 * time.Second)
				_, err := b.TryAcquire(t.Context()) // a probe that is forgotten
				require.NoError(t, err)
				if test.newcomer {
					time.Sleep(time.Minute)
				}
				p, err := b.Acquire(t.Context())
				require.NoError(t, err)
				assert.NoError(t, observed)
				p.Release()
				assert.Equal(t, Closed, b.State())
			})
		})
	}
}
