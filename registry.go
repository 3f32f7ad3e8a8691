package breaker

import (
	"container/list"
	"context"
	"slices"
	"sync"
	"weak"
)

// Monitor watches and steers any number of breakers: those made with it in Settings.Monitor, in the order they were made. The
// zero value is ready. It is safe for concurrent use and must not be copied.
//
// A name is a label, not a key: of two breakers with one name the monitor keeps both, and watches and steers each. So show
// them as a list, not as a map by name, which would lose one: Breakers gives the order, Snapshot the name.
//
// A monitor holds its breakers weakly: it keeps none alive and tells of none that is gone. One that its [Group] drops leaves the
// monitor at once, whoever still holds it.
type Monitor struct {
	mu          sync.Mutex // protects following fields
	bound       list.List  // of tenants, in the order of binding
	places      map[tenant]*list.Element
	prune       int // length of bound at which the dead are taken out
	subscribers []*subscriber
}

// tenant is what a monitor holds of a breaker: a weak pointer, of a type that need not be known here.
type tenant interface{ gone() bool }

// weakly holds a T weakly. Two that hold the same are equal.
type weakly[T any] struct{ pointer weak.Pointer[T] }

func (w weakly[T]) gone() bool { return w.pointer.Value() == nil }

// subscriber is one function that hears of changes.
type subscriber struct {
	mu        sync.Mutex // protects following fields
	f         func(context.Context, StateChange)
	cancelled bool
}

// call calls the function, unless it has been cancelled.
func (s *subscriber) call(ctx context.Context, change StateChange) {
	s.mu.Lock()
	cancelled := s.cancelled
	s.mu.Unlock()
	if !cancelled {
		s.f(ctx, change)
	}
}

func (m *Monitor) bind(t tenant) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.places == nil {
		m.places = make(map[tenant]*list.Element)
	}
	if m.bound.Len() >= m.prune {
		m.pruneLocked()
	}
	m.places[t] = m.bound.PushBack(t)
}

// pruneLocked takes out the breakers that are gone. It runs when their number may have doubled.
func (m *Monitor) pruneLocked() {
	for t, place := range m.places {
		if t.gone() {
			m.removeLocked(t, place)
		}
	}
	m.prune = 2*m.bound.Len() + 8
}

func (m *Monitor) removeLocked(t tenant, place *list.Element) {
	m.bound.Remove(place)
	delete(m.places, t)
}

// unbind takes a breaker out.
func (m *Monitor) unbind(t tenant) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if place := m.places[t]; place != nil {
		m.removeLocked(t, place)
	}
}

// subscribe adds a subscriber.
func (m *Monitor) subscribe(s *subscriber) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.subscribers = append(m.subscribers[:len(m.subscribers):len(m.subscribers)], s)
}

// cancel takes a subscriber out, and keeps calls of it that are about to start from starting.
func (m *Monitor) cancel(s *subscriber) {
	s.mu.Lock()
	s.cancelled = true
	s.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.subscribers = slices.DeleteFunc(slices.Clone(m.subscribers), func(o *subscriber) bool { return o == s })
}

// observers returns the subscribers that hear of a breaker at this moment, none if it has left. The slice is never written to.
func (m *Monitor) observers(t tenant) []*subscriber {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.places[t] == nil {
		return nil
	}
	return m.subscribers
}
