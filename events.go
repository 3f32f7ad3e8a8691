package breaker

import (
	"context"
	"sync"
)

// event is one change of state on its way to the observers. An event without a change only tells, through done, that
// everything before it has been delivered.
type event struct {
	ctx    context.Context
	change *StateChange
	epoch  uint64        // after the change
	done   chan struct{} // closed once it has been delivered; nil: nobody asks
}

// eventQueue delivers events in order, one at a time, on the goroutine of whoever calls deliver first: no goroutine of its own.
type eventQueue struct {
	mu         sync.Mutex // protects following fields; taken under Breaker.mu, never the other way round
	pending    []event
	delivering bool
}

func (q *eventQueue) push(e event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pending = append(q.pending, e)
}

// barrier returns a channel that is closed once everything queued so far has been delivered.
func (q *eventQueue) barrier() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	done := make(chan struct{})
	if !q.delivering && len(q.pending) == 0 {
		close(done)
	} else {
		q.pending = append(q.pending, event{done: done})
	}
	return done
}

// deliver hands every pending event to handle, also those that come while it runs. It returns at once if another goroutine,
// or a caller further up this one's stack, is delivering: that one takes them next.
func (q *eventQueue) deliver(handle func(event)) {
	if !q.claim() {
		return
	}
	for e, ok := q.next(); ok; e, ok = q.next() {
		if e.change != nil {
			handle(e)
		}
		if e.done != nil {
			close(e.done)
		}
	}
}

// claim makes the caller the one that delivers.
func (q *eventQueue) claim() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	claimed := !q.delivering && len(q.pending) > 0
	q.delivering = q.delivering || claimed
	return claimed
}

// next takes the first event; without one the caller no longer delivers.
func (q *eventQueue) next() (e event, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.pending) == 0 {
		q.pending, q.delivering = nil, false
		return event{}, false
	}
	e = q.pending[0]
	q.pending[0] = event{}
	q.pending = q.pending[1:]
	return e, true
}
