package breaker

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// telling is a breaker whose first waiter is held up: it has found a probe lost, and its observer does not return.
type telling struct {
	breaker *Breaker
	first   *admission
	release chan struct{}
}

// hearTelling returns it once the observer is busy. The waiter has come long before it finds the probe lost, or in that moment.
func hearTelling(t *testing.T, s Settings, longBefore bool) *telling {
	t.Helper()
	x := &telling{release: make(chan struct{})}
	s.ProbeTimeout = time.Minute
	s.OnStateChange = func(_ context.Context, c StateChange) {
		if c.Reason == ReasonProbeTimeout {
			<-x.release
		}
	}
	x.breaker = MustNewClassic(s)
	trip(t, x.breaker)
	time.Sleep(s.BreakDuration)
	_, err := x.breaker.TryAcquire(t.Context()) // a probe that is forgotten
	require.NoError(t, err)
	if !longBefore {
		time.Sleep(time.Minute)
	}
	x.first = acquireLater(t.Context(), x.breaker)
	if longBefore {
		time.Sleep(time.Minute)
	}
	require.True(t, x.first.waiting())
	require.Equal(t, ReasonProbeTimeout, x.breaker.Snapshot().Reason)
	return x
}

// eachTelling runs a test for both.
func eachTelling(t *testing.T, test func(t *testing.T, longBefore bool)) {
	for name, longBefore := range map[string]bool{"in the line": true, "newcomer": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, longBefore) })
		})
	}
}

// A waiter that told of a change had left the line for so long: whoever came meanwhile overtook it. It keeps its place.
func TestRegression_WaiterThatTellsIsNotOvertaken(t *testing.T) {
	eachTelling(t, func(t *testing.T, longBefore bool) {
		x := hearTelling(t, brittle(nil), longBefore)
		second := acquireLater(t.Context(), x.breaker)
		pastBreak(t, x.breaker)
		require.True(t, second.waiting(), "the break is over, and the first has not had its turn")
		_, err := x.breaker.TryAcquire(t.Context())
		require.ErrorIs(t, err, ErrRejected)

		close(x.release)
		require.False(t, x.first.waiting())
		require.NoError(t, x.first.err)
		assert.True(t, x.first.permit.IsProbe())
		assert.True(t, second.waiting())
		x.first.permit.Release()
		require.False(t, second.waiting())
		second.permit.Release()
	})
}

// With a MaxWaiting of 1, two waited. While the first tells it waits as well.
func TestRegression_WaiterThatTellsCountsForMaxWaiting(t *testing.T) {
	eachTelling(t, func(t *testing.T, longBefore bool) {
		s := brittle(nil)
		s.MaxWaiting = 1
		x := hearTelling(t, s, longBefore)
		assert.Equal(t, 1, x.breaker.Snapshot().Waiting)
		second := acquireLater(t.Context(), x.breaker)
		require.False(t, second.waiting())
		require.ErrorIs(t, second.err, ErrRejected)
		assert.Zero(t, second.after)
		close(x.release)
		pastBreak(t, x.breaker)
		require.False(t, x.first.waiting())
		x.first.permit.Release()
		assert.Zero(t, x.breaker.Snapshot().Waiting)
	})
}

// MaxWait began anew, or only, once the observers had returned. It runs from the arrival.
func TestRegression_WaiterThatTellsKeepsItsMaxWait(t *testing.T) {
	eachTelling(t, func(t *testing.T, longBefore bool) {
		s := brittle(nil)
		s.BreakDuration, s.MaxBreakDuration, s.MaxWait = time.Hour, 10*time.Hour, 70*time.Second
		x := hearTelling(t, s, longBefore)
		time.Sleep(5 * time.Second)
		close(x.release)
		rest := 65 * time.Second
		if longBefore {
			rest = 5 * time.Second
		}
		time.Sleep(rest - 1)
		require.True(t, x.first.waiting())
		time.Sleep(time.Nanosecond)
		require.False(t, x.first.waiting())
		require.ErrorIs(t, x.first.err, ErrRejected)
		assert.Equal(t, s.MaxWait, x.first.after)
	})
}

