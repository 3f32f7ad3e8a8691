package breaker

// waiter is a caller that waits for admission.
type waiter struct {
	turn       chan struct{} // holds a token when it is time to ask again
	number     uint64        // in order of arrival
	prev, next *waiter
	queued     bool
}

// waitQueue holds the callers that wait, first in, first out. Only the first is ever woken: when it is through, or has given
// up, the one behind it is.
type waitQueue struct {
	head, tail *waiter
	len        int
	arrivals   uint64
}

// push adds a caller at the end.
func (q *waitQueue) push() *waiter {
	q.arrivals++
	w := &waiter{turn: make(chan struct{}, 1), number: q.arrivals}
	q.insert(w, nil)
	return w
}

// restore puts a caller that was removed back where it came from, and wakes the first, which may be that one.
func (q *waitQueue) restore(w *waiter) {
	next := q.head
	for next != nil && next.number < w.number {
		next = next.next
	}
	q.insert(w, next)
	q.wake()
}

// insert adds a caller before next, at the end if that is nil.
func (q *waitQueue) insert(w, next *waiter) {
	w.queued, w.prev, w.next = true, q.tail, next
	if next != nil {
		w.prev, next.prev = next.prev, w
	} else {
		q.tail = w
	}
	if w.prev != nil {
		w.prev.next = w
	} else {
		q.head = w
	}
	q.len++
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
