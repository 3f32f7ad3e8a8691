package breaker

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
	"time"
)

// How a group drops its members.

// doubled returns how many members a group of a capacity holds at the most, those aside that never go.
func doubled(capacity int) int {
	more := max(capacity, 100)
	if capacity > math.MaxInt-more {
		return math.MaxInt
	}
	return capacity + more
}

// standing is what a breaker is to its group.
type standing uint8

const (
	spent  standing = iota // as good as a new one
	useful                 // it is evidence
	needed                 // somebody depends on it
)

// standingOf returns what a breaker is to its group that was last asked for so long ago. It reads the breaker's clock.
func standingOf(b *Breaker, unasked time.Duration) standing {
	s := b.Snapshot()
	switch {
	case s.State == Isolated || s.Waiting > 0 || s.ProbesInFlight > 0 && !outlastsProbes(b, unasked):
		return needed
	case s.State == Closed || s.State == HalfOpen && hasLongEnded(b, &s, unasked):
		return spent
	default:
		return useful
	}
}

// outlastsProbes reports whether the probe of a caller who asked so long ago is lost.
func outlastsProbes(b *Breaker, unasked time.Duration) bool {
	timeout := b.Settings().ProbeTimeout
	return timeout != Disabled && unasked >= timeout
}

// hasLongEnded reports whether the break has been over for twice as long as it lasted, by the breaker's clock or by the group's:
// the one may have been set back, and the other stand still.
func hasLongEnded(b *Breaker, s *Snapshot, unasked time.Duration) bool {
	lasted := s.Since.Sub(s.OpenedAt)
	over := unasked - lasted
	if c := b.Settings().Clock; c != nil {
		over = max(over, c.Since(s.Since))
	} else {
		over = max(over, time.Since(s.Since))
	}
	return over/2 >= lasted
}

// sweep is how one Get drops what must go. Part of that is to look at breakers whose state time alone may have changed, which
// reads their clocks: these may be user code, and so wait for the end of the group's lock.
type sweep[K comparable] struct {
	now      int64
	keep     *member[K] // the one that is asked for
	number   uint64
	due      bool         // the held ones are to be looked at
	looks    int          // so far
	vain     int          // of them, those at held ones that stay
	asked    int64        // when the one that is looked at had been asked for
	standing standing     // what was seen
	useful   []*member[K] // those seen
}

const (
	patience = 1000 // looks of a sweep at the most, and of a review at members that may not go, so that no Get is slow
	sample   = 32   // looks of a sweep at held members that stay
)

// drop drops the least recently asked-for members that may go, while there are too many or they have been idle for too long.
func (g *Group[K]) drop(now int64, keep *member[K]) {
	p := &sweep[K]{now: now, keep: keep}
	for m := g.nextDoubt(p, nil); m != nil; m = g.nextDoubt(p, m) {
		p.asked, p.standing = m.asked.Load(), needed
		if b := m.breaker.Load(); b != nil {
			p.standing = standingOf(b, time.Duration(now-p.asked))
		}
	}
}

// nextDoubt does what follows from the look at one member and returns the next to look at; nil: the sweep is over.
func (g *Group[K]) nextDoubt(p *sweep[K], seen *member[K]) *member[K] {
	g.mu.Lock()
	defer g.mu.Unlock()
	if seen == nil {
		g.beginLocked(p)
	} else if p.looks++; seen.making != nil {
		g.judgeLocked(p, seen)
	}
	if p.looks < patience {
		if m := g.nextHeldLocked(p); m != nil {
			return m
		}
		if m := g.nextTurnLocked(p); m != nil {
			return m
		}
	}
	g.evictLocked(p)
	g.tidy.Store(int64(g.nextTidyLocked()))
	return nil
}

