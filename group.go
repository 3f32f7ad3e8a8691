package breaker

import (
	"container/heap"
	"fmt"
	"iter"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/benbjohnson/clock"
)

// Group holds one breaker for each key, such as a tenant or an endpoint, made when the key is first asked for. It is bounded: at
// its capacity the least recently asked-for breaker that is Closed goes. A breaker that is not Closed, or that somebody waits
// for, is never dropped, so only those can exceed the capacity. Make it with [NewGroup]. It is safe for concurrent use.
//
// Call Get for each call: a breaker that was dropped still works for whoever holds it, but no longer shares what it learns.
type Group[K comparable] struct {
	settings func(K) Settings
	bounds   GroupSettings // with defaults
	realTime bool          // the clock is the default one
	made     time.Time     // by the clock

	known atomic.Pointer[map[K]*member[K]] // a copy of members, never written to; may be behind
	last  atomic.Int64                     // the last stamp of a clock that is not the default one
	tidy  atomic.Int64                     // the stamp at which a breaker may have been idle for long enough

	mu      sync.Mutex // protects following fields
	members map[K]*member[K]
	unknown int      // how often a key was looked up in members since known was copied
	turns   turns[K] // every member, by when it was asked for as far as the heap knows
}

// GroupSettings bound a [Group]. The zero value is ready.
type GroupSettings struct {
	// Capacity is how many breakers the group holds, at least 1. 0: 10 000.
	Capacity int
	// Idle is how long a Closed breaker stays without a Get; a later Get tidies it away. 0: 1 h.
	Idle time.Duration
	// Clock gives the time for Idle. nil: clock.New() of github.com/benbjohnson/clock.
	Clock Clock
}

func (s GroupSettings) validate() error {
	var c checker
	notNegative(&c, "GroupSettings.Capacity", s.Capacity)
	notNegative(&c, "GroupSettings.Idle", s.Idle)
	return c.err()
}

// member is the place of one key in a group.
type member[K comparable] struct {
	key     K
	asked   atomic.Int64            // stamp of the last Get
	breaker atomic.Pointer[Breaker] // nil until it is made, and once it has been dropped
	turn    int64                   // its asked as far as the heap knows, which may be behind
	index   int                     // in the heap; -1: dropped

	once    sync.Once // makes the next two
	product *Breaker
	err     error
}

// NewGroup returns an empty group. The function gives the settings of a key's breaker; an empty Name becomes the key's text, as
// fmt prints it. It must not ask the group for the same key. Invalid group settings are a *[SettingsError].
func NewGroup[K comparable](settings func(K) Settings, gs GroupSettings) (*Group[K], error) {
	if settings == nil {
		panic("breaker: NewGroup with a nil settings function")
	}
	if err := gs.validate(); err != nil {
		return nil, err
	}
	g := &Group[K]{settings: settings, bounds: gs, members: make(map[K]*member[K]), realTime: gs.Clock == nil}
	setDefault(&g.bounds.Capacity, 10_000)
	setDefault(&g.bounds.Idle, time.Hour)
	if g.realTime {
		g.bounds.Clock = clock.New()
	}
	g.made = g.bounds.Clock.Now()
	g.known.Store(new(map[K]*member[K]))
	return g, nil
}

// Get returns the breaker of a key, making it if there is none. However many goroutines ask, the settings function runs once
// for a key, on one of them. Invalid settings (a *[SettingsError]) and a panic of the settings function (a *[CallbackError]) are
// returned to those who asked, and not remembered: the next Get tries again.
func (g *Group[K]) Get(key K) (*Breaker, error) {
	now := g.stamp()
	if m := (*g.known.Load())[key]; m != nil && now < g.tidy.Load() {
		if b := m.breaker.Load(); b != nil {
			m.asked.Store(now)
			return b, nil
		}
	}
	m := g.member(key, now)
	m.once.Do(func() { g.make(m) })
	return m.product, m.err
}

// stamp returns the time, made distinct where the clock may stand still: the order of stamps is the order of being asked for.
func (g *Group[K]) stamp() int64 {
	now := int64(g.bounds.Clock.Since(g.made))
	if g.realTime {
		return now
	}
	for {
		last := g.last.Load()
		stamp := max(now, last+1)
		if g.last.CompareAndSwap(last, stamp) {
			return stamp
		}
	}
}

