package breaker

import (
	"context"
	"time"
)

// commitLocked makes a transition known: to admission, to those who are refused, to the observers, and to whoever waits. The
// error is the failure that decided it, if any. Once the lock is free, whoever made the transition calls tell.
func (b *Breaker) commitLocked(ctx context.Context, t *transition, err error) {
	if t == nil {
		return
	}
	switch t.to {
	case Open, Isolated:
		b.refusal.Store(b.newRefusals(t.reason, err))
	case Closed:
		b.refusal.Store(nil)
	}
	if t.from == Closed {
		b.countUnsampledLocked(&t.counts)
	} else if t.to == Closed {
		b.gatherLocked()
	}
	b.publishLocked()
	if b.events != nil {
		b.events.push(event{ctx: ctx, epoch: b.machine.epoch, change: &StateChange{
			Name: b.settings.Name, From: t.from, To: t.to, Reason: t.reason, At: b.time.made.Add(t.at),
			Break: t.breakFor, Opens: t.opens, Counts: t.counts, Err: err,
		}})
	}
	b.wakeLocked()
}

// gatherLocked moves what was recorded without the lock into the totals: the counts begin anew.
func (b *Breaker) gatherLocked() { b.machine.totals.Successes += b.successes.Swap(0) }

// countUnsampledLocked adds the calls that were recorded without the lock since the circuit closed.
func (b *Breaker) countUnsampledLocked(c *Counts) {
	if !b.sampled {
		c.Calls += clampInt(b.successes.Load())
	}
}

// wakeLocked tells the first of those who wait to ask again.
func (b *Breaker) wakeLocked() {
	if b.waiting != nil {
		b.waiting.wake()
	}
}

// someoneWaitsLocked reports whether a caller waits for admission.
func (b *Breaker) someoneWaitsLocked() bool { return b.waiting != nil && b.waiting.len > 0 }

// redirectLocked replaces the break that began with an epoch, if that is still being served, and reports whether it was.
func (b *Breaker) redirectLocked(now time.Duration, epoch uint64, breakFor time.Duration) bool {
	if !b.machine.redirect(now, epoch, breakFor) {
		return false
	}
	b.refusal.Load().until.Store(int64(b.machine.breakEnd()))
	b.wakeLocked()
	return true
}
