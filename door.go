package breaker

import (
	"context"
	"time"
)

// The way in, as far as it needs no lock.
//
// Before: nothing has happened. After: the caller holds an admitted call, or an error. A closed breaker answers by its word, and an
// open one, whose answer only time changes, by its word and the end of the break. Whatever else there is to ask goes on to the
// lock, and to the line of those who wait.

// call is one admitted call.
type call struct {
	ticket   ticket
	progress progress
	start    time.Duration // the time it began, if latency is measured
}

// progress is how far a call has come. Whoever unwinds past it can tell by that what has gone wrong.
type progress uint8

const (
	running   progress = iota // the function has not returned
	returned                  // its outcome is being found out
	recording                 // the lock is held
	settled
)

// isProbe reports whether the call was admitted by a half-open circuit.
func (c *call) isProbe() bool { return c.ticket.slot != noSlot && c.ticket.slot != rampSlot }

// enter asks for admission.
func (b *Breaker) enter(ctx context.Context, how manner) (c call, err error) {
	mustHaveContext(ctx)
	if b == nil {
		panic("breaker: nil *Breaker")
	}
	if err = ctx.Err(); err != nil {
		b.mustBeMade()
		return c, err
	}
	w := b.present()
	if w.isClosed() {
		c.ticket.epoch = w.epoch()
		if b.timed {
			c.start = b.elapsed()
		}
		return c, nil
	}
	if w.state() == Open && b.refusesAtOnce(how) {
		if err = b.refuseAtOnce(); err != nil {
			return c, err
		}
	}
	b.mustBeMade()
	if c.ticket, err = b.admitSlowly(ctx, how); err == nil && b.timed {
		c.start = b.elapsed() // after any wait, and after any event that the admission delivered
	}
	return c, err
}

// refusesAtOnce reports whether nothing but the break decides how an open breaker answers this caller.
func (b *Breaker) refusesAtOnce(how manner) bool {
	return b.realTime && !b.settings.ObserveOnly &&
		(how == trying || how == executing && b.settings.WhenOpen == Reject && b.settings.RejectionDelay == 0)
}
