package breaker

// waiter is a caller that waits for admission.
type waiter struct {
	turn       chan struct{} // holds a token when it is time to ask again
	prev, next *waiter
	queued     bool
	away       bool // it tells of a change that its question made
}

// waitQueue holds the callers that wait, first in, first out. A place is kept until its caller is admitted or gives up. Only the
// first is ever woken: when it is through, or has given up, the one behind it is.
type waitQueue struct {
	head, tail *waiter
	len        int
}

// push adds a caller: at the end, or at the front where it is urgent.
func (q *waitQueue) push(urgent bool) *waiter {
	w := &waiter{turn: make(chan struct{}, 1)}
	if urgent {
		q.insert(w, q.head)
	} else {
		q.insert(w, nil)
	}
	return w
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
