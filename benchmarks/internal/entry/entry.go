// Package entry holds the field: each breaker library behind one small interface, in one file a library, in the
// configurations in which it is measured.
package entry

import (
	"context"
	"errors"
)

// Func is a call to the dependency.
type Func = func(context.Context) error

// Guard is one breaker in use.
type Guard interface {
	// Call runs fn unless the breaker refuses. Whether fn ran tells which.
	Call(ctx context.Context, fn Func) error
	// State is what the breaker does with calls now. Asking changes no state that a call would find.
	State() State
}

// State is what a breaker does with calls.
type State uint8

// The states.
const (
	Closed  State = iota // lets all through
	Ramping              // hands the load back little by little
	Open                 // refuses calls, but for probes
)

// stateOf is the state of a breaker that knows no ramp.
func stateOf(closed bool) State {
	if closed {
		return Closed
	}
	return Open
}

// Entry is one library in one configuration.
type Entry struct {
	Library string // as tables call it
	Config  string // as tables call it
	Module  string // whose version was measured; empty for ours and for the simple rules
	Setup   string // what was written, and where the library's documentation suggests it
	Kind    Kind
	// Sheds marks a library that has no open state but refuses a share of the calls. Its guard counts as closed again when it
	// has refused nothing for sheddingPause.
	Sheds bool
	New   func(seed uint64) Guard
	Bench func() Bench // nil: not timed here, since another entry of the library costs the same
}

// Name is the entry's name in tables.
func (e Entry) Name() string { return e.Library + ", " + e.Config }

// Kind is what an entry is to the comparison.
type Kind uint8

// The kinds.
const (
	Peer   Kind = iota
	Ours        // this module's breaker
	Rule        // a simple rule that takes a few lines and no library
	Absent      // no protection at all: a yardstick, and no contestant
)

const (
	asItComes = "as it comes"
	tuned     = "tuned"
)

// Field returns all entries, in the order of tables.
func Field() []Entry {
	var field []Entry
	for _, entries := range [][]Entry{
		ours(), gobreakers(), failsafes(), throttlers(), goZeros(), aegises(), resiliencies(), rubyists(), hystrixes(), rules(),
	} {
		field = append(field, entries...)
	}
	return field
}

// isFailure is what libraries that can tell one error from another are told in their tuned configuration: a caller that gave
// up says nothing about the dependency.
func isFailure(err error) bool { return err != nil && !errors.Is(err, context.Canceled) }
