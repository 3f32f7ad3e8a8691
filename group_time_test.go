package breaker

import (
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// newTimedGroup returns a group of breakers that are idle after so long.
func newTimedGroup(t *testing.T, idle time.Duration, c Clock) *Group[string] {
	g, err := NewGroup(func(string) Settings { return brittle(c) }, GroupSettings{Idle: idle, Clock: c})
	require.NoError(t, err)
	return g
}

// An Idle near the largest duration made the sum of it and the time negative: each Get took the lock and looked for idle ones.
func TestRegression_LargestIdleIsForEver(t *testing.T) {
	for _, idle := range []time.Duration{math.MaxInt64, math.MaxInt64 - 1} {
		c := new(handClock)
		g := newTimedGroup(t, idle, c)
		for range 5 {
			ask(t, g, "a")
			ask(t, g, "b")
		}
		ask(t, g, "open").Isolate()
		c.advance(100 * 365 * 24 * time.Hour)
		for range 20 {
			c.advance(time.Hour)
			ask(t, g, "b")
		}
		assert.Equal(t, []string{"a", "b", "open"}, keys(g))
		assert.Greater(t, g.tidy.Load(), g.last.Load(), "a Get takes no lock")
	}
}

func TestRegression_LargestCapacityDoesNotOverflow(t *testing.T) {
	for _, capacity := range []int{math.MaxInt, math.MaxInt - 50} {
		g := newGroup(t, capacity, new(handClock))
		for _, key := range []string{"a", "b", "c"} {
			trip(t, ask(t, g, key))
		}
		assert.Equal(t, 3, g.Len())
	}
}

// Stamps of before lay ahead of the clock once it was set back, so nothing was idle until the clock had caught up.
func TestRegression_ClockSetBackStopsNoTidying(t *testing.T) {
	for _, back := range []time.Duration{2 * time.Second, time.Hour, 50 * 365 * 24 * time.Hour} {
		c := new(handClock)
		g := newTimedGroup(t, time.Minute, c)
		c.advance(time.Hour)
		ask(t, g, "idle")
		ask(t, g, "busy")
		ask(t, g, "isolated").Isolate()
		c.advance(30 * time.Second)
		ask(t, g, "busy")
		c.advance(-back)
		ask(t, g, "busy")
		assert.Equal(t, []string{"busy", "idle", "isolated"}, keys(g))
		c.advance(29 * time.Second)
		ask(t, g, "busy")
		assert.Equal(t, []string{"busy", "idle", "isolated"}, keys(g), "set back by %v", back)
		c.advance(2 * time.Second)
		ask(t, g, "busy")
		assert.Equal(t, []string{"busy", "isolated"}, keys(g), "set back by %v", back)
	}
}

// Up to a second behind, a reading is late, and time stands until the clock has caught up.
func TestGroup_ClockSlightlyBehindIsClamped(t *testing.T) {
	c := new(handClock)
	g := newTimedGroup(t, time.Minute, c)
	c.advance(time.Hour)
	before := g.stamp()
	c.advance(-time.Second)
	assert.Equal(t, before+1, g.stamp())
	c.advance(time.Second + 5)
	assert.Equal(t, before+5, g.stamp())
	c.advance(-time.Second - 2)
	assert.Equal(t, before+6, g.stamp(), "one that is further behind was set back")
	c.advance(time.Minute)
	assert.Equal(t, before+5+int64(time.Minute), g.stamp())
}

// A clock that leaps by centuries, to and fro, neither stops time nor makes it negative.
func TestGroup_ClockThatLeaps(t *testing.T) {
	c := new(handClock)
	g := newTimedGroup(t, time.Minute, c)
	c.now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) // from year 1: more than a duration holds
	for range 100 {
		ask(t, g, "idle")
		last := g.stamp()
		c.advance(math.MaxInt64)
		require.Greater(t, g.stamp(), last)
		ask(t, g, "busy")
		require.Equal(t, []string{"busy"}, keys(g), "a leap is time that has passed")
		ask(t, g, "idle")
		c.advance(-math.MaxInt64)
		ask(t, g, "busy")
		require.Equal(t, []string{"busy", "idle"}, keys(g), "a clock set back is not")
		c.advance(59 * time.Second)
		ask(t, g, "busy")
		require.Equal(t, []string{"busy", "idle"}, keys(g))
		c.advance(2 * time.Second)
		ask(t, g, "busy")
		require.Equal(t, []string{"busy"}, keys(g))
	}
}

// sharedClock is set by one goroutine and read by many.
type sharedClock struct {
	handClock
	reading atomic.Int64
}

func (c *sharedClock) Now() time.Time                  { return time.Unix(0, c.reading.Load()) }
func (c *sharedClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// However many find at once that the clock was set back, it is made good once: the group's time does not gain on the clock.
func TestGroup_ClockSetBackUnderManyGoroutines(t *testing.T) {
	c := new(sharedClock)
	g := newTimedGroup(t, time.Hour, c)
	const rounds, step = 500, int64(10 * time.Second)
	for range rounds {
		c.reading.Add(step)
		g.stamp()
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 4 {
					_ = g.stamp()
				}
			})
		}
		c.reading.Add(-step)
		all.Wait()
		_ = g.stamp()
	}
	assert.GreaterOrEqual(t, g.stamp(), rounds*step)
	assert.Less(t, g.stamp(), rounds*step+int64(time.Second))
}
