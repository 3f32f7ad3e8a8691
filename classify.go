package breaker

import (
	"context"
	"errors"
	"runtime"
	"strings"
)

// classify tells what the error of a call says about the dependency: the first rule that applies.
func (b *Breaker) classify(ctx context.Context, err error, classify func(error) Outcome) (o Outcome) {
	if err != nil {
		if ctx.Err() == context.Canceled {
			return Ignored
		}
		if o, ok := markOf(err); ok {
			return b.known(ctx, o, "Mark")
		}
		if errors.Is(err, ErrRejected) {
			return Ignored
		}
		if classify == nil {
			classify = b.settings.Classify
		}
	}
	if classify == nil {
		return Transient
	}
	o = Transient
	b.guard(ctx, "Classify", func() { o = classify(err) })
	return b.known(ctx, o, "Classify")
}

// known returns o, or reports an unknown one and returns Ignored.
func (b *Breaker) known(ctx context.Context, o Outcome, from string) Outcome {
	if outcomes.has(uint8(o)) {
		return o
	}
	b.report(callbackContext(ctx), &CallbackError{Callback: from, Err: errUnknownOutcome})
	return Ignored
}

// abandon records a call whose goroutine does not return from it: a panic is a failure, runtime.Goexit says nothing. It is
// deferred, and recovers nothing, so that the trace of the panic stays whole. It reports false, and has done nothing, if the
// fault is our own.
func (b *Breaker) abandon(ctx context.Context, c *call) bool {
	o := Transient
	switch unwinding() {
	case byFault:
		return false
	case byGoexit:
		o = Ignored
	}
	end := b.elapsed()
	b.settle(ctx, c, end, o, end-c.start, nil)
	return true
}

// cause is why deferred functions run before their function has returned.
type cause uint8

const (
	byPanic cause = iota
	byGoexit
	byFault // a panic in settleFast, with the lock held
)

// unwinding tells, in a deferred function, why it runs. The stack knows: the nearest of the two runtime functions that run
// deferred calls, and what panicked.
func unwinding() cause {
	var pcs [64]uintptr
	panicking := false
	for skip := 2; ; skip += len(pcs) {
		n := runtime.Callers(skip, pcs[:])
		frames := runtime.CallersFrames(pcs[:n])
		for more := true; more; {
			var frame runtime.Frame
			frame, more = frames.Next()
			switch {
			case frame.Function == "runtime.Goexit" && !panicking:
				return byGoexit
			case strings.HasPrefix(frame.Function, "runtime.gopanic"):
				panicking = true
			case strings.HasSuffix(frame.Function, ".(*Breaker).settleFast"):
				return byFault
			}
		}
		if n < len(pcs) {
			return byPanic
		}
	}
}
