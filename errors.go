package breaker

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// ErrRejected matches every refusal: errors.Is(err, ErrRejected) is true for each [RejectedError].
var ErrRejected = errors.New("breaker: call rejected")

// RejectedError is the answer to a call that the breaker did not admit: the dependency was never asked. One value is shared
// by all callers refused in the same period and state, so it is read-only.
//
// Do not retry before [RejectedError.RetryAfter], and do not take a refusal for the dependency's answer: the work is neither
// done nor wrong, it has not been tried. Where RetryAfter is false no break tells when: a half-open or recovering circuit admits
// some calls already, so try again with the next item or after a moment of your own; an isolated one waits for a person.
type RejectedError struct {
	Name   string // of the breaker
	State  State  // Open, HalfOpen, Recovering or Isolated
	Reason Reason // of the change that began the open period
	// Cause is the failure that opened the circuit, nil if there was none to keep. It is not unwrapped: a refusal is about
	// the breaker, never about the last caller's error, and its text is in no message.
	Cause error

	retryAfter func() (time.Duration, bool)
}

// RetryAfter returns how long the break still lasts, worked out at this moment. It is false once that break is over, and for
// every state but Open.
func (e *RejectedError) RetryAfter() (time.Duration, bool) {
	if e.retryAfter == nil {
		return 0, false
	}
	return e.retryAfter()
}

// Error names the breaker, its state and the wait in whole seconds, rounded up.
func (e *RejectedError) Error() string {
	s := fmt.Sprintf("breaker: %q is %s", e.Name, e.State)
	if wait, ok := e.RetryAfter(); ok {
		s += fmt.Sprintf(", retry after %.0f s", math.Ceil(wait.Seconds()))
	}
	return s
}

// Is reports whether target is [ErrRejected].
func (e *RejectedError) Is(target error) bool { return target == ErrRejected }

// WaitError is the answer to a call that waited for admission until its context ended. It matches [ErrRejected], for the
// dependency was never asked, and the error of the context. It counts in no total.
type WaitError struct {
	Name   string        // of the breaker
	State  State         // when the wait ended; Closed if the circuit closed in that very moment
	Waited time.Duration // by the breaker's clock
	Err    error         // of the context: context.Canceled or context.DeadlineExceeded
}

// Error names the breaker, its state, how long the call has waited and why it waits no more.
func (e *WaitError) Error() string {
	return fmt.Sprintf("breaker: %q is %s: gave up after waiting %v: %v", e.Name, e.State, e.Waited, e.Err)
}

// Is reports whether target is [ErrRejected].
func (e *WaitError) Is(target error) bool { return target == ErrRejected }

// Unwrap returns Err.
func (e *WaitError) Unwrap() error { return e.Err }

// CallbackError tells of a function in [Settings], of a subscriber, or of a method of an error or a context that failed: it returned
// an error, panicked, called [runtime.Goexit] or gave a value that cannot be used. The breaker and the caller's result are never affected. A fault of the
// breaker itself is told of in the same way, and the call goes on as if there were no breaker.
type CallbackError struct {
	Name string // of the breaker
	// Callback is the field or method it was given to, such as OnStateChange or Subscribe. Error is a method of the error that a
	// call returned, Context is one of its context, and Breaker is a fault of the breaker's own.
	Callback string
	Err      error  // what it returned, or what was wrong with the value; nil after a panic
	Panic    any    // what it panicked with
	Stack    []byte // of the panic
}

// Error names the breaker, the callback and what went wrong, without the stack.
func (e *CallbackError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("breaker: %q: %s: %v", e.Name, e.Callback, e.Err)
	}
	return fmt.Sprintf("breaker: %q: %s panicked: %v", e.Name, e.Callback, e.Panic)
}

// Unwrap returns Err.
func (e *CallbackError) Unwrap() error { return e.Err }
