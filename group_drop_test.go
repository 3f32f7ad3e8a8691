package breaker

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/benbjohnson/clock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestGroup_DropsTheLeastRecentlyAskedFor(t *testing.T) {
	mock := clock.NewMock() // stands still: the order alone counts
	g := newGroup(t, 3, mock)
	for _, key := range []string{"a", "b", "c", "a", "b", "d"} {
		ask(t, g, key)
	}
	assert.Equal(t, []string{"a", "b", "d"}, keys(g))
	for _, key := range []string{"a", "a", "a", "a", "a", "a", "a", "e"} { // some of them by the copy without a lock
		ask(t, g, key)
	}
	assert.Equal(t, []string{"a", "d", "e"}, keys(g))
	assert.Equal(t, 3, g.Len())
}

func TestGroup_NeverDropsOneInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, 2, nil)
		prepare := map[string]func(*Breaker){
			"isolated": (*Breaker).Isolate,
			"open":     func(b *Breaker) { trip(t, b) },
			"half-open": func(b *Breaker) {
				trip(t, b)
				time.Sleep(10 * time.Second)
				_, err := b.TryAcquire(t.Context())
				require.NoError(t, err)
			},
			"break elapsed": func(b *Breaker) {
				trip(t, b)
				time.Sleep(10 * time.Second)
			},
		}
		for key, f := range prepare {
			f(ask(t, g, key))
		}
		for i := range 200 {
			ask(t, g, strconv.Itoa(i))
		}
		assert.Equal(t, []string{"199", "break elapsed", "half-open", "isolated", "open"}, keys(g))

		for key := range prepare {
			ask(t, g, key).Reset()
		}
		ask(t, g, "one more")
		assert.Equal(t, 2, g.Len(), "closed, they go as all others do")
	})
}

// One that waits for admission has a Closed breaker for the moment between the reset and its own turn.
func TestGroup_NeverDropsOneThatSomebodyWaitsFor(t *testing.T) {
	g := newGroup(t, 1, clock.NewMock())
	b := ask(t, g, "a")
	b.waiting = new(waitQueue)
	w := b.waiting.push(false)
	ask(t, g, "b")
	assert.Equal(t, []string{"a", "b"}, keys(g))
	b.waiting.remove(w)
	ask(t, g, "c")
	assert.Equal(t, []string{"c"}, keys(g))
}

// A breaker that could not go keeps its place in the order: once closed it goes before those that were asked for after it.
func TestGroup_OpenOneKeepsItsPlace(t *testing.T) {
	mock := clock.NewMock()
	g := newGroup(t, 3, mock)
	a := ask(t, g, "a")
	a.Isolate()
	for _, key := range []string{"b", "c", "d", "e"} {
		ask(t, g, key)
		mock.Add(time.Second)
	}
	assert.Equal(t, []string{"a", "d", "e"}, keys(g))
	a.Reset()
	ask(t, g, "f")
	assert.Equal(t, []string{"d", "e", "f"}, keys(g))
}

// The same where none but the newest could go until now, and a known key is asked for.
func TestGroup_OpenOneKeepsItsPlaceBeforeTheNewest(t *testing.T) {
	g := newGroup(t, 3, clock.NewMock())
	a := ask(t, g, "a")
	for _, b := range []*Breaker{a, ask(t, g, "b"), ask(t, g, "c")} {
		b.Isolate()
	}
	ask(t, g, "d")
	a.Reset()
	ask(t, g, "b")
	assert.Equal(t, []string{"b", "c", "d"}, keys(g))
}

// However many cannot go, those that can are still dropped: only the former exceed the capacity.
func TestGroup_OnlyOpenOnesExceedTheCapacity(t *testing.T) {
	g := newGroup(t, 100, clock.NewMock())
	for i := range 3000 {
		ask(t, g, "open "+strconv.Itoa(i)).Isolate()
	}
	require.Equal(t, 3000, g.Len())
	for i := range 500 {
		ask(t, g, "closed "+strconv.Itoa(i))
		require.Equal(t, 3001, g.Len())
	}
	for _, b := range g.All() {
		b.Reset()
	}
	ask(t, g, "last")
	assert.Equal(t, 100, g.Len())
}

