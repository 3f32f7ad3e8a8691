package breaker

import (
	"context"
	"errors"
	"time"
)

// ErrUnbound is what a [Monitor] returns while no breaker is bound to it.
var ErrUnbound = errors.New("breaker: monitor has no breaker")

// Breakers returns the breakers bound so far that are still alive, in the order they were bound.
func (m *Monitor) Breakers() []*Breaker {
	m.mu.Lock()
	defer m.mu.Unlock()
	breakers := make([]*Breaker, 0, m.bound.Len())
	for e := m.bound.Front(); e != nil; e = e.Next() {
		if b := e.Value.(weakly[Breaker]).pointer.Value(); b != nil {
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
	m.subscribe(s)
	return func() { m.cancel(s) }
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
