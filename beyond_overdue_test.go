package breaker

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// overdueAfter are settings that open on overdue calls alone: five of them, half of all, past 1.5 s. Buckets are a second wide.
func overdueAfter(with func(*Settings)) Settings {
	return only(func(s *Settings) {
		s.Window, s.MinCalls, s.SlowCallThreshold = 10*time.Second, 5, 1500*time.Millisecond
		s.SlowCalls.Overdue = true
		s.ProbeSuccesses = 1
		if with != nil {
			with(s)
		}
	})
}

// asks are n calls that are admitted and stay in flight.
func (x *trial) asks(n int) (tickets []*ticket) {
	x.t.Helper()
	for range n {
		ticket, change := x.ask()
		require.Nil(x.t, change)
		tickets = append(tickets, ticket)
	}
	return tickets
}

// opensOnAsking is a call that finds the others overdue and is refused.
func (x *trial) opensOnAsking() {
	x.t.Helper()
	_, ok, change := x.admit(x.now, passing)
	require.False(x.t, ok)
	require.NotNil(x.t, change)
	require.Equal(x.t, ReasonOverdueCalls.String(), change.reason.String())
	require.Equal(x.t, Open, x.state)
}

// An admission judges at most once a bucket. Calls that become overdue after it did wait for the next.
func TestOverdueIsJudgedOnceABucket(t *testing.T) {
	x := try(t, overdueAfter(nil))
	x.asks(5)
	x.now = 2*time.Second + 499*time.Millisecond
	x.asks(1) // 999 ms after the bucket they began in: not yet
	x.now = 2*time.Second + 500*time.Millisecond
	x.asks(1) // they are overdue, but this bucket has been judged
	x.now = 3*time.Second - 1
	x.asks(1)
	x.now = 3 * time.Second
	x.opensOnAsking()
}

// The first admission of a bucket that finds them overdue does not wait.
func TestOverdueIsJudgedAtOnceInANewBucket(t *testing.T) {
	x := try(t, overdueAfter(nil))
	x.asks(5)
	x.now = 2*time.Second + 500*time.Millisecond
	x.opensOnAsking()
}

// MinCalls counts those in flight past the threshold as well, and no others.
func TestOverdueNeedsMinCalls(t *testing.T) {
	x := try(t, overdueAfter(nil))
	tickets := x.asks(4)
	x.now = 10 * time.Second
	x.asks(20) // in flight, not overdue
	require.Equal(t, Closed, x.state)
	x.now = 11 * time.Second
	x.asks(1) // still four
	x.end(tickets[0], Success, 11*time.Second)
	x.now = 12 * time.Second
	x.asks(1) // one slow and three overdue
}

// SlowCallRatio is met exactly by five of ten, and not by five of eleven.
func TestOverdueMeetsTheRatioExactly(t *testing.T) {
	for fast, opens := range map[int]bool{5: true, 6: false} {
		x := try(t, overdueAfter(nil))
		x.calls(fast, Success, time.Millisecond)
		x.asks(5)
		x.now = 5 * time.Second
		require.Equal(t, opens, x.overdueTrips(x.now))
		if opens {
			x.opensOnAsking()
		} else {
			x.asks(1)
		}
	}
}

// The break that an admission begins is jittered like any other.
func TestOverdueBreakIsJittered(t *testing.T) {
	clock, log := new(virtualClock), new(watchLog)
	b := MustNew(overdueAfter(func(s *Settings) {
		s.Clock, s.OnStateChange, s.BreakJitter = clock, log.add, JitterFull
		s.Random = func() float64 { return 0.25 }
	}))
	for range 5 {
		_, err := b.TryAcquire(t.Context())
		require.NoError(t, err)
	}
	clock.now = 5 * time.Second
	_, err := b.TryAcquire(t.Context())
	require.ErrorIs(t, err, ErrRejected)
	assert.Equal(t, 3750*time.Millisecond, log.all()[0].Break)
}

// A call that ends is an ordinary sample, and no longer in flight: four of five are never five.
func TestOverdueCountsNoCallTwice(t *testing.T) {
	x := try(t, overdueAfter(func(s *Settings) { s.SlowCallRatio = 1 }))
	tickets := x.asks(4)
	x.now = 5 * time.Second
	require.Equal(t, 4, x.overdue(x.now))
	for i, ticket := range tickets {
		require.Nil(t, x.end(ticket, Success, x.now), "%d of 4 slow, the others overdue", i+1)
		require.Equal(t, 3-i, x.overdue(x.now))
	}
	x.trips(ReasonSlowCalls, Success, 2*time.Second)
}

