package breaker

import (
	"container/heap"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/benbjohnson/clock"
)

// Group holds one breaker for each key, such as a tenant or an endpoint, made when the key is first asked for. Make it with
// [NewGroup]. It is safe for concurrent use.
//
// It is bounded, whatever keys it is asked for. At its capacity the least recently asked-for breaker goes that is Closed, or
// whose break has been over for twice as long as it lasted. Another that is open, half-open or recovering is evidence, so it
// stays beyond the capacity. But once the group holds twice its capacity, or 100 more if that is more, of these too the least
// recently asked-for goes, the oldest of a sample. None goes that is isolated, that somebody waits for, or that has a probe in
// flight, for ProbeTimeout after it was last asked for: of these, operators and callers make no more than they are.
//
// Call Get for each call: a breaker that was dropped still works for whoever holds it, but no longer shares what it learns.
type Group[K comparable] struct {
	settings func(K) Settings
	bounds   GroupSettings // with defaults
	most     int           // members at the most, those aside that never go
	made     time.Time     // by the clock
	ticks    bool          // the clock is the default one, and two readings of it are never the same

	known atomic.Pointer[map[K]*member[K]] // a copy of members, never written to; may be behind
	last  atomic.Int64                     // the last stamp, where the clock does not tick
	base  atomic.Pointer[base]             // what the time is counted from, there
	tidy  atomic.Int64                     // the stamp at which a breaker may have been idle for long enough

	mu      sync.Mutex // protects following fields
	members map[K]*member[K]
	names   map[string]int // those in use of texts that two keys may have in common, with the last number given to each
	unknown int            // how often a key was looked up in members since known was copied
	sweeps  uint64         // begun
	turns   turns[K]       // members by when they were asked for, as far as the heap knows; their turn is to be dropped
	held    []*member[K]   // the other members: could not go when it was their turn
	look    int            // where in held the next review begins
	doubt   int            // where in held the next look at a breaker's clock is due
	review  int64          // the stamp at which both are due
}

// GroupSettings bound a [Group]. The zero value is ready.
type GroupSettings struct {
	// Capacity is how many breakers the group holds, at least 1. Those in use may exceed it by as many again, at least 100.
	// 0: 10 000.
	Capacity int
	// Idle is how long a breaker that may go stays without a Get; a later Get tidies it away. 0: 1 h.
	Idle time.Duration
	// Clock gives the time for Idle. Set back by more than a second, it goes on from its last reading; a leap of more than a year
	// is a year. nil: clock.New() of github.com/benbjohnson/clock.
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
	name   string  // its entry in the group's names; empty: none
	turn   int64   // its asked as far as the heap knows, which may be behind
	spent  uint64  // the sweep in which its breaker was found spent
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

// NewGroup returns an empty group. The function gives the settings of a key's breaker; an empty Name becomes the key's text, and
// never that of another key that is there: a string as it is, a number, bool or [fmt.Stringer] as fmt prints it, a struct or an
// array as fmt prints it with quotes around each string that needs them: {db 80}, {"eu west" x}. A value in an interface, other
// than a string, comes with its type: int(80). Where String returns the same for two keys, the later is numbered: x, x#2.
//
// The function must not ask the group for the same key. Invalid group settings are a *[SettingsError].
func NewGroup[K comparable](settings func(K) Settings, gs GroupSettings) (*Group[K], error) {
	if settings == nil {
		panic("breaker: NewGroup with a nil settings function")
	}
	if err := gs.validate(); err != nil {
		return nil, err
	}
	g := &Group[K]{settings: settings, bounds: gs, members: make(map[K]*member[K]), names: make(map[string]int)}
	setDefault(&g.bounds.Capacity, 10_000)
	setDefault(&g.bounds.Idle, time.Hour)
	if gs.Clock == nil {
		g.bounds.Clock = clock.New()
	}
	g.most = doubled(g.bounds.Capacity)
	g.made = g.bounds.Clock.Now()
	g.ticks = gs.Clock == nil && time.Since(g.made) > 0
	g.base.Store(&base{at: g.made})
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
	}
	g.drop(now, m) // reads clocks, which may be user code: after it, a panic would leave others waiting
	<-making.done
	return making.breaker, making.err
}

// member returns the place of a key and how its breaker is made, by the caller if mine is true.
func (g *Group[K]) member(key K, now int64) (m *member[K], making *making, mine bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	m, mine = g.memberLocked(key, now)
	return m, m.making, mine
}

// memberLocked returns the place of a key that has been asked for, a new one if there is none.
func (g *Group[K]) memberLocked(key K, now int64) (m *member[K], isNew bool) {
	m = g.members[key]
	if isNew = m == nil; isNew {
		m = &member[K]{key: key, turn: now, making: &making{done: make(chan struct{})}}
		g.members[key] = m
		heap.Push(&g.turns, m)
	}
	m.asked.Store(now)
	if g.unknown++; g.unknown > len(g.members) {
		known := maps.Clone(g.members)
		g.known.Store(&known)
		g.unknown = 0
	}
	return m, isNew
}

// make makes the breaker of a member. One that cannot be made leaves no trace.
func (g *Group[K]) make(m *member[K], making *making) {
	defer close(making.done)
	b, err := g.breaker(m)
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

// breaker returns a new breaker for a member.
func (g *Group[K]) breaker(m *member[K]) (b *Breaker, err error) {
	var text string
	failure := contain("NewGroup", func() error {
		var certain bool
		text, certain = keyText(m.key)
		s := g.settings(m.key)
		if s.Name == "" {
			s.Name = text
			if !certain {
				s.Name = g.claim(m, text)
			}
		}
		b, err = New(s)
		return nil
	})
	if failure != nil {
		failure.Name = text
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
