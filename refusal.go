package breaker

import (
	"sync/atomic"
	"time"
)

// refusals are the errors of one open period, one for each state in it, so that a refusal costs no allocation.
type refusals struct {
	reason  Reason
	cause   error
	until   atomic.Int64                 // the end of the break
	byState [Isolated + 1]*RejectedError // that of Open is there from the start, the others are made under the lock
}

// refuseAtOnce refuses a call without the lock while the break goes on; nil: the lock must decide. That is right only for a clock
// that cannot be set back, because it keeps no record of the time.
func (b *Breaker) refuseAtOnce() error {
	r := b.refusal.Load()
	if r == nil || int64(b.elapsed()) >= r.until.Load() {
		return nil
	}
	b.rejected.Add(1)
	return r.byState[Open]
}

// refuseLocked counts a refusal and returns its error.
func (b *Breaker) refuseLocked(now time.Duration) *RejectedError {
	b.rejected.Add(1)
	return b.refusalLocked(now)
}

// refusalLocked returns the error of a call that is not admitted now.
func (b *Breaker) refusalLocked(now time.Duration) *RejectedError {
	r, state := b.refusal.Load(), b.machine.stateAt(now)
	if r.byState[state] == nil {
		r.byState[state] = &RejectedError{Name: b.settings.Name, State: state, Reason: r.reason, Cause: r.cause}
	}
	return r.byState[state]
}

// newRefusals returns the refusals of the period that the machine has begun.
func (b *Breaker) newRefusals(reason Reason, cause error) *refusals {
	r, epoch := &refusals{reason: reason, cause: cause}, b.machine.epoch
	r.until.Store(int64(b.machine.breakEnd()))
	r.byState[Open] = &RejectedError{
		Name: b.settings.Name, State: Open, Reason: reason, Cause: cause,
		retryAfter: func() (time.Duration, bool) { return b.retryAfterIn(epoch) },
	}
	return r
}

// retryAfterIn returns how long the break that began with an epoch still lasts; false once it is over.
func (b *Breaker) retryAfterIn(epoch uint64) (time.Duration, bool) {
	now := b.lock(b.elapsed())
	defer b.mu.Unlock()
	return b.machine.retryAfterIn(now, epoch)
}
