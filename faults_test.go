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
				b := MustNew(s)
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
			s.SlowCallThreshold, s.SlowCalls.Overdue = time.Second, true
			s.Random = func() float64 {
				if exits {
					runtime.Goexit()
				}
				return 0
			}
			b := MustNew(s)
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
			b.machine.flights.check(t, 0)
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
	b := MustNew(s)
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
				b := MustNew(s)
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
	b := MustNew(s)
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
