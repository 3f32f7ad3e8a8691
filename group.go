package breaker

import (
	"container/heap"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
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
	made     time.Time     // by the clock
	ticks    bool          // two readings of the clock are never the same

	known atomic.Pointer[map[K]*member[K]] // a copy of members, never written to; may be behind
	last  atomic.Int64                     // the last stamp, where the clock does not tick
	tidy  atomic.Int64                     // the stamp at which a breaker may have been idle for long enough

	mu      sync.Mutex // protects following fields
	members map[K]*member[K]
	unknown int          // how often a key was looked up in members since known was copied
	turns   turns[K]     // members by when they were asked for, as far as the heap knows; their turn is to be dropped
	held    []*member[K] // the other members: could not go when it was their turn
	look    int          // where in held the next review begins
	review  int64        // the stamp at which it is due
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

	// The group's lock protects the following fields.
	making *making // nil once it has been dropped
	turn   int64   // its asked as far as the heap knows, which may be behind
	held   bool    // it is in held, not in turns
	index  int     // in the one or the other
}

// making is how a breaker comes to be: who asks for it first makes it, the others wait. They wait on a channel rather than for
// a lock, which would stop the clock of a testing/synctest bubble.
type making struct {
	done    chan struct{} // closed when the next two are there
	breaker *Breaker
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
	g := &Group[K]{settings: settings, bounds: gs, members: make(map[K]*member[K])}
	setDefault(&g.bounds.Capacity, 10_000)
	setDefault(&g.bounds.Idle, time.Hour)
	if gs.Clock == nil {
		g.bounds.Clock = clock.New()
	}
	g.made = g.bounds.Clock.Now()
	g.ticks = g.bounds.Clock.Since(g.made) > 0
	g.known.Store(new(map[K]*member[K]))
	return g, nil
}

// Get returns the breaker of a key, making it if there is none. However many goroutines ask, the settings function runs once
// for a key, on one of them. Invalid settings (a *[SettingsError]) and a panic of the settings function (a *[CallbackError]) are
// returned to those who asked, and not remembered: the next Get tries again. A key that is not equal to itself, such as a NaN,
// is an error: no map would ever find it again.
func (g *Group[K]) Get(key K) (*Breaker, error) {
	now := g.stamp()
	if m := (*g.known.Load())[key]; m != nil && now < g.tidy.Load() {
		if b := m.breaker.Load(); b != nil {
			m.asked.Store(now)
			return b, nil
		}
	}
	if other := key; other != key {
		return nil, fmt.Errorf("breaker: group key %v is not equal to itself", key)
	}
	m, making, mine := g.member(key, now)
	if mine {
		g.make(m, making)
	} else if b := m.breaker.Load(); b != nil {
		return b, nil
	} else {
		<-making.done
	}
	return making.breaker, making.err
}

