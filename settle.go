package breaker

import (
	"context"
	"time"
)

// The way out.
//
// Before: the call has ended, however it did. After: its outcome is recorded and judged, once, its slot is free, and what came of
// it has been told. The outcome is found out and the clock read first, because both may be user code; then one lock is held for
// a handful of increments.

// finish records a call that has returned with an error, nil for none, and reports whether it counted.
func (b *Breaker) finish(ctx context.Context, c *call, err error, classify func(error) Outcome) bool {
	c.progress = returned
	if err == nil && classify == nil {
		if b.passes(c) {
			b.successes.Add(1)
			c.progress = settled
			return true
		}
		end := b.end(c, Success)
		return b.settle(ctx, c, Success, end, end-c.ticket.start, nil)
	}
	end := b.elapsed()
	at, o := end, b.classify(ctx, err, classify)
	if classify != nil || b.settings.Classify != nil {
		at = b.elapsed() // the classifier took its time, and what is decided now is decided as of now
	}
	return b.settle(ctx, c, o, at, end-c.ticket.start, err)
}

// passes reports whether a success has nothing to record but that it happened: nothing is sampled, and there is no streak.
func (b *Breaker) passes(c *call) bool {
	return !b.sampled && b.present() == wordOf(Closed, c.ticket.epoch) && c.ticket.slot == noSlot
}

// end returns the time at the end of a call, if its outcome needs it.
func (b *Breaker) end(c *call, o Outcome) time.Duration {
	if o == Ignored || o == Success && !b.sampled && c.ticket.slot == noSlot {
		return unread
	}
	return b.elapsed()
}

// settle records an outcome with its latency, at a time, and tells what came of it. It reports whether the outcome counted.
func (b *Breaker) settle(ctx context.Context, c *call, o Outcome, at, latency time.Duration, err error) (counted bool) {
	c.progress = recording
	b.mu.Lock()
	now := b.time.at(at)
	counted, change := b.machine.settle(now, &c.ticket, o, latency)
	if change != nil || c.ticket.slot != noSlot || !b.sampled || b.machine.flights != b.flights.Load() {
		b.settledLocked(ctx, c, now, change, failureOf(change, o, err))
	}
	b.mu.Unlock()
	c.progress = settled
	if change != nil {
		b.tell(ctx, change)
	}
	return counted
}

// answered takes a call that goes on out of those in flight: it has had its answer.
func (b *Breaker) answered(c *call) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c.ticket.land()
}

// settledLocked makes known what an outcome brought.
func (b *Breaker) settledLocked(ctx context.Context, c *call, now time.Duration, change *transition, err error) {
	b.commitLocked(ctx, change, err)
	if change == nil && c.ticket.slot != noSlot && b.someoneWaitsLocked() {
		b.machine.offerAnew(now)
		b.wakeLocked()
	}
	if change == nil {
		b.publishLocked() // a streak may have begun or ended, also through a probe that lands in Closed; or the threshold has moved
	}
}

// failureOf returns the failure that decided a change: the error of an outcome that failed and opened the circuit. A cohort can
// also close on a failure that does not meet its ratio.
func failureOf(t *transition, o Outcome, err error) error {
	if t != nil && t.to == Open && o == Transient {
		return err
	}
	return nil
}

// abandon records a call whose goroutine unwinds past it, with a panic p or, where that is nil, by runtime.Goexit. A panic of the
// function goes on, on top of its own stack, so that its trace stays whole; one behind it is no matter of the caller: it is
// reported and goes no further.
func (b *Breaker) abandon(ctx context.Context, c *call, p any) {
	switch {
	case c.progress == recording:
		b.mu.Unlock()
		b.contained(ctx, p)
	case c.progress == returned && b.contained(ctx, p), p == nil:
		b.settleLast(ctx, c, Ignored)
	default:
		defer panic(p)
		b.settleLast(ctx, c, Transient)
	}
}

// settleLast is settle for a deferred call behind which nobody would settle if the clock or the context made it panic or exit, nor
// free the lock after a fault of our own.
func (b *Breaker) settleLast(ctx context.Context, c *call, o Outcome) {
	defer func() {
		failure := recover()
		switch c.progress {
		case running, returned:
			b.settle(ctx, c, o, unread, 0, nil)
		case recording:
			b.mu.Unlock()
		}
		b.contained(ctx, failure)
	}()
	if o == Transient && b.gaveUp(ctx) {
		o = givenUp
	}
	end := b.end(c, o)
	b.settle(ctx, c, o, end, end-c.ticket.start, nil)
}
