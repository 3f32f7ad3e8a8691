package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
)

func TestMark(t *testing.T) {
	assert.NoError(t, breaker.Mark(nil, transient), "nil stays nil")

	path := &fs.PathError{Op: "open", Path: "orders", Err: fs.ErrNotExist}
	marked := breaker.Mark(path, breaker.Permanent)
	assert.Equal(t, path.Error(), marked.Error())
	assert.ErrorIs(t, marked, fs.ErrNotExist)
	var found *fs.PathError
	require.ErrorAs(t, marked, &found)
	assert.Same(t, path, found)
}

// count is a classifier that counts how often it is asked.
type count struct {
	answer breaker.Outcome
	asked  int
}

func (c *count) classify(error) breaker.Outcome { c.asked++; return c.answer }

// The rules of section 4, in their order: each row is an error that the rules further down would have read otherwise.
func TestClassificationOrder(t *testing.T) {
	refusal := &breaker.RejectedError{Name: "inner"}
	for _, test := range []struct {
		name  string
		ctx   func(*testing.T) context.Context // while the call runs
		err   error
		want  breaker.Outcome
		asked int
	}{
		{"nil", live, nil, success, 0},
		{"nil, cancelled", cancelled, nil, success, 0},
		{"cancelled", cancelled, errDown, breaker.Ignored, 0},
		{"cancelled, marked", cancelled, breaker.Mark(errDown, transient), breaker.Ignored, 0},
		{"cancelled with a cause", cancelledWithCause, errDown, breaker.Ignored, 0},
		{"the deadline has passed", expired, context.DeadlineExceeded, breaker.Permanent, 1},
		{"an error that looks like a cancellation", live, context.Canceled, breaker.Permanent, 1},
		{"marked", live, breaker.Mark(errDown, breaker.Throttled), breaker.Throttled, 0},
		{"marked, wrapped", live, fmt.Errorf("orders: %w", breaker.Mark(errDown, breaker.Throttled)), breaker.Throttled, 0},
		{"marked, joined", live, errors.Join(errDown, breaker.Mark(errDown, breaker.Throttled)), breaker.Throttled, 1},
		{"marked twice", live, breaker.Mark(breaker.Mark(errDown, transient), breaker.Throttled), breaker.Throttled, 0},
		{"marked twice, wrapped between", live,
			breaker.Mark(fmt.Errorf("orders: %w", breaker.Mark(errDown, transient)), breaker.Throttled), breaker.Throttled, 0},
		{"marked as a success", live, breaker.Mark(errDown, success), success, 0},
		{"marked refusal", live, breaker.Mark(refusal, transient), transient, 0},
		{"a refusal of another breaker", live, refusal, breaker.Ignored, 0},
		{"such a refusal, wrapped", live, fmt.Errorf("orders: %w", refusal), breaker.Ignored, 0},
		{"any other error", live, errDown, breaker.Permanent, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			for name, use := range everyCall {
				c := count{answer: breaker.Permanent}
				d := drive(t, breaker.Settings{Classify: c.classify})
				assert.Equal(t, test.err, use(d, test.ctx, test.err), "%s: the error is returned as it is", name)
				assert.Equal(t, test.want, d.onlyOutcome(), name)
				assert.Equal(t, test.asked, c.asked, name)
			}
		})
	}
}

func live(t *testing.T) context.Context { return t.Context() }

func cancelled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func cancelledWithCause(t *testing.T) context.Context {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errDown)
	return ctx
}

func expired(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), -1)
	cancel()
	return ctx
}

// swapped is a context that is live until the call runs.
type swapped struct{ context.Context }

