package entry

import (
	"context"
	"errors"
)

// Bench is how an entry's speed and size are measured: loops over the library's own call, written out in each adapter, so
// that neither an interface nor a closure of the field stands between the timed loop and the library.
type Bench struct {
	Success  func(n int) // closed, and every call succeeds
	Refused  func(n int) // open; nil where the library never refuses for certain
	HalfOpen func(n int) // half-open, with all its probes in flight; nil where the library refuses nothing then
	New      func() any  // one breaker, not used yet, for its size
	Warm     func(any)   // gives that breaker samples
}

// benchSamples is how many calls a breaker has seen when its size with samples is taken.
const benchSamples = 200

var errBench = errors.New("the dependency failed")

func succeed(context.Context) error { return nil }
func fail(context.Context) error    { return errBench }

func succeedPlain() error { return nil }
func failPlain() error    { return errBench }
