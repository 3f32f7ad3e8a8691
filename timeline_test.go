package breaker

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// roughClock is a clock that a test moves, and that may be late with what it has read, or fail.
type roughClock struct {
	now   atomic.Int64 // since origin
	fails atomic.Bool
}

var roughOrigin = time.Unix(1_000_000_000, 0)

func (c *roughClock) Now() time.Time {
	now := roughOrigin.Add(time.Duration(c.now.Load()))
	for range rand.IntN(3) {
		runtime.Gosched()
	}
	if c.fails.Load() && rand.IntN(20) == 0 {
		panic("clock")
	}
	return now
}
func (c *roughClock) Since(t time.Time) time.Duration      { return c.Now().Sub(t) }
func (c *roughClock) After(time.Duration) <-chan time.Time { return nil }

// timed is a timeline as a breaker uses it: the time is asked for without the lock, and taken under it.
type timed struct {
	timeline
	clock *settable
	mu    sync.Mutex
}

func newTimed(c Clock) *timed {
	x := new(timed)
	x.clock = x.start(c).(*settable)
	return x
}

func (x *timed) read() time.Duration {
	asked, _ := x.clock.ask()
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.at(asked)
}

// readByMany reads from 16 goroutines while f moves the clock, and returns when all are done. None sees time go back.
func (x *timed) readByMany(t *testing.T, f func()) {
	t.Helper()
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			last := time.Duration(0)
			for range 50 {
				now := x.read()
				if !assert.GreaterOrEqual(t, now, last) {
					return
				}
				last = now
			}
		})
	}
	f()
	all.Wait()
}

// Late readings of a settable clock from 16 goroutines were taken for a clock set back, each a little more: the breaker's time gained
// on the clock for good. A clock that never goes back is followed to the nanosecond.
func TestRegression_LateReadingsGainNoTime(t *testing.T) {
	c := new(roughClock)
	x := newTimed(c)
	for range 20 {
		x.readByMany(t, func() {
			for range 20 {
				c.now.Add(rand.Int64N(int64(10 * time.Second)))
				runtime.Gosched()
			}
		})
		require.Equal(t, time.Duration(c.now.Load()), x.read())
	}
}

// Whatever a clock does, time never goes back, never gains more than the clock has gone forward, and goes on at the clock's pace once
// that is steady again.
func TestTimelineOfAWildClock(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for range 30 {
		c := new(roughClock)
		c.now.Store(int64(50 * year)) // so that it can be set back
		x := newTimed(c)
		for range 4 {
			before, forward := x.read(), time.Duration(0)
			c.fails.Store(rand.IntN(2) == 0)
			x.readByMany(t, func() {
				for range 10 {
					by := []time.Duration{time.Second, time.Minute, -time.Second, -time.Minute, -time.Hour, 2 * year, -2 * year}[rand.IntN(7)]
					c.now.Add(int64(by))
					forward += max(0, by)
					runtime.Gosched()
				}
			})
			c.fails.Store(false)
			agreed := x.read()
			require.GreaterOrEqual(t, agreed, before)
			require.LessOrEqual(t, agreed-before, forward, "time gained on the clock")

			c.now.Add(int64(setBack)) // so much a reading may be behind
			agreed = x.read()
			c.now.Add(int64(time.Hour))
			require.Equal(t, agreed+time.Hour, x.read(), "time goes on")
		}
	}
}

// busyClock is a racingClock on which something happens also before it tells what time it is.
type busyClock struct{ racingClock }

func (c *busyClock) Now() time.Time {
	if f := c.meanwhile; f != nil {
		c.meanwhile = nil
		f()
	}
	return c.handClock.Now()
}

// A clock whose every reading is late: another operation has gone by meanwhile, each time. That the second of two was late as well
// was once the proof that the clock had been set back.
func TestRegression_ReadingsThatAreAlwaysLate(t *testing.T) {
	c := new(busyClock)
	x := newTimed(c)
	late := 0
	var again func()
	again = func() {
		late++
		c.advance(5 * time.Second)
		x.read()
		c.meanwhile = again
	}
	for range 10 {
		c.meanwhile = again
		x.read()
	}
	c.meanwhile = nil
	assert.Equal(t, 10, late, "one reading each")
	assert.Equal(t, 50*time.Second, x.read())
	c.advance(time.Second)
	assert.Equal(t, 51*time.Second, x.read())
}

