package breaker

import (
	"context"
	"time"
)

// The way in, under the lock.
//
// Before: a caller asks, and the door could not answer without the lock. After: it holds a ticket, or stands in the line, or has
// its refusal; what its question changed is committed, and is told of by its caller once the lock is free. Time brings the
// transitions made here: the end of a break, lost probes, the end of a ramp, calls overdue.

// answer is what a caller gets that asks for admission.
type answer struct {
	ticket ticket
	ok     bool           // admitted
	place  *waiter        // in the line, for one that is not admitted and waits
	err    *RejectedError // of one that is not admitted and does not wait
	change *transition    // to be told of
}

// refusal returns the error of a caller that is not admitted, nil for one that is.
func (a *answer) refusal() error {
	if a.ok {
		return nil
	}
	return a.err
}

// ask asks for a caller that comes. It is admitted, or takes a place in the line if it waits and there is room, or is refused.
func (b *Breaker) ask(ctx context.Context, wait bool) (a answer) {
	urgent := wait && insideCallback(ctx)
	now := b.lock(b.elapsed())
	defer b.mu.Unlock()
	urgent = urgent && b.firstIsAwayLocked()
	a.ticket, a.ok, a.change = b.machine.admit(now, b.newcomerLocked(wait, urgent))
	b.commitLocked(ctx, a.change, nil)
	switch {
	case a.ok:
	case wait && b.hasRoomLocked():
		a.place = b.waiting.push(urgent)
		a.place.away = a.change != nil
	default:
		a.err = b.refuseLocked(now)
	}
	if !a.ok && b.machine.owesTurn() {
		b.wakeLocked() // the call has brought the first waiter its credit
	}
	return a
}

// askAgain asks for a caller in the line. One whose wait is over is refused if it is not admitted now. Either way it leaves.
func (b *Breaker) askAgain(ctx context.Context, w *waiter, over bool) (a answer) {
	now := b.lock(b.elapsed())
	defer b.mu.Unlock()
	who := behind
	if b.waiting.head == w {
		who = first
	}
	a.ticket, a.ok, a.change = b.machine.admit(now, who)
	b.commitLocked(ctx, a.change, nil)
	if !a.ok && over {
		a.err = b.refuseLocked(now)
	}
	if a.ok || over {
		b.waiting.remove(w)
	}
	w.away = a.change != nil
	return a
}

// giveUp takes a caller out of the line, if it is still there, and hands its turn on. It returns the state that the caller leaves.
func (b *Breaker) giveUp(w *waiter) State {
	now := b.lock(unread)
	defer b.mu.Unlock()
	b.waiting.remove(w)
	return b.machine.stateAt(now)
}

// comeBack notes that a caller in the line has told of the change it made.
func (b *Breaker) comeBack(w *waiter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w.away = false
}

// firstIsAwayLocked reports whether the first in the line is telling of a change. It keeps its place, so only the observer that it
// is telling goes before it: each would otherwise wait for the other.
func (b *Breaker) firstIsAwayLocked() bool { return b.someoneWaitsLocked() && b.waiting.head.away }

// newcomerLocked tells the machine who comes.
func (b *Breaker) newcomerLocked(wait, urgent bool) caller {
	switch {
	case b.someoneWaitsLocked() && !urgent:
		return behind
	case wait:
		return arriving
	default:
		return passing
	}
}

// hasRoomLocked reports whether one more caller may wait.
func (b *Breaker) hasRoomLocked() bool {
	if b.waiting == nil {
		b.waiting = new(waitQueue)
	}
	return b.settings.MaxWaiting == 0 || b.waiting.len < b.settings.MaxWaiting
}

// untilNextAsk returns how long the first in the line waits for what time brings; false for the others, and where time alone
// brings nothing.
func (b *Breaker) untilNextAsk(w *waiter, asked time.Duration) (time.Duration, bool) {
	now := b.lock(asked)
	defer b.mu.Unlock()
	if b.waiting.head != w {
		return 0, false
	}
	at, ok := b.machine.nextAsk(now)
	return max(0, at-now), ok
}
