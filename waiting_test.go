package breaker

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWaiting_ServedWhenTheBreakEnds(t *testing.T) {
	succeed := func(context.Context) error { return nil }
	value := func(context.Context) (string, error) { return "value", nil }
	waits := []struct {
		name string
		do   func(*Breaker) error
	}{
		{"Acquire", func(b *Breaker) error {
			p, err := b.Acquire(context.Background())
			assert.True(t, p.IsProbe())
			p.Record(Success)
			return err
		}},
		{"Breaker.Execute", func(b *Breaker) error { return b.Execute(context.Background(), succeed) }},
		{"Execute", func(b *Breaker) error {
			v, err := Execute(context.Background(), b, value)
			assert.Equal(t, "value", v)
			return err
		}},
		{"ExecuteClassified", func(b *Breaker) error {
			_, err := ExecuteClassified(context.Background(), b, value, func(string, error) Outcome { return Success })
			return err
		}},
	}
	for _, test := range waits {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := brittle(nil)
				s.WhenOpen = Wait
				b := MustNewClassic(s)
				trip(t, b)
				start := time.Now()
				require.NoError(t, test.do(b))
				assert.Equal(t, 10*time.Second, time.Since(start), "to the nanosecond: an alarm, no poll")
				assert.Equal(t, Closed, b.State())
				assert.Zero(t, b.Snapshot().Totals.Rejected)
			})
		})
	}
}

// Acquire waits whatever WhenOpen says, TryAcquire never does.
func TestWaiting_WhoWaits(t *testing.T) {
	for _, when := range []WhenOpen{Reject, Wait} {
		t.Run(when.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := brittle(nil)
				s.WhenOpen = when
				b := MustNewClassic(s)
				trip(t, b)
				start := time.Now()
				_, err := b.TryAcquire(t.Context())
				assert.ErrorIs(t, err, ErrRejected)
				if when == Reject {
					err = b.Execute(t.Context(), func(context.Context) error { return nil })
					assert.ErrorIs(t, err, ErrRejected)
				}
				assert.Zero(t, time.Since(start))
				p, err := b.Acquire(t.Context())
				require.NoError(t, err)
				assert.Equal(t, 10*time.Second, time.Since(start))
				p.Release()
			})
		})
	}
}

func TestWaiting_ContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := MustNewClassic(brittle(nil))
		trip(t, b)
		ctx, cancel := context.WithCancelCause(t.Context())
		timed, stop := context.WithTimeout(t.Context(), 3*time.Second)
		defer stop()
		cancelled, late := acquireLater(ctx, b), acquireLater(timed, b)
		assert.Equal(t, 2, b.Snapshot().Waiting)
		time.Sleep(time.Second)
		cancel(errors.New("changed my mind"))
		require.False(t, cancelled.waiting())
		assert.Equal(t, &WaitError{Name: "db", State: Open, Waited: time.Second, Err: context.Canceled}, cancelled.err)
		assert.Equal(t, time.Second, cancelled.after, "at once")
		time.Sleep(2 * time.Second)
		require.False(t, late.waiting())
		assert.Equal(t, &WaitError{Name: "db", State: Open, Waited: 3 * time.Second, Err: context.DeadlineExceeded}, late.err)

		_, err := b.Acquire(ctx)
		assert.Equal(t, context.Canceled, err, "done before it asked")
		assert.Zero(t, b.Snapshot().Waiting)
		assert.Zero(t, b.Snapshot().Totals.Rejected, "a wait ended by its context is no refusal")
	})
}

func TestWaiting_MaxWait(t *testing.T) {
	for _, test := range []struct {
		name    string
		maxWait time.Duration
		want    time.Duration
	}{
		{"written", 3 * time.Second, 3 * time.Second},
		{"default", 0, 5 * time.Minute},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := brittle(nil)
				s.BreakDuration, s.MaxWait = time.Hour, test.maxWait
				b := MustNewClassic(s)
				trip(t, b)
				first, second := acquireLater(t.Context(), b), acquireLater(t.Context(), b)
				time.Sleep(test.want - 1)
				assert.True(t, first.waiting())
				time.Sleep(time.Nanosecond)
				for _, a := range []*admission{first, second} {
					require.False(t, a.waiting())
					assert.Equal(t, test.want, a.after)
					rejected, _ := errors.AsType[*RejectedError](a.err)
					require.NotNil(t, rejected)
					assert.Equal(t, Open, rejected.State)
					wait, _ := rejected.RetryAfter()
					assert.Equal(t, time.Hour-test.want, wait)
				}
				assert.Equal(t, uint64(2), b.Snapshot().Totals.Rejected)
				assert.Zero(t, b.Snapshot().Waiting)
			})
		})
	}
}