// beginLocked begins a sweep.
func (g *Group[K]) beginLocked(p *sweep[K]) {
	g.sweeps++
	p.number = g.sweeps
	if p.due = p.now >= g.review || len(g.members) > g.bounds.Capacity; p.due {
		g.reviewLocked()
		looks := 1 + time.Duration(len(g.held)/sample)
		g.review = int64(later(time.Duration(p.now), g.bounds.Idle/8/looks))
	}
}

// judgeLocked does what follows from a look at a member. One that was asked for meanwhile is in use.
func (g *Group[K]) judgeLocked(p *sweep[K], m *member[K]) {
	if m.asked.Load() != p.asked {
		p.standing = needed
	}
	if p.standing == useful && m != p.keep {
		p.useful = append(p.useful, m)
	}
	switch isSpent := p.standing == spent; {
	case isSpent && m.held:
		m.spent = p.number
		g.unholdLocked(m)
		heap.Push(&g.turns, m)
	case isSpent:
		m.spent = p.number
	case m.held:
		g.doubt++
		p.vain++
	default:
		g.holdLocked(m)
	}
}

// nextTurnLocked drops members whose turn it is. It returns one that must be looked at first. Those that may not go are held
// aside, so that they keep their place in the order and are in nobody's way.
func (g *Group[K]) nextTurnLocked(p *sweep[K]) *member[K] {
	for len(g.turns) > 0 {
		m := g.turns[0]
		if asked := m.asked.Load(); asked > m.turn {
			m.turn, m.spent = asked, 0
			heap.Fix(&g.turns, 0)
			continue
		}
		if m == p.keep || p.now-m.turn < int64(g.bounds.Idle) && len(g.members) <= g.bounds.Capacity {
			break
		}
		switch b := m.breaker.Load(); {
		case b == nil: // it is being made
			g.holdLocked(m)
		case m.spent == p.number || b.isAtRest():
			g.removeLocked(m)
		default:
			return m
		}
	}
	return nil
}

// nextHeldLocked returns the next held member to look at, nil if there have been enough.
func (g *Group[K]) nextHeldLocked(p *sweep[K]) *member[K] {
	for p.due && p.vain < min(sample, len(g.held)) {
		g.doubt %= len(g.held)
		if m := g.held[g.doubt]; m != p.keep && m.breaker.Load() != nil {
			return m
		}
		g.doubt++
		p.vain++
	}
	return nil
}

// evictLocked drops the least recently asked-for of the useful members that were seen, while there are far too many.
func (g *Group[K]) evictLocked(p *sweep[K]) {
	if len(g.members) <= g.most {
		return
	}
	slices.SortFunc(p.useful, func(a, b *member[K]) int { return cmp.Compare(a.asked.Load(), b.asked.Load()) })
	for _, m := range p.useful {
		if len(g.members) > g.most && m.making != nil && m.asked.Load() < p.now {
			g.removeLocked(m)
		}
	}
}

// nextTidyLocked returns the stamp at which a member may have been idle for too long.
func (g *Group[K]) nextTidyLocked() time.Duration {
	next := time.Duration(math.MaxInt64)
	if len(g.turns) > 0 {
		next = later(time.Duration(g.turns[0].turn), g.bounds.Idle)
	}
	if len(g.held) > 0 {
		next = min(next, time.Duration(g.review))
	}
	return next
}

// reviewLocked gives held members that are at rest by now their place in the order back.
func (g *Group[K]) reviewLocked() {
	for looks := 0; looks < min(patience, len(g.held)); {
		g.look %= len(g.held)
		m := g.held[g.look]
		if b := m.breaker.Load(); b != nil && b.isAtRest() {
			g.unholdLocked(m)
			heap.Push(&g.turns, m)
		} else {
			g.look++
			looks++
		}
	}
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

// removeLocked takes a member out of the group and its breaker out of its monitor. The copy in known may outlive it, without
// the breaker.
func (g *Group[K]) removeLocked(m *member[K]) {
	delete(g.members, m.key)
	g.releaseLocked(m)
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
