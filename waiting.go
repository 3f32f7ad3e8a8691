package breaker

import (
	"context"
	"time"
)

// manner is how a caller asks for admission.
type manner uint8

const (
	executing manner = iota // as the settings say, with Settings.RejectionDelay
	acquiring               // waiting
	trying                  // never waiting
)

// waits reports whether the caller waits rather than be refused.
func (b *Breaker) waits(how manner) bool {
	return (how == acquiring || how == executing && b.settings.WhenOpen == Wait) && !b.settings.ObserveOnly
}

// refusesAtOnce reports whether nothing but the break decides how an open breaker answers this caller.
func (b *Breaker) refusesAtOnce(how manner) bool {
	return b.realTime && !b.settings.ObserveOnly &&
		(how == trying || how == executing && b.settings.WhenOpen == Reject && b.settings.RejectionDelay == 0)
}

// admitSlowly asks a breaker that is not closed.
func (b *Breaker) admitSlowly(ctx context.Context, how manner) (call, error) {
	t, w, err := b.ask(ctx, b.waits(how))
	switch {
	case w != nil:
		t, err = b.await(ctx, w)
	case err != nil && b.settings.ObserveOnly:
		t, err = ticket{epoch: unsampled}, nil
	case err != nil && how == executing && b.settings.RejectionDelay > 0:
		b.delay(ctx)
	}
	if err != nil {
		return call{}, err
	}
	c := call{ticket: t}
	if b.timed {
		c.start = b.elapsed() // after any wait, and after any event that the admission delivered
	}
	return c, nil
}

// delay holds a refusal back until the context ends or the delay is over.
func (b *Breaker) delay(ctx context.Context) {
	select {
	case <-b.settings.Clock.After(b.settings.RejectionDelay):
	case <-ctx.Done():
	}
}

// lockToAdmit takes the lock and returns the time, and a random number where the admission itself may need one.
func (b *Breaker) lockToAdmit(ctx context.Context, held *bool) (now time.Duration, r float64) {
	now = b.lockFor(held, b.elapsed())
	if b.jittered() && b.machine.opensAt(now) {
		b.unlockFor(held)
		r = b.random(ctx)
		now = b.lockFor(held, b.elapsed())
	}
	return now, r
}

// ask asks for a caller that comes. It is admitted, or becomes a waiter if it would wait and there is room, or is refused. After
// a fault of our own it is admitted, and not sampled.
func (b *Breaker) ask(ctx context.Context, wait bool) (t ticket, w *waiter, err error) {
	held := false
	defer func() {
		if held {
			b.ownFault(ctx, recover())
			t, w, err = ticket{epoch: unsampled}, nil, nil
		}
	}()
	now, r := b.lockToAdmit(ctx, &held)
	t, ok, change := b.machine.admit(now, b.newcomerLocked(wait), r)
	b.commitLocked(ctx, change, nil)
	switch {
	case ok:
	case wait && b.hasRoomLocked():
		w = b.waiting.push()
	default:
		err = b.refuseLocked(now)
	}
	if !ok && b.machine.state == Recovering && b.machine.period.ramp.credit >= 1 {
		b.wakeLocked() // the call has brought the first waiter its credit
	}
	b.unlockFor(&held)
	if change != nil {
		b.deliverAside(w)
	}
	return t, w, err
}

// deliverAside delivers a change that a caller made which waits, or nil for one that does not. It is out of the queue
// meanwhile: an observer may take its time, or wait for this very breaker, and whoever stands behind w would wait for that.
func (b *Breaker) deliverAside(w *waiter) {
	if w != nil {
		b.leave(w)
		defer b.comeBack(w)
	}
	b.deliver()
}

// newcomerLocked tells the machine who comes.
func (b *Breaker) newcomerLocked(wait bool) caller {
	switch {
	case b.someoneWaitsLocked():
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

// await waits until a caller in the queue is admitted, its context ends or it has waited too long. Nothing polls: the first in
// the queue is woken by every change that may serve it, and by an alarm for what time alone brings.
//
// After a fault of our own the call is admitted, and not sampled.
func (b *Breaker) await(ctx context.Context, w *waiter) (t ticket, err error) {
	defer func() {
		if b.contained(ctx, recover()) {
			t, err = ticket{epoch: unsampled}, nil
		}
	}()
	defer b.leave(w)
	var expiry <-chan time.Time
	if b.settings.MaxWait != Disabled {
		expiry = b.settings.Clock.After(b.settings.MaxWait)
	}
	for {
		expired := false
		select {
		case <-w.turn:
		case <-b.alarm(w):
		case <-expiry:
			expired = true
		case <-ctx.Done():
		}
		if err := ctx.Err(); err != nil {
			return ticket{}, err
		}
		if t, ok, err := b.askAgain(ctx, w, expired); ok || err != nil {
			return t, err
		}
	}
}

// askAgain asks for a caller in the queue. One whose wait has expired is refused if it is not admitted now. A fault of our own
// goes up to await, without the lock.
func (b *Breaker) askAgain(ctx context.Context, w *waiter, expired bool) (t ticket, ok bool, err error) {
	held := false
	defer func() {
		if held {
			b.mu.Unlock()
		}
	}()
	now, r := b.lockToAdmit(ctx, &held)
	who := behind
	if b.waiting.head == w {
		who = first
	}
	t, ok, change := b.machine.admit(now, who, r)
	b.commitLocked(ctx, change, nil)
	if !ok && expired {
		err = b.refuseLocked(now)
	}
	if ok || expired {
		b.waiting.remove(w)
	}
	b.unlockFor(&held)
	switch {
	case change == nil:
	case ok || expired:
		b.deliver()
	default:
		b.deliverAside(w)
	}
	return t, ok, err
}

// leave takes a caller out of the queue, if it is still there, and hands its turn on.
func (b *Breaker) leave(w *waiter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting.remove(w)
}

// comeBack puts a caller that left back in its place.
func (b *Breaker) comeBack(w *waiter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting.restore(w)
}

// alarm returns a channel that tells the first in the queue when to ask again, nil for the others and where time alone
// brings nothing.
func (b *Breaker) alarm(w *waiter) <-chan time.Time {
	for {
		reading := b.elapsed()
		wait, ok := b.untilNextAsk(w, reading)
		if !ok {
			return nil
		}
		alarm := b.settings.Clock.After(wait)
		// Where the clock went on between its reading and the alarm, as a fake one may in leaps, the alarm would come late.
		if b.elapsed()-reading < min(wait, time.Millisecond) || wait == 0 {
			return alarm
		}
	}
}

// untilNextAsk returns how long the first in the queue waits for what time brings.
func (b *Breaker) untilNextAsk(w *waiter, reading time.Duration) (time.Duration, bool) {
	now := b.lock(reading)
	defer b.mu.Unlock()
	if b.waiting.head != w {
		return 0, false
	}
	at, ok := b.machine.nextAsk(now)
	return max(0, at-now), ok
}
