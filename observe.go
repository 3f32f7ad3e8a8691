package breaker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
)

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
		b.notify(ctx, "OnStateChange", func() { f(ctx, change) })
	}
	if b.settings.Monitor != nil {
		for _, s := range b.settings.Monitor.observers(b) {
			b.notify(ctx, "Subscribe", func() { s.call(ctx, change) })
		}
	}
}

// askBreakDuration lets BreakDurationFunc replace the break that e began, if that is still being served.
func (b *Breaker) askBreakDuration(ctx context.Context, e event) {
	defer func() { b.contained(ctx, recover()) }()
	if !b.serves(e.epoch) {
		return
	}
	var answer = e.change.Break
	failure := contain("BreakDurationFunc", func() (err error) {
		d, err := b.settings.BreakDurationFunc(ctx, *e.change)
		if err == nil && d <= 0 {
			err = fmt.Errorf("returned a break of %v: must be positive", d)
		}
		answer = d
		return err
	})
	if failure != nil {
		b.report(ctx, failure)
		return
	}
	now := b.lock(b.elapsed())
	defer b.mu.Unlock()
	if b.machine.redirect(now, e.epoch, answer) {
		e.change.Break = answer
		b.refusal.Load().until.Store(int64(b.machine.breakEnd()))
		b.wakeLocked()
	}
}

// serves reports whether the break that began with epoch is still being served.
func (b *Breaker) serves(epoch uint64) bool {
	now := b.lock(b.elapsed())
	defer b.mu.Unlock()
	return b.machine.epoch == epoch && b.machine.stateAt(now) == Open
}

// notify calls an observer; its faults are reported and go no further.
func (b *Breaker) notify(ctx context.Context, callback string, f func()) {
	failure := contain(callback, func() error { f(); return nil })
	if failure != nil {
		b.report(ctx, failure)
	}
}

// guard calls user code of the calling goroutine, which may run for every call and so gets no goroutine lent. A panic is
// reported and goes no further; a Goexit is reported and goes on. It reports whether f returned.
func (b *Breaker) guard(ctx context.Context, callback string, f func()) (returned bool) {
	defer func() {
		if returned {
			return
		}
		failure := &CallbackError{Callback: callback, Err: errGoexit}
		if p := recover(); p != nil {
			failure = &CallbackError{Callback: callback, Panic: p, Stack: debug.Stack()}
		}
		b.report(callbackContext(ctx), failure)
	}()
	f()
	return true
}

// ownFault ends a panic that came while the lock was held, where no code of the user runs. The lock is released and the fault
// reported: neither the result of the call nor the calls after it suffer from it.
func (b *Breaker) ownFault(ctx context.Context, p any) {
	b.mu.Unlock()
	b.contained(ctx, p)
}

// contained reports a panic that was recovered where all code is our own, and whether there was one.
func (b *Breaker) contained(ctx context.Context, p any) bool {
	if p == nil {
		return false
	}
	b.report(callbackContext(ctx), &CallbackError{Callback: "Breaker", Panic: p, Stack: debug.Stack()})
	return true
}

// report tells OnCallbackError of a fault in user code, or of our own. A fault in that one is swallowed: there is nobody left to
// tell.
func (b *Breaker) report(ctx context.Context, failure *CallbackError) {
	failure.Name = b.settings.Name
	contain("OnCallbackError", func() error {
		if f := b.settings.OnCallbackError; f != nil {
			f(ctx, failure)
		} else {
			slog.Default().LogAttrs(ctx, slog.LevelError, failure.Error(), slog.String("stack", string(failure.Stack)))
		}
		return nil
	})
}

var errUnknownOutcome = errors.New("unknown outcome, counted as ignored")