// stamp returns the time, made distinct where the clock may stand still, as a fake one does: the order of stamps is the order of
// being asked for.
func (g *Group[K]) stamp() int64 {
	now := int64(g.bounds.Clock.Since(g.made))
	if g.ticks {
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

// member returns the place of a key and how its breaker is made, by the caller if mine is true, and drops what must go.
//
// Recovering breakers may have become Closed by time alone. That takes a look at their clock, which may be user code and so
// must wait for the end of the lock.
func (g *Group[K]) member(key K, now int64) (m *member[K], making *making, mine bool) {
	g.mu.Lock()
	m, mine = g.memberLocked(key, now)
	making, recovering := m.making, g.dropLocked(now, m)
	g.mu.Unlock()
	recovered := false
	for _, b := range recovering {
		recovered = b.State() == Closed || recovered
	}
	if recovered {
		g.mu.Lock()
		g.review = now
		g.dropLocked(now, m)
		g.mu.Unlock()
	}
	return m, making, mine
}

// memberLocked returns the place of a key that has been asked for, a new one if there is none.
func (g *Group[K]) memberLocked(key K, now int64) (m *member[K], isNew bool) {
	m = g.members[key]
	if isNew = m == nil; isNew {
		m = &member[K]{key: key, turn: now, making: &making{done: make(chan struct{})}}
		g.members[key] = m
		heap.Push(&g.turns, m)
		g.review = now
	}
	m.asked.Store(now)
	if g.unknown++; g.unknown > len(g.members) {
		known := maps.Clone(g.members)
		g.known.Store(&known)
		g.unknown = 0
	}
	return m, isNew
}

// dropLocked drops the least recently asked-for members that may go, while there are too many or they have been idle for too
// long. Those that may not go are held aside, so that they keep their place in the order and are in nobody's way. It returns
// the recovering ones among them.
func (g *Group[K]) dropLocked(now int64, keep *member[K]) (recovering []*Breaker) {
	if now >= g.review || len(g.members) > g.bounds.Capacity {
		recovering = g.reviewLocked()
		g.review = now + int64(g.bounds.Idle)/8
	}
	for len(g.turns) > 0 {
		m := g.turns[0]
		if asked := m.asked.Load(); asked > m.turn {
			m.turn = asked
			heap.Fix(&g.turns, 0)
			continue
		}
		if m == keep || now-m.turn < int64(g.bounds.Idle) && len(g.members) <= g.bounds.Capacity {
			break
		}
		if m.mayGo() {
			g.removeLocked(m)
		} else {
			g.holdLocked(m)
			recovering = m.appendRecovering(recovering)
		}
	}
	g.tidy.Store(g.nextTidyLocked())
	return recovering
}

// nextTidyLocked returns the stamp at which a member may have been idle for too long.
func (g *Group[K]) nextTidyLocked() int64 {
	next := int64(math.MaxInt64)
	if len(g.turns) > 0 {
		next = g.turns[0].turn + int64(g.bounds.Idle)
	}
	if len(g.held) > 0 {
		next = min(next, g.review)
	}
	return next
}

// patience is how many members that still may not go a review looks at, so that no Get is slow while thousands are open.
const patience = 1000

// reviewLocked gives held members that may go by now their place in the order back. It returns the recovering ones among the
// others.
func (g *Group[K]) reviewLocked() (recovering []*Breaker) {
	for looks := 0; looks < min(patience, len(g.held)); {
		g.look %= len(g.held)
		if m := g.held[g.look]; m.mayGo() {
			g.unholdLocked(m)
			heap.Push(&g.turns, m)
		} else {
			recovering = m.appendRecovering(recovering)
			g.look++
			looks++
		}
	}
	return recovering
}

func (g *Group[K]) holdLocked(m *member[K]) {
	heap.Remove(&g.turns, m.index)
	m.held, m.index = true, len(g.held)
	g.held = append(g.held, m)
}

// unholdLocked puts the last held member in the place of m.
func (g *Group[K]) unholdLocked(m *member[K]) {
	last := len(g.held) - 1
	g.held[m.index] = g.held[last]
	g.held[m.index].index = m.index
	g.held[last] = nil
	g.held = g.held[:last]
	m.held = false
}

// mayGo reports whether the breaker has been made, is known to be Closed and nobody waits for it.
func (m *member[K]) mayGo() bool {
	b := m.breaker.Load()
	return b != nil && b.isAtRest()
}

func (m *member[K]) appendRecovering(breakers []*Breaker) []*Breaker {
	if b := m.breaker.Load(); b != nil && b.isRecovering() {
		breakers = append(breakers, b)
	}
	return breakers
}

// removeLocked takes a member out of the group and its breaker out of its monitor. The copy in known may outlive it, without
// the breaker.
func (g *Group[K]) removeLocked(m *member[K]) {
	delete(g.members, m.key)
	if m.held {
		g.unholdLocked(m)
	} else {
		heap.Remove(&g.turns, m.index)
	}
	m.making = nil
	if b := m.breaker.Swap(nil); b != nil {
		b.unbind()
	}
}

// make makes the breaker of a member. One that cannot be made leaves no trace.
func (g *Group[K]) make(m *member[K], making *making) {
	defer close(making.done)
	b, err := g.breaker(m.key)
	making.breaker, making.err = b, err
	g.mu.Lock()
	defer g.mu.Unlock()
	switch dropped := m.making == nil; {
	case err != nil && !dropped:
		g.removeLocked(m)
	case err == nil && !dropped:
		m.breaker.Store(b)
	case err == nil:
		b.unbind()
	}
}

// breaker returns a new breaker for a key.
func (g *Group[K]) breaker(key K) (b *Breaker, err error) {
	failure := contain("NewGroup", func() error {
		s := g.settings(key)
		if s.Name == "" {
			s.Name = fmt.Sprint(key)
		}
		b, err = New(s)
		return nil
	})
	if failure != nil {
		failure.Name = fmt.Sprint(key)
		return nil, failure
	}
	return b, err
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
		members := slices.Collect(maps.Values(g.members))
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
	return m
}