// MaxWait runs from the arrival, however often the caller has been woken in vain meanwhile.
func TestWaiting_MaxWaitRunsFromTheArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := brittle(nil)
		s.BreakDuration, s.MaxWait = time.Hour, 5*time.Second
		b := MustNewClassic(s)
		trip(t, b)
		a := acquireLater(t.Context(), b)
		for range 4 {
			time.Sleep(time.Second)
			b.mu.Lock()
			b.wakeLocked()
			b.mu.Unlock()
			require.True(t, a.waiting())
		}
		time.Sleep(time.Second)
		require.False(t, a.waiting())
		require.ErrorIs(t, a.err, ErrRejected)
		assert.Equal(t, 5*time.Second, a.after)
	})
}

// The admission of one that has waited may change the state. It tells of that itself before it returns, with its own context.
func TestWaiting_TellsOfTheChangeItMakes(t *testing.T) {
	type key struct{}
	synctest.Test(t, func(t *testing.T) {
		var values []any
		heard := new(watchLog)
		s := brittle(nil)
		s.OnStateChange = func(ctx context.Context, c StateChange) {
			values = append(values, ctx.Value(key{}))
			heard.add(ctx, c)
		}
		b := MustNewClassic(s)
		trip(t, b)
		a := acquireLater(context.WithValue(t.Context(), key{}, "waiter"), b)
		pastBreak(t, b)
		require.False(t, a.waiting())
		assert.Equal(t, []State{Open, HalfOpen}, heard.states())
		assert.Equal(t, []any{nil, "waiter"}, values)
		a.permit.Release()
	})
}

// So does one that is refused, where its last question is the one that finds the probes lost. Its alarm rings in the same moment,
// so that either may be seen first: hence the repetition.
func TestWaiting_TellsOfTheChangeItMakesAndIsRefused(t *testing.T) {
	type key struct{}
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			var asked any
			heard := new(watchLog)
			s := brittle(nil)
			s.ProbeTimeout, s.MaxWait, s.OnStateChange = time.Minute, time.Minute, heard.add
			s.BreakDurationFunc = func(ctx context.Context, c StateChange) (time.Duration, error) {
				asked = ctx.Value(key{})
				return c.Break + time.Second, nil
			}
			b := MustNewClassic(s)
			trip(t, b)
			time.Sleep(11 * time.Second)
			_, err := b.TryAcquire(t.Context()) // a probe that is forgotten
			require.NoError(t, err)
			_, err = b.Acquire(context.WithValue(t.Context(), key{}, "waiter"))
			require.ErrorIs(t, err, ErrRejected)
			require.Equal(t, []State{Open, HalfOpen, Open}, heard.states())
			assert.Equal(t, ReasonProbeTimeout, heard.all()[2].Reason)
			assert.Equal(t, "waiter", asked)
			wait, _ := b.RetryAfter()
			assert.Equal(t, 21*time.Second, wait)
		})
	}
}

// A fake clock may leap between its reading and the alarm that is set by it. That alarm would ring too late, or never if nobody
// turns the clock again: the caller reads the clock anew.
func TestWaiting_ClockLeapsBeforeTheAlarm(t *testing.T) {
	for _, leap := range []time.Duration{10 * time.Second, time.Hour} {
		t.Run(leap.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := new(racingClock) // no alarm of it rings later
				s := brittle(c)
				s.MaxWait = Disabled
				b := MustNewClassic(s)
				trip(t, b)
				c.meanwhile = func() { // the first reading is the question of the newcomer, the second is for the alarm
					c.meanwhile = func() { c.advance(leap) }
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				p, err := b.Acquire(ctx)
				require.NoError(t, err)
				assert.True(t, p.IsProbe())
			})
		})
	}
}

// A wait that ends in the moment in which it can be served is served.
func TestWaiting_MaxWaitMeetsTheEndOfTheBreak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := brittle(nil)
		s.MaxWait = s.BreakDuration
		b := MustNewClassic(s)
		trip(t, b)
		p, err := b.Acquire(t.Context())
		require.NoError(t, err)
		assert.True(t, p.IsProbe())
		p.Release()
	})
}

func TestWaiting_MaxWaitDisabled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := brittle(nil)
		s.MaxWait = Disabled
		b := MustNewClassic(s)
		b.Isolate()
		ctx, cancel := context.WithTimeout(t.Context(), 1000*time.Hour)
		defer cancel()
		start := time.Now()
		_, err := b.Acquire(ctx)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 1000*time.Hour, time.Since(start))
	})
}

func TestWaiting_MaxWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := brittle(nil)
		s.MaxWaiting = 2
		b := MustNewClassic(s)
		trip(t, b)
		ctx, cancel := context.WithCancel(t.Context())
		first, second := acquireLater(ctx, b), acquireLater(t.Context(), b)
		third := acquireLater(t.Context(), b)
		require.False(t, third.waiting())
		assert.ErrorIs(t, third.err, ErrRejected)
		assert.Zero(t, third.after)
		assert.Equal(t, uint64(1), b.Snapshot().Totals.Rejected)

		cancel()
		assert.False(t, first.waiting())
		fourth := acquireLater(t.Context(), b)
		assert.True(t, fourth.waiting(), "there is room again")
		pastBreak(t, b)
		require.False(t, second.waiting())
		second.permit.Record(Success)
		assert.False(t, fourth.waiting())
		fourth.permit.Release()
	})
}

