package breaker

import (
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// open asks for so many keys, each of whose breakers opens at once.
func open(t *testing.T, g *Group[string], name string, n int) {
	t.Helper()
	for i := range n {
		trip(t, ask(t, g, name+strconv.Itoa(i)))
	}
}

// A breaker that had opened and was never asked for again stayed for ever: a group of 100 kept 20,001 of them, 33 MB.
func TestRegression_SpentBreakersGoAsClosedOnesDo(t *testing.T) {
	c := new(handClock)
	g := newGroup(t, 100, c)
	open(t, g, "open ", 20_000)
	require.Equal(t, 200, g.Len())
	c.advance(10*time.Second + 20*time.Second - 1)
	ask(t, g, "new")
	assert.Equal(t, 200, g.Len(), "their break has ended, but not for long")
	c.advance(1)
	ask(t, g, "last")
	assert.Equal(t, 100, g.Len())
	c.advance(time.Hour)
	ask(t, g, "later")
	assert.Equal(t, []string{"later"}, keys(g), "idle, they are tidied away")
}

// They go in their turn, before closed ones that were asked for later: otherwise they would take the place of those in use.
func TestGroup_SpentBreakersKeepTheirTurn(t *testing.T) {
	c := new(handClock)
	g := newGroup(t, 3, c)
	for _, key := range []string{"spent", "closed", "spent too"} {
		if b := ask(t, g, key); key != "closed" {
			trip(t, b)
		}
	}
	c.advance(time.Minute)
	ask(t, g, "a")
	assert.Equal(t, []string{"a", "closed", "spent too"}, keys(g))
	ask(t, g, "b")
	assert.Equal(t, []string{"a", "b", "spent too"}, keys(g))
	ask(t, g, "c")
	assert.Equal(t, []string{"a", "b", "c"}, keys(g))
}

// The break has ended by the clock of the breaker or by that of the group.
func TestGroup_SpentByEitherClock(t *testing.T) {
	for name, test := range map[string]func(group, breaker *handClock){
		"breaker":              func(_, b *handClock) { b.advance(30 * time.Second) },
		"group":                func(g, b *handClock) { b.advance(10 * time.Second); g.advance(31 * time.Second) },
		"both":                 func(g, b *handClock) { b.advance(30 * time.Second); g.advance(30 * time.Second) },
		"the default, a while": nil,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var clocks [2]Clock
				if test != nil {
					clocks = [2]Clock{new(handClock), new(handClock)}
				}
				g, err := NewGroup(func(string) Settings { return brittle(clocks[1]) }, GroupSettings{Capacity: 1, Clock: clocks[0]})
				require.NoError(t, err)
				trip(t, ask(t, g, "a"))
				ask(t, g, "b")
				require.Equal(t, []string{"a", "b"}, keys(g))
				if test != nil {
					test(clocks[0].(*handClock), clocks[1].(*handClock))
				} else {
					time.Sleep(30 * time.Second)
				}
				ask(t, g, "c")
				assert.Equal(t, []string{"c"}, keys(g))
			})
		})
	}
}

// Keys whose breakers are all in their break exceed the capacity by as many again, no matter how many come.
func TestRegression_OpenBreakersAreBounded(t *testing.T) {
	for capacity, most := range map[int]int{1: 101, 100: 200, 150: 300} {
		g := newGroup(t, capacity, new(handClock))
		open(t, g, "open ", 5*most)
		assert.Equal(t, most, g.Len())
	}
}

// Beyond the bound the least recently asked-for goes, and none that somebody depends on.
func TestGroup_EvictsNoneThatIsNeeded(t *testing.T) {
	c := new(handClock)
	g := newGroup(t, 10, c)
	ask(t, g, "isolated").Isolate()
	waited := ask(t, g, "waited for")
	trip(t, waited)
	waited.waiting = new(waitQueue)
	waited.waiting.push(false)
	probed := ask(t, g, "probed")
	trip(t, probed)
	c.advance(10 * time.Second)
	probe, err := probed.TryAcquire(t.Context())
	require.NoError(t, err)

	trip(t, ask(t, g, "in use"))
	for i := range 500 {
		trip(t, ask(t, g, "attack "+strconv.Itoa(i)))
		ask(t, g, "in use")
	}
	assert.Equal(t, 110, g.Len())
	for _, key := range []string{"isolated", "waited for", "probed", "in use", "attack 499"} {
		assert.Contains(t, keys(g), key)
	}

	probe.Release()
	open(t, g, "next ", 500)
	assert.NotContains(t, keys(g), "probed", "its probe has ended")
	assert.NotContains(t, keys(g), "in use", "it is in use no more")
	assert.Contains(t, keys(g), "isolated")
	assert.Contains(t, keys(g), "waited for")
}

// A probe whose permit was forgotten keeps its breaker as long as it holds its place.
func TestGroup_LostProbeKeepsNoBreaker(t *testing.T) {
	c := new(handClock)
	g := newGroup(t, 1, c)
	b := ask(t, g, "a")
	trip(t, b)
	c.advance(10 * time.Second)
	_, err := b.TryAcquire(t.Context())
	require.NoError(t, err)
	c.advance(b.Settings().ProbeTimeout - 10*time.Second - 1)
	ask(t, g, "b")
	assert.Equal(t, []string{"a", "b"}, keys(g))
	c.advance(2)
	ask(t, g, "c")
	assert.Equal(t, []string{"c"}, keys(g))
}

// Those being made count, and none of them goes: they are as many as there are callers.
func TestGroup_BreakersBeingMadeCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan bool)
		g, err := NewGroup(func(key int) Settings {
			if key < 0 {
				<-release
			}
			return Settings{}
		}, GroupSettings{Capacity: 5})
		require.NoError(t, err)
		for key := range 5 {
			ask(t, g, key)
		}
		got := make([]*Breaker, 5)
		var all sync.WaitGroup
		for i := range got {
			all.Go(func() { got[i], _ = g.Get(-1 - i) })
		}
		synctest.Wait()
		ask(t, g, 6)
		assert.Equal(t, 6, g.Len(), "five being made, and the one asked for")
		close(release)
		all.Wait()
		ask(t, g, 7)
		assert.Equal(t, 5, g.Len())
	})
}

// faultyClock panics when it is asked.
type faultyClock struct {
	handClock
	faulty bool
}

func (c *faultyClock) Since(t time.Time) time.Duration {
	if c.faulty {
		panic("clock")
	}
	return c.handClock.Since(t)
}

// The group looked at its members before it made the new one. A clock that panicked then left a place that nobody would ever
// fill, and all who asked for that key waited for ever.
func TestRegression_ClockThatPanicsLeavesNobodyWaiting(t *testing.T) {
	c, faults := new(faultyClock), new(faultLog)
	g, err := NewGroup(func(key string) Settings {
		s := brittle(nil)
		if key == "a" {
			s = brittle(c)
			s.OnCallbackError = faults.add
		}
		return s
	}, GroupSettings{Capacity: 1, Clock: new(handClock)})
	require.NoError(t, err)
	trip(t, ask(t, g, "a"))
	c.faulty = true
	_, err = g.Get("b")
	require.NoError(t, err)
	require.NotEmpty(t, faults.all())
	assert.Equal(t, "Clock", faults.all()[0].Callback)
	assert.Contains(t, keys(g), "b")
	c.faulty = false
	assert.Equal(t, []string{"a", "b"}, keys(g))
	ask(t, g, "b")
}
