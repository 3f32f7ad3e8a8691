package breaker

// waiter is a caller that waits for admission.
type waiter struct {
	turn       chan struct{} // holds a token when it is time to ask again
	prev, next *waiter
	queued     bool
}

// waitQueue holds the callers that wait, first in, first out. Only the first is ever woken: when it is through, or has given
// up, the one behind it is.
type waitQueue struct {
	head, tail *waiter
	len        int
}

// push adds a caller at the end.
func (q *waitQueue) push() *waiter {
	w := &waiter{turn: make(chan struct{}, 1), prev: q.tail, queued: true}
	if q.tail == nil {
		q.head = w
	} else {
		q.tail.next = w
	}
	q.tail = w
	q.len++
	return w
}

// remove takes a caller out, wherever it stands and if it is still there, and wakes the first of the rest: the turn may have
// been its own.
func (q *waitQueue) remove(w *waiter) {
	if !w.queued {
		return
	}
	if w.prev == nil {
		q.head = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		q.tail = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.queued = false
	q.len--
	q.wake()
}

// wake tells the first caller to ask again.
func (q *waitQueue) wake() {
	if q.head == nil {
		return
	}
	select {
	case q.head.turn <- struct{}{}:
	default: // it has been told
	}
}
