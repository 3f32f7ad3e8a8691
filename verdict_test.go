package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
)

// proxy is an error that answers for others by its methods, as some packages' errors do.
type proxy struct {
	error
	is     func(error) bool
	as     func(any) bool
	unwrap func() error
}

func (p *proxy) Is(target error) bool { return p.is != nil && p.is(target) }
func (p *proxy) As(target any) bool   { return p.as != nil && p.as(target) }
func (p *proxy) Unwrap() error {
	if p.unwrap == nil {
		return nil
	}
	return p.unwrap()
}

// many is an error of several.
type many []error

func (many) Error() string     { return "many" }
func (m many) Unwrap() []error { return m }

// A mark on one of two joined errors spoke for the other one as well: a bad request beside a failure hid the failure.
func TestRegression_WorstBranchOfAnErrorWins(t *testing.T) {
	refusal := error(&breaker.RejectedError{Name: "inner"})
	mark := func(o breaker.Outcome) error { return breaker.Mark(errDown, o) }
	bad := mark(breaker.Permanent)
	for _, test := range []struct {
		name   string
		err    error
		answer breaker.Outcome // of the classifier
		want   breaker.Outcome
		asked  int
	}{
		{"an unmarked branch that failed", errors.Join(bad, errDown), transient, transient, 1},
		{"before the mark", errors.Join(errDown, bad), transient, transient, 1},
		{"one that did not", errors.Join(bad, errDown), success, breaker.Permanent, 1},
		{"one that was ignored", errors.Join(bad, errDown), breaker.Ignored, breaker.Permanent, 1},
		{"two of them are asked about once", errors.Join(errDown, bad, errDown), breaker.Throttled, breaker.Throttled, 1},
		{"none is marked", errors.Join(errDown, errDown), breaker.Permanent, breaker.Permanent, 1},
		{"transient before throttled", errors.Join(mark(breaker.Throttled), mark(transient)), success, transient, 0},
		{"throttled before permanent", errors.Join(bad, mark(breaker.Throttled)), success, breaker.Throttled, 0},
		{"permanent before ignored", errors.Join(mark(breaker.Ignored), bad), success, breaker.Permanent, 0},
		{"ignored before success", errors.Join(mark(success), mark(breaker.Ignored)), transient, breaker.Ignored, 0},
		{"success alone", errors.Join(mark(success), mark(success)), transient, success, 0},
		{"a mark outside speaks for all", breaker.Mark(errors.Join(mark(transient), errDown), breaker.Permanent), transient,
			breaker.Permanent, 0},
		{"so it does in its branch", errors.Join(breaker.Mark(errors.Join(mark(transient), errDown), breaker.Ignored), bad), transient,
			breaker.Permanent, 0},
		{"branches further in", fmt.Errorf("a: %w", errors.Join(bad, fmt.Errorf("b: %w", errors.Join(mark(breaker.Throttled), bad)))),
			transient, breaker.Throttled, 0},
		{"two of fmt", fmt.Errorf("%w: %w", bad, errDown), transient, transient, 1},
		{"a refusal and a mark", errors.Join(refusal, bad), transient, breaker.Permanent, 0},
		{"a refusal and a success", errors.Join(refusal, mark(success)), transient, breaker.Ignored, 0},
		{"a refusal and a failure", errors.Join(refusal, errDown), transient, transient, 1},
		{"a refusal of several causes", &proxy{error: errDown, unwrap: func() error { return errors.Join(errDown, errDown) },
			is: func(err error) bool { return err == breaker.ErrRejected }}, transient, breaker.Ignored, 0},
		{"a branch that is nothing", many{nil, bad}, transient, breaker.Permanent, 0},
		{"nothing but such branches", many{nil}, breaker.Throttled, breaker.Throttled, 1},
		{"no branches", many{}, breaker.Throttled, breaker.Throttled, 1},
		{"an error that answers for a mark", &proxy{error: errDown, as: func(target any) bool { return errors.As(bad, target) }},
			transient, breaker.Permanent, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := count{answer: test.answer}
			d := drive(t, breaker.Settings{Classify: c.classify})
			assert.Equal(t, test.err, d.Execute(t.Context(), func(context.Context) error { return test.err }))
			assert.Equal(t, test.want, d.onlyOutcome())
			assert.Equal(t, test.asked, c.asked)
		})
	}
}