// everyCall makes a call that returns err, and whose context has become the given one by then.
var everyCall = map[string]func(d *driven, becomes func(*testing.T) context.Context, err error) error{
	"Breaker.Execute": func(d *driven, becomes func(*testing.T) context.Context, err error) error {
		ctx := &swapped{d.t.Context()}
		return d.Execute(ctx, func(context.Context) error { ctx.Context = becomes(d.t); return err })
	},
	"Execute": func(d *driven, becomes func(*testing.T) context.Context, err error) error {
		ctx := &swapped{d.t.Context()}
		n, err := breaker.Execute(ctx, d.Breaker, func(context.Context) (int, error) { ctx.Context = becomes(d.t); return 7, err })
		require.Equal(d.t, 7, n)
		return err
	},
	"Done": func(d *driven, becomes func(*testing.T) context.Context, err error) error {
		require.True(d.t, d.permit().Done(becomes(d.t), err))
		return err
	},
}

// onlyOutcome returns the outcome of the one call so far.
func (d *driven) onlyOutcome() breaker.Outcome {
	d.t.Helper()
	totals := d.Snapshot().Totals
	for o, n := range []uint64{totals.Successes, totals.Transient, totals.Throttled, totals.Permanent, totals.Ignored} {
		if n == 1 {
			require.Equal(d.t, uint64(1), totals.Successes+totals.Transient+totals.Throttled+totals.Permanent+totals.Ignored)
			return breaker.Outcome(o)
		}
	}
	require.Fail(d.t, "no outcome", "%+v", totals)
	return 0
}

func TestErrorsAreTransientWithoutAClassifier(t *testing.T) {
	for _, err := range []error{errDown, context.DeadlineExceeded, context.Canceled} {
		d := drive(t, breaker.Settings{})
		d.permit().Done(t.Context(), err)
		assert.Equal(t, transient, d.onlyOutcome(), "%v", err)
	}
}

// The classifier of a call stands in for that of the settings, sees the result, and is asked about nil errors too.
func TestExecuteClassified(t *testing.T) {
	for _, test := range []struct {
		name  string
		value int
		err   error
		want  breaker.Outcome
	}{
		{"a result that tells of a failure", 503, nil, transient},
		{"a result that is well", 200, nil, success},
		{"an error", 0, errDown, breaker.Throttled},
		{"a mark comes first", 503, breaker.Mark(errDown, breaker.Permanent), breaker.Permanent},
		{"so does a refusal", 503, breaker.ErrRejected, breaker.Ignored},
	} {
		t.Run(test.name, func(t *testing.T) {
			settings := count{}
			d := drive(t, breaker.Settings{Classify: settings.classify})
			n, err := breaker.ExecuteClassified(t.Context(), d.Breaker,
				func(context.Context) (int, error) { return test.value, test.err },
				func(n int, err error) breaker.Outcome {
					assert.Equal(t, test.value, n)
					assert.Equal(t, test.err, err)
					switch {
					case err != nil:
						return breaker.Throttled
					case n >= 500:
						return transient
					default:
						return success
					}
				})
			assert.Equal(t, test.value, n)
			assert.Equal(t, test.err, err)
			assert.Equal(t, test.want, d.onlyOutcome())
			assert.Zero(t, settings.asked)
		})
	}
}

// A nil error is what the classifier says, cancelled or not; a cancelled error is not asked about.
func TestExecuteClassifiedWhileCancelled(t *testing.T) {
	for err, want := range map[error]breaker.Outcome{nil: breaker.Throttled, errDown: breaker.Ignored} {
		d := drive(t, breaker.Settings{})
		ctx := &swapped{t.Context()}
		_, _ = breaker.ExecuteClassified(ctx, d.Breaker,
			func(context.Context) (int, error) { ctx.Context = cancelled(t); return 0, err },
			func(int, error) breaker.Outcome { return breaker.Throttled })
		assert.Equal(t, want, d.onlyOutcome())
	}
}

func TestExecuteClassifiedWithoutAClassifierIsExecute(t *testing.T) {
	c := count{answer: breaker.Permanent}
	d := drive(t, breaker.Settings{Classify: c.classify})
	n, err := breaker.ExecuteClassified(t.Context(), d.Breaker, func(context.Context) (int, error) { return 7, errDown }, nil)
	assert.Equal(t, 7, n)
	assert.Equal(t, errDown, err)
	assert.Equal(t, breaker.Permanent, d.onlyOutcome())
}