// One whose time is over while it tells goes at once when the observers have returned.
func TestRegression_MaxWaitThatEndsWhileTheWaiterTells(t *testing.T) {
	eachTelling(t, func(t *testing.T, longBefore bool) {
		s := brittle(nil)
		s.BreakDuration, s.MaxBreakDuration, s.MaxWait = time.Hour, 10*time.Hour, 70*time.Second
		x := hearTelling(t, s, longBefore)
		time.Sleep(2 * time.Minute)
		close(x.release)
		require.False(t, x.first.waiting())
		require.ErrorIs(t, x.first.err, ErrRejected)
		assert.Zero(t, x.breaker.Snapshot().Waiting)
	})
}

// Only the observer that the waiter tells goes before it, because each would wait for the other; it may itself wait in the line.
func TestObserverGoesBeforeTheWaiterThatTellsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b *Breaker
		var order []string
		s := brittle(nil)
		s.ProbeTimeout, s.MaxWait = time.Minute, Disabled
		s.OnStateChange = func(_ context.Context, c StateChange) {
			if c.Reason == ReasonProbeTimeout {
				p, err := b.Acquire(context.Background())
				assert.NoError(t, err)
				order = append(order, "observer")
				p.Release()
			}
		}
		b = MustNewClassic(s)
		trip(t, b)
		time.Sleep(10 * time.Second)
		_, err := b.TryAcquire(t.Context())
		require.NoError(t, err)
		first, second := acquireLater(t.Context(), b), acquireLater(t.Context(), b)
		time.Sleep(time.Minute)
		require.True(t, first.waiting())
		assert.Equal(t, 3, b.Snapshot().Waiting)
		pastBreak(t, b)
		require.False(t, first.waiting())
		order = append(order, "first")
		assert.True(t, second.waiting())
		assert.Equal(t, []string{"observer", "first"}, order)
		first.permit.Release()
		require.False(t, second.waiting())
		second.permit.Release()
	})
}

// waits are the calls that wait, with a context that ends.
var waits = map[string]func(context.Context, *Breaker) error{"Acquire": acquire, "Breaker.Execute": execute, "Execute": executeValue}

// A wait with a deadline returned DeadlineExceeded alone: nobody could tell that the dependency had not been asked, nor how long the
// call had been waiting. It is no refusal in the totals, and no RejectedError, which would speak of a break.
func TestRegression_WaitThatItsContextEndsSaysSo(t *testing.T) {
	for name, wait := range waits {
		for _, cause := range []error{context.DeadlineExceeded, context.Canceled} {
			t.Run(name+" "+cause.Error(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := brittle(nil)
					s.WhenOpen = Wait
					b := MustNewClassic(s)
					trip(t, b)
					ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
					defer cancel()
					if cause == context.Canceled {
						ctx, cancel = context.WithCancel(t.Context())
						time.AfterFunc(3*time.Second, cancel)
					}
					err := wait(ctx, b)
					assert.ErrorIs(t, err, ErrRejected)
					assert.ErrorIs(t, err, cause)
					waited, _ := errors.AsType[*WaitError](err)
					require.NotNil(t, waited)
					assert.Equal(t, WaitError{Name: "db", State: Open, Waited: 3 * time.Second, Err: cause}, *waited)
					assert.EqualError(t, err, `breaker: "db" is open: gave up after waiting 3s: `+cause.Error())
					_, isRefusal := errors.AsType[*RejectedError](err)
					assert.False(t, isRefusal)
					assert.Zero(t, b.Snapshot().Totals.Rejected)
				})
			})
		}
	}
}

// A breaker around it takes it for what it is, a call that was not made, though a deadline that ran out is a failure otherwise.
func TestRegression_OuterBreakerIgnoresAWaitThatEnded(t *testing.T) {
	for name, wait := range waits {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := brittle(nil)
				s.WhenOpen = Wait
				inner, outer := MustNewClassic(s), MustNewClassic(brittle(nil))
				trip(t, inner)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				err := outer.Execute(ctx, func(ctx context.Context) error { return wait(ctx, inner) })
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				assert.Equal(t, Totals{Ignored: 1}, outer.Snapshot().Totals)
				assert.Equal(t, Closed, outer.State())
			})
		})
	}
}