// Neutral outcomes end the flight and are no samples.
func TestOverdueEndsWithANeutralOutcome(t *testing.T) {
	x := try(t, overdueAfter(nil))
	tickets := x.asks(3)
	x.now = 5 * time.Second
	for i, o := range []Outcome{Throttled, Permanent, Ignored} {
		x.end(tickets[i], o, x.now)
	}
	assert.Zero(t, x.overdue(x.now))
	x.flights.check(t, 0)
}

// A recorded outcome judges those in flight as well, if it is one that can trip.
func TestOverdueIsJudgedAtRecordings(t *testing.T) {
	x := try(t, overdueAfter(nil))
	tickets := x.asks(8)
	x.now = 5 * time.Second
	require.Nil(t, x.end(tickets[0], Success, time.Millisecond), "a fast success never trips")
	change := x.end(tickets[1], Transient, time.Millisecond)
	require.NotNil(t, change)
	assert.Equal(t, ReasonOverdueCalls, change.reason)
	assert.Equal(t, Counts{Calls: 2, Failures: 1, ConsecutiveFailures: 1}, change.counts, "of the trip window")
}

// Where what has ended is enough, the reason is that.
func TestOverdueIsNotTheReasonOfSlowCalls(t *testing.T) {
	x := try(t, overdueAfter(nil))
	x.asks(8)
	x.calls(4, Success, 2*time.Second)
	x.now = 4 * time.Second
	x.flights.judged(x.now)
	x.trips(ReasonSlowCalls, Success, 2*time.Second)
}

// Without a threshold in force nothing is overdue, and once it is measured, all that are in flight are judged by it.
func TestOverdueNeedsAThreshold(t *testing.T) {
	x := try(t, Settings{SlowCalls: SlowCalls{Overdue: true}})
	x.asks(30)
	x.now = time.Minute
	x.calls(19, Success, normal)
	x.now += 3 * time.Second
	x.calls(1, Success, normal)
	x.now += 3 * time.Second
	x.opensOnAsking()
}

// A measured threshold that no call has confirmed for as long as its window is none any more.
func TestOverdueThresholdDecays(t *testing.T) {
	x := try(t, Settings{SlowCalls: SlowCalls{Overdue: true}})
	x.calls(100, Success, normal)
	x.asks(30)
	x.now = 10 * time.Minute
	assert.Zero(t, x.overdue(x.now))
	x.asks(1)
}

// Calls of an earlier epoch are forgotten, and what they report late touches nothing.
func TestOverdueForgetsTheEpoch(t *testing.T) {
	for name, opens := range map[string]func(*trial){
		"overdue": (*trial).opensOnAsking,
		"isolate": func(x *trial) { x.isolate(x.now) },
	} {
		t.Run(name, func(t *testing.T) {
			x := try(t, overdueAfter(nil))
			tickets := x.asks(8)
			x.now = 5 * time.Second
			opens(x)
			x.flights.check(t, 0)
			x.reset(x.now)
			x.asks(2)
			for _, ticket := range tickets {
				counted, change := x.settle(x.now, ticket, Transient, time.Second)
				require.False(t, counted)
				require.Nil(t, change)
			}
			assert.EqualValues(t, len(tickets), x.totals.Discarded)
			x.flights.check(t, 2)
		})
	}
}

// Reset of a closed breaker clears the window, not what is in flight: those calls are still of its epoch, and land in it.
func TestOverdueSurvivesAResetOfClosed(t *testing.T) {
	x := try(t, overdueAfter(nil))
	tickets := x.asks(5)
	x.reset(x.now)
	x.flights.check(t, 5)
	require.Nil(t, x.end(tickets[0], Success, time.Millisecond))
	x.flights.check(t, 4)
}

// Calls of half-open and of a ramp are in flight as well, and land in the closed state that follows.
func TestOverdueAfterRecovery(t *testing.T) {
	x := try(t, overdueAfter(func(s *Settings) { s.HalfOpenProbes, s.Recovery.Fraction = 3, 1 }))
	x.open(x.now, ReasonFailureRatio)
	x.now += 15 * time.Second
	probe, _ := x.ask()
	spare := x.asks(2)
	require.Equal(t, HalfOpen, x.state)
	require.Equal(t, Recovering, x.end(probe, Success, time.Millisecond).to)
	x.now += 15 * time.Second
	x.flights.check(t, 2)
	x.ask()
	require.Equal(t, Closed, x.state)
	x.asks(2)
	x.flights.check(t, 5)
	assert.Equal(t, 2, x.overdue(x.now))
	x.end(spare[0], Success, 15*time.Second)
	assert.Equal(t, 1, x.overdue(x.now))
	x.flights.check(t, 4)
}