// Two see that the clock was set back. The first to do so says from where time goes on, and the other does not say it again.
func TestClockSetBackSeenTwice(t *testing.T) {
	c := new(racingClock)
	x := newTimed(c)
	c.advance(10 * time.Hour)
	require.Equal(t, 10*time.Hour, x.read())
	c.advance(-time.Hour)
	c.meanwhile = func() {
		require.Equal(t, 10*time.Hour, x.read())
		c.advance(7 * time.Second)
	}
	x.read()
	assert.Equal(t, 10*time.Hour+7*time.Second, x.read())
	c.advance(time.Minute)
	assert.Equal(t, 10*time.Hour+67*time.Second, x.read())
}

// The clock is set back between two readings of which the later one is served first. The other was right when it was made.
func TestClockSetBackBehindALateReading(t *testing.T) {
	c := new(racingClock)
	x := newTimed(c)
	c.advance(time.Hour)
	require.Equal(t, time.Hour, x.read())
	c.advance(time.Minute)
	c.meanwhile = func() {
		c.advance(-30 * time.Minute)
		require.Equal(t, time.Hour, x.read())
	}
	assert.Equal(t, time.Hour+time.Minute, x.read())
	c.advance(2 * time.Minute)
	assert.Equal(t, time.Hour+2*time.Minute, x.read())
}

// racingClock is a clock during whose reading something else may happen: what it has read is late then.
type racingClock struct {
	handClock
	reads     int
	meanwhile func()
}

func (c *racingClock) Since(t time.Time) time.Duration {
	c.reads++
	reading := c.handClock.Since(t)
	if f := c.meanwhile; f != nil {
		c.meanwhile = nil
		f()
	}
	return reading
}

func (c *racingClock) After(d time.Duration) <-chan time.Time {
	alarm := make(chan time.Time, 1)
	if d == 0 {
		alarm <- c.Now()
	}
	return alarm
}

// A goroutine that is held up between its reading of the clock and the lock brings a reading that is far behind. That is no clock
// set back, and nobody need read it again to see that.
func TestLateReadingIsNoClockSetBack(t *testing.T) {
	for _, late := range []time.Duration{1, time.Second, time.Second + 1, 5 * time.Second, time.Hour} {
		t.Run(late.String(), func(t *testing.T) {
			c := new(racingClock)
			s := brittle(c)
			s.BreakDuration = 2 * time.Hour
			b := MustNewClassic(s)
			c.advance(time.Minute)
			trip(t, b)
			c.meanwhile = func() {
				c.advance(late)
				b.Snapshot()
				c.reads = 0
			}
			wait, ok := b.RetryAfter()
			require.True(t, ok)
			assert.Equal(t, 2*time.Hour-late, wait)
			assert.Zero(t, c.reads)
			c.advance(time.Second)
			wait, _ = b.RetryAfter()
			assert.Equal(t, 2*time.Hour-late-time.Second, wait, "time goes on at its pace")
		})
	}
}

// A caller that waits asks, is refused, and then finds out when to ask again. What came in between was no reason to ask: a ramp
// that ended, or a call in it that had become too old. With nobody else calling it waited for as long as that lasted.
func TestRegression_WhatTimeBringsBetweenAskingAndWaiting(t *testing.T) {
	for name, s := range map[string]struct {
		recovery Recovery
		timeout  time.Duration
		until    time.Duration // from the admission of the call in flight
	}{
		"end of the ramp":      {Recovery{Fraction: 1}, time.Hour, 10 * time.Second},
		"call that is too old": {Recovery{Fraction: 5, Max: time.Hour}, 10 * time.Second, 10 * time.Second},
	} {
		for _, past := range []time.Duration{0, 1, time.Second} {
			t.Run(name+" "+past.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := new(racingClock)
					set := brittle(c)
					set.Recovery, set.ProbeTimeout, set.MaxWait = s.recovery, s.timeout, Disabled
					b := MustNewClassic(set)
					trip(t, b)
					c.advance(10 * time.Second)
					pass(t, b)
					ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
					defer cancel()
					_, err := b.Acquire(ctx) // is in flight, and holds back whoever waits
					require.NoError(t, err)
					c.advance(s.until - 1)
					c.meanwhile = func() { c.advance(1 + past) } // the reading of the newcomer is the last before it
					_, err = b.Acquire(ctx)
					assert.NoError(t, err)
				})
			})
		}
	}
}
