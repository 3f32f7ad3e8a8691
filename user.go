package breaker

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/benbjohnson/clock"
)

// Code of the user runs through one of two doors, never under a lock of ours. contain lends it a goroutine, which survives
// everything; guard runs it on the caller's, for what may run with every call.

// errGoexit is the failure of user code that did not return.
var errGoexit = errors.New("called runtime.Goexit")

// contain calls user code whose goroutine must survive it and returns how it failed, nil if it did not. It lends the code a
// goroutine and waits for it: nothing less stops a runtime.Goexit, which would take the caller's result with it.
func contain(callback string, f func() error) *CallbackError {
	failed := make(chan *CallbackError, 1)
	go lend(callback, f, failed)
	return <-failed
}

// lend is the goroutine that contain lends.
func lend(callback string, f func() error, failed chan<- *CallbackError) {
	failure := &CallbackError{Callback: callback, Err: errGoexit}
	defer func() {
		if p := recover(); p != nil {
			failure = &CallbackError{Callback: callback, Panic: p, Stack: debug.Stack()}
		}
		failed <- failure
	}()
	if err := f(); err != nil {
		failure = &CallbackError{Callback: callback, Err: err}
	} else {
		failure = nil
	}
}

// callbackKey marks the contexts that callbacks are given.
type callbackKey struct{}

// callbackContext returns the context for a callback: the values of ctx, never its cancellation.
func callbackContext(ctx context.Context) context.Context {
	return context.WithValue(context.WithoutCancel(ctx), callbackKey{}, true)
}

// insideCallback reports whether the caller is a callback of any breaker: by its context, or, whatever context it was given, by
// the goroutine that was lent to it.
func insideCallback(ctx context.Context) bool {
	return ctx.Value(callbackKey{}) != nil || onLentGoroutine()
}

// lendEntry is where the code of lend begins.
var lendEntry = reflect.ValueOf(lend).Pointer()

// onLentGoroutine reports whether the goroutine is one that contain lends: its first function is lend.
func onLentGoroutine() bool {
	pcs := make([]uintptr, 64)
	n := runtime.Callers(1, pcs)
	for n == len(pcs) {
		pcs = make([]uintptr, 2*len(pcs))
		n = runtime.Callers(1, pcs)
	}
	for frames, more := runtime.CallersFrames(pcs[:n]), true; more; {
		var frame runtime.Frame
		if frame, more = frames.Next(); frame.Entry == lendEntry {
			return true
		}
	}
	return false
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
		b.report(ctx, failure)
	}()
	f()
	return true
}

// notify calls a function of the user on a goroutine lent to it; its faults are reported and go no further.
func (b *Breaker) notify(ctx context.Context, callback string, f func() error) (ok bool) {
	failure := contain(callback, f)
	if failure != nil {
		b.report(ctx, failure)
	}
	return failure == nil
}

// contained reports a panic that was recovered where all code is our own, and whether there was one.
func (b *Breaker) contained(ctx context.Context, p any) bool {
	if p == nil {
		return false
	}
	b.report(ctx, &CallbackError{Callback: "Breaker", Panic: p, Stack: debug.Stack()})
	return true
}

// report tells OnCallbackError of a fault in user code, or of our own. A fault in that one is swallowed: there is nobody left to
// tell.
func (b *Breaker) report(ctx context.Context, failure *CallbackError) {
	ctx = callbackContext(ctx)
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

// elapsed returns the breaker's time. The clock may be user code: never call it under a lock. The default clock does what is
// done here without the detour of an interface.
func (b *Breaker) elapsed() time.Duration {
	if b.realTime {
		return time.Since(b.time.made)
	}
	now, failure := b.settings.Clock.(*settable).ask()
	if failure != nil {
		b.report(context.Background(), failure)
	}
	return now
}

// after returns a channel that is sent to when a time has passed by the breaker's clock, and by the default one where that panics.
func (b *Breaker) after(ctx context.Context, d time.Duration) (c <-chan time.Time) {
	if !b.guard(ctx, "Clock", func() { c = b.settings.Clock.After(d) }) {
		return clock.New().After(d)
	}
	return c
}

// restock draws the number that the next break is jittered by. The machine needs one under the lock, where Random, which is user
// code, must not run; so one is always in stock, drawn when the breaker is made and after each open.
func (b *Breaker) restock(ctx context.Context) {
	r := rand.Float64()
	if b.settings.Random != nil && b.settings.BreakJitter != JitterNone {
		r = b.askRandom(ctx, r)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.machine.random = min(max(r, 0), math.Nextafter(1, 0))
}

// askRandom returns a number of Random, or the other where it gives none.
func (b *Breaker) askRandom(ctx context.Context, other float64) float64 {
	var theirs float64
	ok := b.notify(ctx, "Random", func() error { theirs = b.settings.Random(); return nil })
	if !ok || theirs != theirs {
		return other
	}
	return theirs
}
