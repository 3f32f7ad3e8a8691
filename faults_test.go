package breaker

import (
	"context"
	"math"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// aside runs f on a goroutine of its own, which f may end, and returns once it has.
func aside(f func()) {
	var ended sync.WaitGroup
	ended.Go(f)
	ended.Wait()
}

// toProbe opens a brittle breaker and waits for the end of the break, by a clock that a test sets by hand.
func toProbe(t *testing.T, b *Breaker, c *handClock) {
	t.Helper()
	trip(t, b)
	wait, ok := b.RetryAfter()
	require.True(t, ok)
	c.advance(wait)
	require.Equal(t, HalfOpen, b.State())
}

// Where Random gives no number, another one stands in: a fleet must not open and probe as one.
func TestRandomThatIsNoNumberStillSpreads(t *testing.T) {
	for name, random := range map[string]func() float64{
		"NaN": math.NaN, "panic": func() float64 { panic("boom") },
	} {
		t.Run(name, func(t *testing.T) {
			breaks := map[time.Duration]bool{}
			for range 20 {
				s := brittle(new(handClock))
				s.BreakJitter, s.Random, s.OnCallbackError = JitterFull, random, new(faultLog).add
				b := MustNewClassic(s)
				trip(t, b)
				wait, _ := b.RetryAfter()
				breaks[wait] = true
			}
			assert.Greater(t, len(breaks), 15)
		})
	}
}

// A Random that ends its goroutine takes no call with it, and no slot. A permit that was recorded kept its slot once, so a probe was
// lost, and a call in flight seemed to hang for ever.
func TestRegression_RandomThatExitsLeaksNoSlot(t *testing.T) {
	for name, end := range map[string]func(*Breaker){
		"Execute": func(b *Breaker) { _ = b.Execute(context.Background(), func(context.Context) error { return errDown }) },
		"Done":    func(b *Breaker) { p, _ := b.TryAcquire(context.Background()); p.Done(context.Background(), errDown) },
		"Record":  func(b *Breaker) { p, _ := b.TryAcquire(context.Background()); p.Record(Transient) },
		"RecordLatency": func(b *Breaker) {
			p, _ := b.TryAcquire(context.Background())
			p.RecordLatency(Transient, time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var c handClock
			exits, faults := false, new(faultLog)
			s := brittle(&c)
			s.BreakJitter, s.OnCallbackError = JitterEqual, faults.add
			s.SlowCallThreshold = time.Second
			s.Random = func() float64 {
				if exits {
					runtime.Goexit()
				}
				return 0
			}
			b := MustNew(seeingOverdue(s))
			toProbe(t, b, &c)
			exits = true
			returned := false
			aside(func() {
				end(b)
				returned = true
			})
			assert.True(t, returned, "the goroutine goes on")
			got := b.Snapshot()
			assert.Zero(t, got.ProbesInFlight)
			assert.Equal(t, uint64(2), got.Totals.Opens)
			assert.Equal(t, Open, got.State)
			requireFlying(t, b.machine.flights, 0)
			require.Len(t, faults.all(), 1)
			assert.Equal(t, errGoexit, faults.all()[0].Err)
		})
	}
}

// Also where the open is one that an admission makes.
func TestRandomThatExitsInAnAdmission(t *testing.T) {
	var c handClock
	exits, faults := false, new(faultLog)
	s := brittle(&c)
	s.BreakJitter, s.ProbeTimeout, s.OnCallbackError = JitterFull, time.Second, faults.add
	s.Random = func() float64 {
		if exits {
			runtime.Goexit()
		}
		return 0.5
	}
	b := MustNewClassic(s)
	toProbe(t, b, &c)
	_, err := b.TryAcquire(t.Context())
	require.NoError(t, err)
	c.advance(time.Second)
	exits = true
	_, err = b.TryAcquire(t.Context())
	require.ErrorIs(t, err, ErrRejected)
	require.Len(t, faults.all(), 1)
	assert.Equal(t, errGoexit, faults.all()[0].Err)
	assert.Equal(t, ReasonProbeTimeout, b.Snapshot().Reason)
}

// The same while the function of a probe panics: what came of the panic was told of in a deferred call that the exit cut short, and
// the slot was lost. The panic goes on.
func TestRegression_RandomThatExitsWhileTheCallPanics(t *testing.T) {
	var c handClock
	exits, faults := false, new(faultLog)
	s := brittle(&c)
	s.BreakJitter, s.OnCallbackError = JitterEqual, faults.add
	s.Random = func() float64 {
		if exits {
			runtime.Goexit()
		}
		return 0
	}
	b := MustNewClassic(s)
	toProbe(t, b, &c)
	exits = true
	assert.PanicsWithValue(t, "probe", func() {
		_ = b.Execute(t.Context(), func(context.Context) error { panic("probe") })
	})
	assertFree(t, &b.mu, "the lock")
	assert.Zero(t, b.Snapshot().ProbesInFlight)
	assert.Equal(t, ReasonProbeFailed, b.Snapshot().Reason)
	require.Len(t, faults.all(), 1)
	assert.Equal(t, "Random", faults.all()[0].Callback)
}

// failingClock is a clock whose reading fails while a test says so.
type failingClock struct {
	handClock
	fail func()
}

func (c *failingClock) Since(t time.Time) time.Duration {
	if c.fail != nil {
		c.fail()
	}
	return c.handClock.Since(t)
}

// everyEnd makes a call that has failed and lets something happen just before it ends.
var everyEnd = map[string]func(b *Breaker, happens func()){
	"Record":        func(b *Breaker, happens func()) { p := admitted(b); happens(); p.Record(Transient) },
	"RecordLatency": func(b *Breaker, happens func()) { p := admitted(b); happens(); p.RecordLatency(Transient, 1) },
	"Done":          func(b *Breaker, happens func()) { p := admitted(b); happens(); p.Done(context.Background(), errDown) },
	"Execute": func(b *Breaker, happens func()) {
		_ = b.Execute(context.Background(), func(context.Context) error { happens(); return errDown })
	},
	"panic": func(b *Breaker, happens func()) {
		defer func() { _ = recover() }()
		_ = b.Execute(context.Background(), func(context.Context) error { happens(); panic("call") })
	},
}

func admitted(b *Breaker) *Permit {
	p, err := b.TryAcquire(context.Background())
	if err != nil {
		panic(err)
	}
	return p
}

// A clock that fails at the very end of a call left a permit that was marked as ended and yet held its slot, and a call that seemed to
// be in flight for ever. One that panics is reported, and the time of the reading before stands in. One that exits takes the
// goroutine with it, as it would without a breaker; the call has ended all the same, as ignored unless it had panicked.
func TestRegression_ClockThatFailsAtTheEndOfACall(t *testing.T) {
	for name, end := range everyEnd {
		for kind, fail := range map[string]func(){"panic": func() { panic("clock") }, "exit": runtime.Goexit} {
			t.Run(name+" "+kind, func(t *testing.T) {
				c, faults := new(failingClock), new(faultLog)
				s := brittle(c)
				s.SlowCallThreshold, s.OnCallbackError = time.Second, faults.add
				b := MustNew(seeingOverdue(s))
				toProbe(t, b, &c.handClock)
				aside(func() { end(b, func() { c.fail = fail }) })
				c.fail = nil
				assertFree(t, &b.mu, "the lock")
				got := b.Snapshot()
				assert.Zero(t, got.ProbesInFlight)
				requireFlying(t, b.machine.flights, 0)
				if kind == "exit" && name != "panic" {
					assert.Equal(t, Totals{Transient: 1, Ignored: 1, Opens: 1}, got.Totals)
					pass(t, b)
					return
				}
				assert.Equal(t, Totals{Transient: 2, Opens: 2}, got.Totals)
				assert.Equal(t, kind == "panic", len(faults.all()) > 0)
				for _, fault := range faults.all() {
					assert.Equal(t, "Clock", fault.Callback)
				}
			})
		}
	}
}

// spentContext is a context that can be asked for its error so many times.
type spentContext struct {
	context.Context
	left int
}

func (c *spentContext) Err() error {
	if c.left--; c.left < 0 {
		panic("context")
	}
	return c.Context.Err()
}

// A context is code of the user as well. One that panics when it is asked at the end of a call left that call unended: its slot was
// lost, though the panic was reported.
func TestRegression_ContextThatPanicsAtTheEndOfACall(t *testing.T) {
	for name, test := range map[string]struct {
		call func(b *Breaker, ctx context.Context)
		want Totals
	}{
		"Execute": {func(b *Breaker, ctx context.Context) {
			_ = b.Execute(ctx, func(context.Context) error { return errDown })
		}, Totals{Transient: 2, Opens: 2}},
		"Done": {func(b *Breaker, ctx context.Context) {
			p, _ := b.TryAcquire(ctx)
			p.Done(ctx, errDown)
		}, Totals{Transient: 2, Opens: 2}},
		"panic": {func(b *Breaker, ctx context.Context) {
			defer func() { _ = recover() }()
			_ = b.Execute(ctx, func(context.Context) error { panic("call") })
		}, Totals{Transient: 2, Opens: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			c, faults := new(handClock), new(faultLog)
			s := brittle(c)
			s.OnCallbackError = faults.add
			b := MustNewClassic(s)
			toProbe(t, b, c)
			test.call(b, &spentContext{t.Context(), 1})
			assertFree(t, &b.mu, "the lock")
			assert.Zero(t, b.Snapshot().ProbesInFlight)
			assert.Equal(t, test.want, b.Snapshot().Totals)
			require.Len(t, faults.all(), 1)
			assert.Equal(t, "context", faults.all()[0].Panic)
		})
	}
}

// A clock that leaps an hour either way, with a call in flight, in each state: a leap forward is time that has passed, one back
// is no time at all, and no number that is read is out of its range.
func TestClockThatLeapsInEveryState(t *testing.T) {
	recovering := func(t *testing.T, b *Breaker, c *handClock) {
		toProbe(t, b, c)
		pass(t, b)
		c.advance(5 * time.Second)
	}
	for _, test := range []struct {
		name        string
		enter       func(*testing.T, *Breaker, *handClock)
		back, ahead [2]State // after the leap, and after the call in flight and one more succeeded
	}{
		{"closed", func(*testing.T, *Breaker, *handClock) {}, [2]State{Closed, Closed}, [2]State{Closed, Closed}},
		{"open", func(t *testing.T, b *Breaker, _ *handClock) { trip(t, b) }, [2]State{Open, Open}, [2]State{HalfOpen, Recovering}},
		{"half-open", toProbe, [2]State{HalfOpen, Recovering}, [2]State{HalfOpen, Recovering}},
		{"recovering", recovering, [2]State{Recovering, Recovering}, [2]State{Closed, Closed}},
		{"isolated", func(_ *testing.T, b *Breaker, _ *handClock) { b.Isolate() },
			[2]State{Isolated, Isolated}, [2]State{Isolated, Isolated}},
	} {
		for leap, want := range map[time.Duration][2]State{-time.Hour: test.back, time.Hour: test.ahead} {
			t.Run(test.name+" "+leap.String(), func(t *testing.T) {
				c := &handClock{now: time.Unix(1_000_000, 0)}
				s := brittle(c)
				s.Recovery = Recovery{Fraction: 1}
				b := MustNewClassic(s)
				test.enter(t, b, c)
				p, _ := b.TryAcquire(t.Context())
				since := b.Snapshot().Since

				c.advance(leap)
				requireSane(t, b)
				assert.Equal(t, want[0], b.State())
				p.Record(Success)
				_ = b.Execute(t.Context(), func(context.Context) error { return nil })
				requireSane(t, b)
				assert.Equal(t, want[1], b.State())
				assert.False(t, b.Snapshot().Since.Before(since), "time went back")
				requireWord(t, b)
			})
		}
	}
}

// While the clock stands still no break ends by itself; everything that needs no time goes on.
func TestClockThatStandsStill(t *testing.T) {
	s := brittle(new(handClock))
	s.ConsecutiveFailures, s.FailureRatio = Disabled, 0.5
	b := MustNewClassic(s)
	for range 20 {
		pass(t, b)
	}
	for range 20 {
		require.Equal(t, Closed, b.State())
		trip(t, b)
	}
	require.Equal(t, Open, b.State())
	for range 1000 {
		_, err := b.TryAcquire(t.Context())
		require.ErrorIs(t, err, ErrRejected)
	}
	requireSane(t, b)
	wait, _ := b.RetryAfter()
	assert.Equal(t, 10*time.Second, wait)
	b.Reset()
	pass(t, b)
	assert.Equal(t, Closed, b.State())
}

// requireSane checks that nothing that is read is out of its range.
func requireSane(t *testing.T, b *Breaker) {
	t.Helper()
	s := b.Snapshot()
	require.GreaterOrEqual(t, s.RetryAfter, time.Duration(0))
	require.LessOrEqual(t, s.RetryAfter, b.settings.MaxBreakDuration)
	require.GreaterOrEqual(t, s.AdmittedFraction, 0.0)
	require.LessOrEqual(t, s.AdmittedFraction, 1.0)
	require.GreaterOrEqual(t, s.NormalLatency, time.Duration(0))
}