// newRampedGroup returns a group that keeps one breaker, whose circuit recovers along a ramp of ten seconds.
func newRampedGroup(t *testing.T, c Clock) *Group[string] {
	g, err := NewGroup(func(string) Settings {
		s := brittle(c)
		s.Recovery = Recovery{Fraction: 1}
		return s
	}, GroupSettings{Capacity: 1})
	require.NoError(t, err)
	return g
}

// A ramp ends by time alone. The group must see that without reading the breaker's clock under its own lock.
func TestGroup_RecoveringOneMayHaveClosedByItself(t *testing.T) {
	mock := clock.NewMock()
	g := newRampedGroup(t, mock)
	b := ask(t, g, "a")
	trip(t, b)
	mock.Add(10 * time.Second)
	pass(t, b)
	ask(t, g, "b")
	ask(t, g, "c")
	require.Equal(t, []string{"a", "c"}, keys(g))
	mock.Add(10 * time.Second)
	ask(t, g, "d")
	assert.Equal(t, []string{"d"}, keys(g))
}

// lockedClock is a clock that asks the group for the time, so to speak: it deadlocks when asked under the group's lock.
type lockedClock struct {
	*clock.Mock
	group *Group[string]
}

func (c *lockedClock) Since(t time.Time) time.Duration {
	if c.group != nil {
		c.group.Len()
	}
	return c.Mock.Since(t)
}

func TestGroup_ReadsNoClockUnderItsLock(t *testing.T) {
	c := &lockedClock{Mock: clock.NewMock()}
	g := newGroup(t, 2, c)
	c.group = g
	for i := range 10 {
		b := ask(t, g, strconv.Itoa(i))
		if i%3 == 0 {
			trip(t, b)
		}
	}
	c.Add(2 * time.Hour)
	ask(t, g, "last")
	g.Delete("last")
}

// Nor does it read those of its members, which it must where time may have ended a ramp.
func TestGroup_ReadsNoClockOfAMemberUnderItsLock(t *testing.T) {
	c := &lockedClock{Mock: clock.NewMock()}
	g := newRampedGroup(t, c)
	c.group = g
	b := ask(t, g, "a")
	trip(t, b)
	c.Add(10 * time.Second)
	pass(t, b)
	require.Equal(t, Recovering, b.State())
	c.Add(10 * time.Second)
	ask(t, g, "b")
	ask(t, g, "c")
	assert.Equal(t, []string{"c"}, keys(g))
}

func TestGroup_Idle(t *testing.T) {
	for _, test := range []struct {
		name string
		idle time.Duration
		want time.Duration
	}{
		{"default", 0, time.Hour},
		{"written", time.Minute, time.Minute},
	} {
		t.Run(test.name, func(t *testing.T) {
			mock := clock.NewMock()
			g, err := NewGroup(func(string) Settings { return brittle(mock) }, GroupSettings{Idle: test.idle, Clock: mock})
			require.NoError(t, err)
			ask(t, g, "idle")
			ask(t, g, "open").Isolate()
			for range 5 {
				ask(t, g, "busy")
			}
			mock.Add(test.want / 2)
			ask(t, g, "busy")
			mock.Add(test.want/2 - 1)
			ask(t, g, "busy")
			assert.Equal(t, []string{"busy", "idle", "open"}, keys(g))
			mock.Add(2)
			assert.Equal(t, 3, g.Len(), "only a Get tidies")
			ask(t, g, "busy")
			assert.Equal(t, []string{"busy", "open"}, keys(g))

			open := ask(t, g, "open")
			mock.Add(2 * test.want)
			ask(t, g, "busy")
			assert.Equal(t, []string{"busy", "open"}, keys(g))
			open.Reset()
			mock.Add(test.want / 8)
			ask(t, g, "busy")
			assert.Equal(t, []string{"busy"}, keys(g), "closed at last, it goes with a later Get")
		})
	}
}

// Idle counts from the last Get, however old the group is.
func TestGroup_IdleCountsFromTheLastGet(t *testing.T) {
	mock := clock.NewMock()
	g, err := NewGroup(func(string) Settings { return brittle(mock) }, GroupSettings{Idle: time.Minute, Clock: mock})
	require.NoError(t, err)
	mock.Add(50 * time.Second)
	ask(t, g, "a")
	mock.Add(20 * time.Second)
	ask(t, g, "b")
	assert.Equal(t, []string{"a", "b"}, keys(g))
	mock.Add(40 * time.Second)
	ask(t, g, "b")
	assert.Equal(t, []string{"b"}, keys(g))
}