// member returns the place of a key, a new one if there is none, and drops what must go.
func (g *Group[K]) member(key K, now int64) *member[K] {
	g.mu.Lock()
	defer g.mu.Unlock()
	m := g.members[key]
	if m == nil {
		m = &member[K]{key: key, turn: now}
		g.members[key] = m
		heap.Push(&g.turns, m)
	}
	m.asked.Store(now)
	g.dropLocked(now, m)
	if g.unknown++; g.unknown > len(g.members) {
		known := maps.Clone(g.members)
		g.known.Store(&known)
		g.unknown = 0
	}
	return m
}

// patience is how many members that may not go are looked at for one Get, so that none is slow while all are open.
const patience = 64

// dropLocked drops the least recently asked-for members that may go, while there are too many or they have been idle for too
// long. A member that has been asked for since the heap last looked, or may not go, takes a later turn.
func (g *Group[K]) dropLocked(now int64, keep *member[K]) {
	for looks := patience; looks > 0; {
		m := g.turns[0]
		if idle := now-m.turn >= int64(g.bounds.Idle); len(g.members) <= g.bounds.Capacity && !idle {
			break
		}
		switch asked := m.asked.Load(); {
		case asked > m.turn:
			m.turn = asked
			heap.Fix(&g.turns, 0)
		case m != keep && m.mayGo():
			g.removeLocked(m)
		default:
			m.turn = now
			heap.Fix(&g.turns, 0)
			looks--
		}
	}
	g.tidy.Store(g.turns[0].turn + int64(g.bounds.Idle))
}

// mayGo reports whether the breaker has been made, is Closed and nobody waits for it.
func (m *member[K]) mayGo() bool {
	b := m.breaker.Load()
	return b != nil && b.isAtRest()
}

// removeLocked takes a member out of the group and its breaker out of its monitor.
func (g *Group[K]) removeLocked(m *member[K]) {
	delete(g.members, m.key)
	heap.Remove(&g.turns, m.index)
	if b := m.breaker.Swap(nil); b != nil {
		b.unbind()
	}
}

// make makes the breaker of a member. One that cannot be made leaves no trace.
func (g *Group[K]) make(m *member[K]) {
	var s Settings
	failure := contain("NewGroup", func() error { s = g.settings(m.key); return nil })
	if failure != nil {
		failure.Name = fmt.Sprint(m.key)
		m.err = failure
	} else {
		if s.Name == "" {
			s.Name = fmt.Sprint(m.key)
		}
		m.product, m.err = New(s)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case m.err == nil && m.index >= 0:
		m.breaker.Store(m.product)
	case m.index >= 0:
		g.removeLocked(m)
	case m.err == nil: // deleted meanwhile
		m.product.unbind()
	}
}

// Delete drops the breaker of a key, whatever its state. The next Get makes a new one, with the settings of that time.
func (g *Group[K]) Delete(key K) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if m := g.members[key]; m != nil {
		g.removeLocked(m)
	}
}

// Len returns the number of breakers.
func (g *Group[K]) Len() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.members)
}

// All iterates over the breakers there are when it begins, in no order. The loop may call the group; it asks for no breaker, so
// it keeps none from being dropped.
func (g *Group[K]) All() iter.Seq2[K, *Breaker] {
	return func(yield func(K, *Breaker) bool) {
		g.mu.Lock()
		members := make([]*member[K], len(g.turns))
		copy(members, g.turns)
		g.mu.Unlock()
		for _, m := range members {
			if b := m.breaker.Load(); b != nil && !yield(m.key, b) {
				return
			}
		}
	}
}

// turns is a heap of members by turn.
type turns[K comparable] []*member[K]

func (t turns[K]) Len() int           { return len(t) }
func (t turns[K]) Less(i, j int) bool { return t[i].turn < t[j].turn }

func (t turns[K]) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].index, t[j].index = i, j
}

func (t *turns[K]) Push(x any) {
	m := x.(*member[K])
	m.index = len(*t)
	*t = append(*t, m)
}

func (t *turns[K]) Pop() any {
	last := len(*t) - 1
	m := (*t)[last]
	(*t)[last] = nil
	*t = (*t)[:last]
	m.index = -1
	return m
}