// An unknown outcome among the marks is told of once, and the others count.
func TestUnknownOutcomesInBranches(t *testing.T) {
	var heard faults
	d := drive(t, breaker.Settings{OnCallbackError: heard.hear})
	unknown := breaker.Mark(errDown, 200)
	d.permit().Done(t.Context(), errors.Join(unknown, unknown, breaker.Mark(errDown, breaker.Permanent)))
	assert.Equal(t, breaker.Permanent, d.onlyOutcome())
	assert.Equal(t, "Mark", heard.requireOne(t).Callback)
}

// An error that is its own cause, alone or twice over, ends no walk by itself; what was not seen is unmarked.
func TestErrorsThatGoRoundInCircles(t *testing.T) {
	ring := &proxy{error: errDown}
	ring.unwrap = func() error { return ring }
	bush := many{nil, nil}
	bush[0], bush[1] = bush, bush
	for name, err := range map[string]error{
		"ring": ring, "bush": bush, "a mark before a ring": errors.Join(breaker.Mark(errDown, breaker.Permanent), ring),
	} {
		t.Run(name, func(t *testing.T) {
			c := count{answer: breaker.Throttled}
			d := drive(t, breaker.Settings{Classify: c.classify})
			d.permit().Done(t.Context(), err)
			assert.Equal(t, breaker.Throttled, d.onlyOutcome())
			assert.Equal(t, 1, c.asked)
		})
	}
}

// hostileErrors have one method each that does not return.
func hostileErrors(act func()) map[string]error {
	return map[string]error{
		"Unwrap": &proxy{error: errDown, unwrap: func() error { act(); return nil }},
		"Is":     &proxy{error: errDown, is: func(error) bool { act(); return false }},
		"As":     &proxy{error: errDown, as: func(any) bool { act(); return false }},
	}
}

// A method of an error that panicked took the call's result with it.
func TestRegression_ErrorWhoseMethodsPanic(t *testing.T) {
	for method, err := range hostileErrors(func() { panic("no idea") }) {
		for name, use := range everyCall {
			t.Run(method+" "+name, func(t *testing.T) {
				var heard faults
				d := drive(t, breaker.Settings{OnCallbackError: heard.hear, Classify: (&count{answer: breaker.Ignored}).classify})
				assert.Same(t, err, use(d, live, err))
				assert.Equal(t, transient, d.onlyOutcome())
				fault := heard.requireOne(t)
				assert.Equal(t, "Error", fault.Callback)
				assert.Equal(t, "no idea", fault.Panic)
			})
		}
	}
}

// One that ends the goroutine does that, as it would without a breaker; the slot comes back.
func TestErrorWhoseMethodsExit(t *testing.T) {
	for method, err := range hostileErrors(runtime.Goexit) {
		t.Run(method, func(t *testing.T) {
			var heard faults
			d := drive(t, breaker.Settings{OnCallbackError: heard.hear})
			d.halfOpenOn(func() {
				_ = d.Execute(t.Context(), func(context.Context) error { return err })
				t.Error("the goroutine has ended")
			})
			assert.Equal(t, uint64(1), d.Snapshot().Totals.Ignored)
			assert.Equal(t, "Error", heard.requireOne(t).Callback)
			assert.True(t, d.permit().IsProbe(), "the slot has come back")
		})
	}
}

// panicking is a context that cannot be asked.
type panicking struct{ context.Context }

func (panicking) Err() error { panic("no idea") }

// A context that panicked when it was asked after the call did as much.
func TestRegression_ContextThatPanicsAfterTheCall(t *testing.T) {
	for name, use := range everyCall {
		t.Run(name, func(t *testing.T) {
			var heard faults
			d := drive(t, breaker.Settings{OnCallbackError: heard.hear})
			becomes := func(t *testing.T) context.Context { return panicking{t.Context()} }
			require.Equal(t, errDown, use(d, becomes, errDown))
			assert.Equal(t, transient, d.onlyOutcome())
			assert.Equal(t, "Context", heard.requireOne(t).Callback)
		})
	}
}
