package breaker

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A panic while the lock is held, which only a fault of our own can be, locked the breaker for good once: whoever unwound past
// it, to settle the call, waited for the lock that it held itself. It is told of, and neither the call nor the next ones notice.
func TestRegression_FaultOfOurOwn(t *testing.T) {
	ctx := context.Background()
	succeed := func(context.Context) error { return nil }
	fail := func(context.Context) error { return errDown }
	closed := func(t *testing.T, b *Breaker, _ *handClock) { pass(t, b) } // whose next fast success is recorded the fast way
	noWindow := func(b *Breaker) func() {                                 // whose buckets have no width
		g := b.machine.gauge()
		window := g.window
		g.window = ring{}
		return func() { g.window = window }
	}
	noPeriod := func(b *Breaker) func() { return spoil(b, Open) }
	for name, test := range map[string]struct {
		enter func(*testing.T, *Breaker, *handClock)
		spoil func(*Breaker) (repair func())
		call  func(*testing.T, *Breaker)
	}{
		"recording a fast success": {closed, noWindow, func(t *testing.T, b *Breaker) { assert.NoError(t, b.Execute(ctx, succeed)) }},
		"recording a failure":      {closed, noWindow, func(t *testing.T, b *Breaker) { assert.Equal(t, errDown, b.Execute(ctx, fail)) }},
		"recording a panic": {closed, noWindow, func(t *testing.T, b *Breaker) {
			assert.PanicsWithValue(t, "call", func() { _ = b.Execute(ctx, func(context.Context) error { panic("call") }) })
		}},
		"recording a result": {closed, noWindow, func(t *testing.T, b *Breaker) {
			got, err := Execute(ctx, b, func(context.Context) (int, error) { return 7, nil })
			assert.Equal(t, 7, got)
			assert.NoError(t, err)
		}},
		"ending a permit": {closed, noWindow, func(t *testing.T, b *Breaker) {
			p, err := b.TryAcquire(ctx)
			require.NoError(t, err)
			assert.False(t, p.Done(ctx, nil))
		}},
		"ending a permit with an outcome": {closed, noWindow, func(t *testing.T, b *Breaker) {
			p, err := b.TryAcquire(ctx)
			require.NoError(t, err)
			assert.False(t, p.Record(Success))
		}},
		"admitting": {toProbe, noPeriod, func(t *testing.T, b *Breaker) {
			ran := false
			assert.Equal(t, errDown, b.Execute(ctx, func(context.Context) error { ran = true; return errDown }))
			assert.True(t, ran)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var c handClock
			faults := new(faultLog)
			s := brittle(&c)
			s.ConsecutiveFailures, s.FailureRatio, s.MinCalls, s.OnCallbackError = 0, 0.5, 1, faults.add
			b := MustNewClassic(s)
			test.enter(t, b, &c)
			before := b.State()
			repair := test.spoil(b)
			test.call(t, b)
			assertFree(t, &b.mu, "the lock")
			require.False(t, t.Failed())
			repair()
			require.Len(t, faults.all(), 1)
			fault := faults.all()[0]
			assert.Equal(t, "Breaker", fault.Callback)
			assert.NotNil(t, fault.Panic)
			assert.Contains(t, string(fault.Stack), "(*machine)")
			assert.Equal(t, before, b.State())
			pass(t, b)
		})
	}
}

// spoil takes what the machine keeps of an open period away, as no code does, and returns what puts it back.
func spoil(b *Breaker, s State) (repair func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	state, period := b.machine.state, b.machine.period
	b.machine.state, b.machine.period = s, nil
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.machine.state, b.machine.period = state, period
	}
}

// One that waits is admitted after a fault of our own, and is in the queue no more.
func TestFaultOfOurOwnWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults := new(faultLog)
		s := brittle(nil)
		s.OnCallbackError = faults.add
		b := MustNewClassic(s)
		trip(t, b)
		a := acquireLater(t.Context(), b)
		require.True(t, a.waiting())
		repair := spoil(b, HalfOpen)
		b.waiting.head.turn <- struct{}{}
		require.False(t, a.waiting())
		require.NoError(t, a.err)
		require.Len(t, faults.all(), 1)
		assert.Equal(t, "Breaker", faults.all()[0].Callback)
		repair()
		assert.False(t, a.permit.Done(t.Context(), errDown))
		assert.Zero(t, b.Snapshot().Waiting)
		time.Sleep(10 * time.Second)
		pass(t, b)
		assert.Equal(t, Closed, b.State())
	})
}

// The same where it asks for the first time, and where it works out when to ask again.
func TestFaultOfOurOwnBeforeWaiting(t *testing.T) {
	for what, first := range map[string]bool{"asks": true, "sets its alarm": false} {
		t.Run(what, func(t *testing.T) {
			var c racingClock
			faults := new(faultLog)
			s := brittle(&c)
			s.OnCallbackError = faults.add
			b := MustNewClassic(s)
			trip(t, b)
			var repair func()
			fault := func() { repair = spoil(b, HalfOpen) }
			c.meanwhile = fault
			if !first { // the second reading is for the alarm
				c.meanwhile = func() { c.meanwhile = fault }
			}
			p, err := b.Acquire(t.Context())
			require.NoError(t, err)
			repair()
			require.Len(t, faults.all(), 1)
			assert.Equal(t, "Breaker", faults.all()[0].Callback)
			assert.False(t, p.Done(t.Context(), errDown))
			assert.Zero(t, b.Snapshot().Waiting)
			assert.Equal(t, Open, b.State())
		})
	}
}

// A fault of our own while a change is delivered does not stop the delivery.
func TestFaultOfOurOwnWhileDelivering(t *testing.T) {
	var c handClock
	faults, changes := new(faultLog), new(watchLog)
	var b *Breaker
	var repair func()
	s := brittle(&c)
	s.OnCallbackError, s.OnStateChange = faults.add, changes.add
	s.BreakDurationFunc = func(context.Context, StateChange) (time.Duration, error) {
		repair = spoil(b, Open)
		return time.Second, nil
	}
	b = MustNewClassic(s)
	trip(t, b)
	repair()
	require.Len(t, faults.all(), 1)
	assert.Equal(t, "Breaker", faults.all()[0].Callback)
	b.Reset()
	assert.Equal(t, []State{Open, Closed}, changes.states())
}
