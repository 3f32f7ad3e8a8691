package breaker

import (
	"container/list"
	"context"
	"errors"
	"slices"
	"sync"
	"time"
	"weak"
)

// ErrUnbound is what a [Monitor] returns while no breaker is bound to it.
var ErrUnbound = errors.New("breaker: monitor has no breaker")

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
	bound       list.List  // of weak.Pointer[Breaker], in the order of binding
	places      map[weak.Pointer[Breaker]]*list.Element
	prune       int // length of bound at which the dead are taken out
	subscribers []*subscriber
}

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

func (m *Monitor) bind(b *Breaker) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.places == nil {
		m.places = make(map[weak.Pointer[Breaker]]*list.Element)
	}
	if m.bound.Len() >= m.prune {
		m.pruneLocked()
	}
	p := weak.Make(b)
	m.places[p] = m.bound.PushBack(p)
}

// pruneLocked takes out the breakers that are gone. It runs when their number may have doubled.
func (m *Monitor) pruneLocked() {
	for p, place := range m.places {
		if p.Value() == nil {
			m.removeLocked(p, place)
		}
	}
	m.prune = 2*m.bound.Len() + 8
}

func (m *Monitor) removeLocked(p weak.Pointer[Breaker], place *list.Element) {
	m.bound.Remove(place)
	delete(m.places, p)
}

// unbind takes a breaker out.
func (m *Monitor) unbind(b *Breaker) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := weak.Make(b)
	if place := m.places[p]; place != nil {
		m.removeLocked(p, place)
	}
}

// Breakers returns the breakers bound so far that are still alive, in the order they were bound.
func (m *Monitor) Breakers() []*Breaker {
	m.mu.Lock()
	defer m.mu.Unlock()
	breakers := make([]*Breaker, 0, m.bound.Len())
	for e := m.bound.Front(); e != nil; e = e.Next() {
		if b := e.Value.(weak.Pointer[Breaker]).Value(); b != nil {
			breakers = append(breakers, b)
		}
	}
	return breakers
}

// State returns the worst state of the breakers, and [ErrUnbound] while there is none.
func (m *Monitor) State() (State, error) {
	breakers := m.Breakers()
	if len(breakers) == 0 {
		return Closed, ErrUnbound
	}
	worst := Closed
	for _, b := range breakers {
		worst = max(worst, b.State())
	}
	return worst, nil
}

// Subscribe lets f hear of every change of every breaker, those bound later included, after its OnStateChange and in the order
// of subscription. Changes of one breaker come one at a time and in order; of two breakers they may come at once. Calls and
// contexts are as for Settings.OnStateChange. After cancel returns no new call of f starts; cancel may be called again.
func (m *Monitor) Subscribe(f func(context.Context, StateChange)) (cancel func()) {
	if f == nil {
		panic("breaker: Subscribe of a nil function")
	}
	s := &subscriber{f: f}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.subscribers = append(m.subscribers[:len(m.subscribers):len(m.subscribers)], s)
	return func() { m.cancel(s) }
}

func (m *Monitor) cancel(s *subscriber) {
	s.mu.Lock()
	s.cancelled = true
	s.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.subscribers = slices.DeleteFunc(slices.Clone(m.subscribers), func(o *subscriber) bool { return o == s })
}

// observers returns the subscribers that hear of a breaker at this moment, none if it has left. The slice is never written to.
func (m *Monitor) observers(b *Breaker) []*subscriber {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.places[weak.Make(b)] == nil {
		return nil
	}
	return m.subscribers
}

// Isolate isolates every breaker bound so far: first all of them, then the observers hear of it. [ErrUnbound] if there is none.
func (m *Monitor) Isolate() error { return m.control(context.Background(), (*machine).isolate, false) }

// Reset resets every breaker bound so far, as Isolate isolates them.
func (m *Monitor) Reset() error { return m.control(context.Background(), (*machine).reset, false) }

// IsolateContext is Isolate that returns once observers have seen every change; see [Breaker.IsolateContext].
func (m *Monitor) IsolateContext(ctx context.Context) error {
	return m.control(ctx, (*machine).isolate, true)
}

// ResetContext is Reset that returns once observers have seen every change; see [Breaker.IsolateContext].
func (m *Monitor) ResetContext(ctx context.Context) error {
	return m.control(ctx, (*machine).reset, true)
}

func (m *Monitor) control(ctx context.Context, move func(*machine, time.Duration) *transition, wait bool) error {
	mustHaveContext(ctx)
	breakers := m.Breakers()
	if len(breakers) == 0 {
		return ErrUnbound
	}
	return controlAll(ctx, breakers, move, wait)
}