// Permits that nobody ends open the circuit once they are most of the calls, and are forgotten with that.
func TestOverdueForgottenPermits(t *testing.T) {
	x := try(t, overdueAfter(nil))
	forgotten := 0
	for x.state == Closed {
		x.now += 100 * time.Millisecond
		if _, ok, change := x.admit(x.now, passing); ok { // forgotten
			forgotten++
			x.calls(1, Success, time.Millisecond)
		} else {
			require.Equal(t, ReasonOverdueCalls, change.reason)
		}
	}
	assert.InDelta(t, 120, forgotten, 15, "as many as the calls of a window, and a bucket or two that are not overdue yet")
	x.flights.check(t, 0)
}

// A dry run opens, says so, and goes on admitting; what it would have refused is not sampled, and is in no flight.
func TestOverdueObserveOnly(t *testing.T) {
	clock, log := new(virtualClock), new(watchLog)
	b := MustNew(overdueAfter(func(s *Settings) { s.ObserveOnly, s.Clock, s.OnStateChange = true, clock, log.add }))
	var permits []*Permit
	for range 5 {
		p, err := b.TryAcquire(t.Context())
		require.NoError(t, err)
		permits = append(permits, p)
	}
	clock.now = 5 * time.Second
	p, err := b.TryAcquire(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []State{Open}, log.states())
	assert.Equal(t, ReasonOverdueCalls, log.all()[0].Reason)
	assert.False(t, p.Record(Success))
	for _, p := range permits {
		assert.False(t, p.Record(Success))
	}
	s := b.Snapshot()
	assert.Equal(t, Totals{Rejected: 1, Opens: 1, Discarded: 5}, s.Totals)
	b.machine.flights.check(t, 0)
}

// A caller that waits opens the circuit like any other, and then waits.
func TestOverdueWaitingCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := new(watchLog)
		b := MustNew(overdueAfter(func(s *Settings) { s.OnStateChange = log.add }))
		for range 5 {
			_, err := b.TryAcquire(t.Context())
			require.NoError(t, err)
		}
		time.Sleep(5 * time.Second)
		one := acquireLater(t.Context(), b)
		two := acquireLater(t.Context(), b)
		require.True(t, one.waiting() && two.waiting())
		require.Equal(t, ReasonOverdueCalls, log.all()[0].Reason)
		pastBreak(t, b)
		require.NoError(t, one.err)
		require.True(t, !one.waiting() && one.permit.IsProbe())
		require.True(t, two.waiting())
		one.permit.Record(Success)
		require.False(t, two.waiting())
		two.permit.Release()
		assert.Equal(t, []State{Open, HalfOpen, Closed}, log.states())
		b.machine.flights.check(t, 0)
	})
}

// Whatever ends a call ends its flight: a panic, an error, a release, a refusal of another breaker.
func TestOverdueWhateverEndsACall(t *testing.T) {
	b := MustNew(overdueAfter(nil))
	ctx := t.Context()
	assert.Panics(t, func() { _ = b.Execute(ctx, func(context.Context) error { panic("no") }) })
	_ = b.Execute(ctx, func(context.Context) error { return ErrRejected })
	_ = b.Execute(ctx, func(context.Context) error { return errDown })
	p, err := b.TryAcquire(ctx)
	require.NoError(t, err)
	b.machine.flights.check(t, 1)
	p.Release()
	p.Release()
	b.machine.flights.check(t, 0)
}

// Every admission counts, from however many goroutines, and through opens.
func TestBeyondFromManyGoroutines(t *testing.T) {
	s := beyond("all")
	s.BreakDuration, s.BreakJitter, s.Window = time.Microsecond, JitterFull, 10*time.Millisecond
	b := MustNew(s)
	const callers, each = 8, 500
	var wait sync.WaitGroup
	for range callers {
		wait.Go(func() {
			for n := range each {
				err := b.Execute(context.Background(), func(context.Context) error {
					if n%40 > 30 {
						return errDown
					}
					return nil
				})
				if err != nil && !errors.Is(err, errDown) && !errors.Is(err, ErrRejected) {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	totals := b.Snapshot().Totals
	assert.Positive(t, totals.Opens)
	assert.EqualValues(t, callers*each, totals.Successes+totals.Transient+totals.Ignored+totals.Discarded+totals.Rejected)
	b.machine.flights.check(t, 0)
}
