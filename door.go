package breaker

import "context"

// The way in, as far as it needs no lock.
//
// Before: nothing has happened. After: the caller holds an admitted call, or an error. A closed breaker answers by its word, and an
// open one, whose answer only time changes, by its word and the end of the break. Whatever else there is to ask goes on to the
// lock, and to the line of those who wait.

// call is one admitted call.
type call struct {
	ticket   ticket
	progress progress
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

// enter asks for admission, and fills in the call.
func (b *Breaker) enter(ctx context.Context, c *call, how manner) (err error) {
	mustHaveContext(ctx)
	if b == nil {
		panic("breaker: nil *Breaker")
	}
	if err = ctx.Err(); err != nil {
		b.mustBeMade()
		return err
	}
	w := b.present()
	if w.isClosed() {
		c.ticket.epoch = w.epoch()
		if !b.timed || b.takeOff(c) {
			return nil
		}
	}
	if w.state() == Open && b.refusesAtOnce(how) {
		if err = b.refuseAtOnce(); err != nil {
			return err
		}
	}
	b.mustBeMade()
	if c.ticket, err = b.admitSlowly(ctx, how); err == nil && b.timed && c.ticket.epoch != unsampled {
		b.takeOff(c) // after any wait, and after any event that the admission delivered
	}
	return err
}

// takeOff begins a call, whose latency is measured from now on. It reports false where the calls in flight are due to be judged.
func (b *Breaker) takeOff(c *call) bool {
	now := b.elapsed()
	c.ticket.start = now
	f := b.flights.Load()
	if f == nil {
		return true
	}
	if f.isDue(now) {
		return false
	}
	c.ticket.flights = f
	f.begin(now)
	return true
}

// refusesAtOnce reports whether nothing but the break decides how an open breaker answers this caller.
func (b *Breaker) refusesAtOnce(how manner) bool {
	return b.realTime && !b.settings.ObserveOnly &&
		(how == trying || how == executing && b.settings.WhenOpen == Reject && b.settings.RejectionDelay == 0)
}