// Waiters come one second apart and are served in that order, each when the one before it has ended.
func TestWaiting_OrderOfArrival(t *testing.T) {
	for _, end := range []Outcome{Success, Ignored, Throttled} {
		t.Run(end.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := brittle(nil)
				s.ProbeSuccesses = 100
				b := MustNewClassic(s)
				trip(t, b)
				var order []int
				var all sync.WaitGroup
				for i := range 20 {
					all.Go(func() {
						p, err := b.Acquire(context.Background())
						assert.NoError(t, err)
						assert.True(t, p.IsProbe())
						order = append(order, i) // one probe at a time: the breaker serialises
						time.Sleep(time.Second)
						p.Record(end)
					})
					synctest.Wait()
				}
				all.Wait()
				for i := range order {
					require.Equal(t, i, order[i])
				}
				assert.Len(t, order, 20)
			})
		})
	}
}

// However many wait, no more are through at once than the half-open state allows.
func TestWaiting_NoMoreThanTheProbes(t *testing.T) {
	for _, test := range []struct {
		name    string
		change  func(*Settings)
		atOnce  int
		through int64 // until the circuit closes
	}{
		{"probes", func(s *Settings) { s.HalfOpenProbes, s.ProbeSuccesses = 3, 9 }, 3, 9},
		{"cohort", func(s *Settings) { s.ProbeCohort = 5 }, 5, 5},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := brittle(nil)
				test.change(&s)
				b := MustNewClassic(s)
				trip(t, b)
				var probes atomic.Int64
				var all sync.WaitGroup
				for range 50 {
					all.Go(func() {
						p, err := b.Acquire(context.Background())
						assert.NoError(t, err)
						if p.IsProbe() {
							probes.Add(1)
						}
						time.Sleep(time.Second)
						assert.LessOrEqual(t, b.Snapshot().ProbesInFlight, test.atOnce)
						p.Record(Success)
					})
					synctest.Wait()
				}
				pastBreak(t, b)
				assert.Equal(t, test.atOnce, b.Snapshot().ProbesInFlight, "and no fewer")
				all.Wait()
				assert.GreaterOrEqual(t, probes.Load(), test.through)
				assert.Less(t, probes.Load(), test.through+int64(test.atOnce))
				assert.Zero(t, b.Snapshot().Waiting)
				assert.Equal(t, Closed, b.State())
			})
		})
	}
}

func TestWaiting_GivingUpHandsTheTurnOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := MustNewClassic(brittle(nil))
		trip(t, b)
		ctx, cancel := context.WithCancel(t.Context())
		first, second, third := acquireLater(ctx, b), acquireLater(ctx, b), acquireLater(t.Context(), b)
		pastBreak(t, b)
		require.False(t, first.waiting())
		require.True(t, second.waiting())
		// The turn and the end of the context come together: whichever second sees first, the slot must not be lost on it.
		first.permit.Release()
		cancel()
		require.False(t, second.waiting())
		if second.err == nil {
			second.permit.Release()
		}
		require.False(t, third.waiting())
		assert.NoError(t, third.err)
		assert.Zero(t, b.Snapshot().Waiting)
		third.permit.Release()
	})
}

// The alarm for the break's end belongs to the first. When that one leaves, the next must set its own.
func TestWaiting_TheFirstLeavesWithItsAlarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := MustNewClassic(brittle(nil))
		trip(t, b)
		ctx, cancel := context.WithCancel(t.Context())
		first, second := acquireLater(ctx, b), acquireLater(t.Context(), b)
		time.Sleep(5 * time.Second)
		cancel()
		require.False(t, first.waiting())
		time.Sleep(5*time.Second - 1)
		require.True(t, second.waiting())
		time.Sleep(time.Nanosecond)
		require.False(t, second.waiting())
		second.permit.Release()
	})
}

func TestWaiting_NobodyOvertakes(t *testing.T) {
	for _, test := range []struct {
		name     string
		recovery Recovery
		state    State
	}{
		{"half-open", Recovery{}, HalfOpen},
		{"recovering", Recovery{Fraction: 1, Initial: 0.9}, Recovering},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := brittle(nil)
				s.Recovery, s.ProbeSuccesses = test.recovery, 1
				if test.state == HalfOpen {
					s.ProbeSuccesses = 2
				}
				b := MustNewClassic(s)
				trip(t, b)
				first, second := acquireLater(t.Context(), b), acquireLater(t.Context(), b)
				pastBreak(t, b)
				require.False(t, first.waiting())
				first.permit.Record(Success)
				// The slot is free and the second has been told, but has not run yet.
				require.Equal(t, test.state, b.State())
				_, err := b.TryAcquire(t.Context())
				assert.ErrorIs(t, err, ErrRejected)
				rejected, _ := errors.AsType[*RejectedError](err)
				assert.Equal(t, test.state, rejected.State)
				require.False(t, second.waiting())
				assert.NoError(t, second.err)
				second.permit.Release()
			})
		})
	}
}
