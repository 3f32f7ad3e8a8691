package breaker

import (
	"context"
	"fmt"
	"time"
)

// tell does what a transition asks for once the lock is free: it hands pending changes to the observers, and draws the number for
// the next break.
func (b *Breaker) tell(ctx context.Context, t *transition) {
	if t == nil {
		return
	}
	if t.to == Open {
		b.restock(ctx)
	}
	b.deliver()
}

// deliver hands pending changes to the observers.
func (b *Breaker) deliver() {
	if b.events != nil {
		b.events.deliver(b.observe)
	}
}

// delivered waits until everything queued so far has been delivered.
func (b *Breaker) delivered(ctx context.Context) error {
	if b.events == nil {
		return nil
	}
	done := b.events.barrier()
	select {
	case <-done:
		return nil
	default:
	}
	b.deliver()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// observe tells everybody of one change.
func (b *Breaker) observe(e event) {
	ctx := callbackContext(e.ctx)
	if e.change.To == Open && b.settings.BreakDurationFunc != nil {
		b.askBreakDuration(ctx, e)
	}
	change := *e.change
	if f := b.settings.OnStateChange; f != nil {
		b.notify(ctx, "OnStateChange", func() error { f(ctx, change); return nil })
	}
	if b.settings.Monitor != nil {
		for _, s := range b.settings.Monitor.observers(b.tenant()) {
			b.notify(ctx, "Subscribe", func() error { s.call(ctx, change); return nil })
		}
	}
}

// askBreakDuration lets BreakDurationFunc replace the break that e began, if that is still being served.
func (b *Breaker) askBreakDuration(ctx context.Context, e event) {
	defer func() { b.contained(ctx, recover()) }()
	if !b.serves(e.epoch) {
		return
	}
	var answer time.Duration
	ok := b.notify(ctx, "BreakDurationFunc", func() (err error) {
		answer, err = b.settings.BreakDurationFunc(ctx, *e.change)
		if err == nil && answer <= 0 {
			err = fmt.Errorf("returned a break of %v: must be positive", answer)
		}
		return err
	})
	if !ok {
		return
	}
	now := b.lock(b.elapsed())
	defer b.mu.Unlock()
	if b.redirectLocked(now, e.epoch, answer) {
		e.change.Break = answer
	}
}

// serves reports whether the break that began with epoch is still being served.
func (b *Breaker) serves(epoch uint64) bool {
	_, ok := b.retryAfterIn(epoch)
	return ok
}