// The breaker that is asked for has been idle until now, and is not any more.
func TestGroup_GetOfAnIdleOne(t *testing.T) {
	mock := clock.NewMock()
	g := newGroup(t, 0, mock)
	b := ask(t, g, "a")
	mock.Add(3 * time.Hour)
	assert.Same(t, b, ask(t, g, "a"))
}

// What the group drops leaves its monitor at once, whoever still holds it, and is kept by neither.
func TestGroup_DroppedMemberLeavesTheMonitor(t *testing.T) {
	mock, m, heard := clock.NewMock(), new(Monitor), new(watchLog)
	m.Subscribe(heard.add)
	g, err := NewGroup(func(string) Settings {
		s := brittle(mock)
		s.Name, s.Monitor = "", m
		return s
	}, GroupSettings{Capacity: 2, Clock: mock})
	require.NoError(t, err)
	for range 10 {
		ask(t, g, "a")
	}
	a, b := ask(t, g, "a"), ask(t, g, "b")
	c := ask(t, g, "c") // a goes
	assert.Equal(t, []*Breaker{b, c}, m.Breakers())
	g.Delete("b")
	assert.Equal(t, []*Breaker{c}, m.Breakers())

	trip(t, a)
	b.Isolate()
	assert.Empty(t, heard.all(), "the monitor tells of none that has left")
	state, err := m.State()
	require.NoError(t, err)
	assert.Equal(t, Closed, state)
	gone := []weak.Pointer[Breaker]{weak.Make(a), weak.Make(b)}
	runtime.KeepAlive(b)
	a, b = nil, nil
	for _, p := range gone {
		collect(t, p)
	}
	runtime.KeepAlive(g)
	runtime.KeepAlive(m)
}

// groupModel is what a group may do, said with a list: the keys in the order of being asked for.
type groupModel struct {
	group    *Group[string]
	capacity int
	order    []string
	breakers map[string]*Breaker
}

func (m *groupModel) forget(key string) {
	m.order = slices.DeleteFunc(m.order, func(k string) bool { return k == key })
	delete(m.breakers, key)
}

func (m *groupModel) get(t *testing.T, key string) {
	b, known := ask(t, m.group, key), m.breakers[key]
	if known != nil {
		require.Same(t, known, b)
	}
	m.forget(key)
	m.order, m.breakers[key] = append(m.order, key), b
}

// check requires that each breaker that went was, in its turn, one too many and the least recently asked for of those closed,
// and that none stayed, beside the last, that should have gone after a new key was asked for.
func (m *groupModel) check(t *testing.T, newKey bool) {
	there := keys(m.group)
	closed := func(key string) bool { return m.breakers[key].State() == Closed }
	for {
		i := slices.IndexFunc(m.order, closed)
		if i < 0 || slices.Contains(there, m.order[i]) {
			break
		}
		require.Greater(t, len(m.order), m.capacity)
		m.forget(m.order[i])
	}
	want := slices.Clone(m.order)
	slices.Sort(want)
	require.Equal(t, want, there)
	if newKey && len(m.order) > m.capacity {
		require.False(t, slices.ContainsFunc(m.order[:len(m.order)-1], closed))
	}
}

func TestGroup_Model(t *testing.T) {
	const capacity, distinct = 8, 30
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 3))
		m := groupModel{newGroup(t, capacity, clock.NewMock()), capacity, nil, make(map[string]*Breaker)}
		for range 1000 {
			key, newKey := fmt.Sprint(random.IntN(distinct)), false
			switch n := random.IntN(20); {
			case n == 0:
				m.group.Delete(key)
				m.forget(key)
			case n < 4 && m.breakers[key] != nil:
				m.breakers[key].Isolate()
			case n < 6 && m.breakers[key] != nil:
				m.breakers[key].Reset()
			default:
				newKey = m.breakers[key] == nil
				m.get(t, key)
			}
			m.check(t, newKey)
		}
	}
}

// Any number of distinct keys leave the group at its capacity.
func TestGroup_DistinctKeys(t *testing.T) {
	n := 200_000
	if testing.Short() {
		n = 30_000
	}
	g, err := NewGroup(func(int) Settings { return Settings{} }, GroupSettings{})
	require.NoError(t, err)
	for key := range n {
		_, err := g.Get(key)
		if err != nil || g.Len() > 10_000 {
			require.Fail(t, "over its capacity")
		}
	}
	assert.Equal(t, 10_000, g.Len())
}
