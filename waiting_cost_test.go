package breaker

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// countingClock counts how often it is asked.
type countingClock struct{ asked, alarms atomic.Int64 }

func (c *countingClock) Now() time.Time { return time.Now() }

func (c *countingClock) Since(t time.Time) time.Duration {
	c.asked.Add(1)
	return time.Since(t)
}

func (c *countingClock) After(d time.Duration) <-chan time.Time {
	c.alarms.Add(1)
	return time.After(d)
}

// idleStates bring a breaker with a break of an hour into a state in which nothing happens for a time.
var idleStates = []struct {
	name string
	wait func(*testing.T, *Breaker)
	idle time.Duration
}{
	{"open", func(t *testing.T, b *Breaker) { trip(t, b) }, time.Hour - 1},
	{"isolated", func(_ *testing.T, b *Breaker) { b.Isolate() }, 1000 * time.Hour},
	{"half-open", func(t *testing.T, b *Breaker) {
		trip(t, b)
		time.Sleep(time.Hour)
		_, err := b.TryAcquire(t.Context())
		require.NoError(t, err)
	}, time.Hour - 1},
	{"recovering", func(t *testing.T, b *Breaker) {
		trip(t, b)
		time.Sleep(time.Hour)
		pass(t, b)
		_, err := b.Acquire(t.Context())
		require.NoError(t, err)
	}, 30*time.Minute - 1},
}

// In whichever state they wait, those who wait ask nothing of anybody until something happens.
func TestWaiting_DoesNotPoll(t *testing.T) {
	for _, test := range idleStates {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := new(countingClock)
				s := brittle(c)
				s.BreakDuration, s.MaxWait, s.Recovery = time.Hour, Disabled, Recovery{Fraction: 0.5, Initial: 0.001, Max: time.Hour}
				b := MustNewClassic(s)
				test.wait(t, b)
				before := c.alarms.Load()
				ctx, cancel := context.WithCancel(t.Context())
				for range 100 {
					acquireLater(ctx, b)
				}
				asked, alarms := c.asked.Load(), c.alarms.Load()
				assert.LessOrEqual(t, alarms-before, int64(1), "one alarm serves all")
				time.Sleep(test.idle)
				synctest.Wait()
				assert.Equal(t, asked, c.asked.Load())
				assert.Equal(t, alarms, c.alarms.Load())
				assert.Equal(t, 100, b.Snapshot().Waiting)
				cancel()
				synctest.Wait()
				assert.Zero(t, b.Snapshot().Waiting)
			})
		})
	}
}

// Calls that are refused while others wait do not stir those, unless they bring them credit.
func TestWaiting_RefusedCallsWakeNobody(t *testing.T) {
	for _, state := range []State{Open, Isolated, HalfOpen} {
		t.Run(state.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := new(countingClock)
				s := brittle(c)
				s.MaxWait = Disabled
				b := MustNewClassic(s)
				trip(t, b)
				switch state {
				case Isolated:
					b.Isolate()
				case HalfOpen:
					time.Sleep(10 * time.Second)
					_, err := b.TryAcquire(t.Context())
					require.NoError(t, err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				acquireLater(ctx, b)
				alarms := c.alarms.Load()
				for range 100 {
					_, err := b.TryAcquire(t.Context())
					require.ErrorIs(t, err, ErrRejected)
					synctest.Wait()
				}
				assert.Equal(t, alarms, c.alarms.Load())
			})
		})
	}
}

// Hundreds of callers come, give up, fail and succeed as they like, while somebody isolates and resets. In the end nobody may
// be left waiting, and no slot may be lost.
func TestWaiting_NothingIsLost(t *testing.T) {
	for _, recovery := range []Recovery{{}, {Fraction: 0.2}} {
		for seed := range uint64(20) {
			synctest.Test(t, func(t *testing.T) {
				s := brittle(nil)
				s.HalfOpenProbes, s.ProbeSuccesses, s.Recovery, s.MaxWait = 2, 3, recovery, Disabled
				s.MaxBreakDuration, s.ProbeTimeout = 20*time.Second, time.Minute
				b := MustNewClassic(s)
				var all sync.WaitGroup
				crowd(t, &all, b, rand.New(rand.NewPCG(seed, 1)))
				all.Go(func() {
					time.Sleep(50 * time.Second)
					b.Isolate()
					time.Sleep(5 * time.Second)
					b.Reset()
				})
				all.Wait()
				require.Zero(t, b.Snapshot().Waiting)
				for range 50 {
					all.Go(func() {
						p, err := b.Acquire(context.Background())
						assert.NoError(t, err)
						p.Record(Success)
					})
				}
				all.Wait()
				require.Zero(t, b.Snapshot().Waiting)
			})
		}
	}
}

// crowd starts callers that come in the first hundred seconds, wait for as long as they please, and end as they please.
func crowd(t *testing.T, all *sync.WaitGroup, b *Breaker, random *rand.Rand) {
	for range 300 {
		start := time.Duration(random.IntN(100_000)) * time.Millisecond
		patience := time.Duration(random.IntN(100)+1) * time.Second
		lasts := time.Duration(random.IntN(5000)) * time.Millisecond
		outcome := []Outcome{Success, Success, Success, Success, Ignored, Transient}[random.IntN(6)]
		all.Go(func() {
			time.Sleep(start)
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			p, err := b.Acquire(ctx)
			if err != nil {
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				return
			}
			time.Sleep(lasts)
			p.Record(outcome)
		})
	}
}

// creepingClock goes on with every reading, up to a limit.
type creepingClock struct {
	handClock
	step  time.Duration
	reads int
}

func (c *creepingClock) Since(t time.Time) time.Duration {
	if c.reads++; c.reads < 1000 {
		c.advance(c.step)
	}
	return c.handClock.Since(t)
}

// A caller that waits sets its alarm anew where the clock went on meanwhile. By a clock that goes on with every reading it did so for
// as long as the break lasted, without ever waiting.
func TestRegression_AlarmDoesNotSpinWithAClockThatGoesOn(t *testing.T) {
	for _, step := range []time.Duration{time.Millisecond, 10 * time.Millisecond, time.Second} {
		t.Run(step.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &creepingClock{step: step}
				s := brittle(c)
				s.BreakDuration, s.MaxBreakDuration, s.MaxWait = 24*time.Hour, 24*time.Hour, Disabled
				b := MustNewClassic(s)
				trip(t, b)
				c.reads = 0
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				_, err := b.Acquire(ctx)
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				assert.Less(t, c.reads, 20)
			})
		})
	}
}
