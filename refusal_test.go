package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
)

// tripOn opens a closed circuit with failures of which the last one is err.
func (d *driven) tripOn(err error) {
	d.t.Helper()
	for range 5 {
		require.True(d.t, d.permit().Done(d.t.Context(), err))
	}
	d.requireState(breaker.Open)
}

func TestRefusalInEveryState(t *testing.T) {
	for _, test := range []struct {
		state   breaker.State
		reason  breaker.Reason
		cause   error
		message string
	}{
		{breaker.Open, breaker.ReasonConsecutiveFailures, errDown, `breaker: "orders" is open, retry after 15 s`},
		{breaker.HalfOpen, breaker.ReasonConsecutiveFailures, errDown, `breaker: "orders" is half-open`},
		{breaker.Recovering, breaker.ReasonConsecutiveFailures, errDown, `breaker: "orders" is recovering`},
		{breaker.Isolated, breaker.ReasonIsolated, nil, `breaker: "orders" is isolated`},
	} {
		t.Run(test.state.String(), func(t *testing.T) {
			settings := ramped
			settings.Name = "orders"
			d := drive(t, settings)
			d.refuseIn(test.state)
			rejected := d.refused()
			assert.Equal(t, "orders", rejected.Name)
			assert.Equal(t, test.state, rejected.State)
			assert.Equal(t, test.reason, rejected.Reason)
			assert.Equal(t, test.cause, rejected.Cause)
			assert.Equal(t, test.message, rejected.Error())
			assert.ErrorIs(t, rejected, breaker.ErrRejected)
			assert.NotErrorIs(t, rejected, errDown, "a refusal is about the breaker")
			_, ok := rejected.RetryAfter()
			assert.Equal(t, test.state == breaker.Open, ok)
			assert.Same(t, rejected, d.refused(), "one error for each open period and state")
		})
	}
}

// refuseIn leads a fresh breaker with a ramp to a state, on errDown, such that the next call is refused.
func (d *driven) refuseIn(s breaker.State) {
	d.t.Helper()
	if s == breaker.Isolated {
		d.Isolate()
		return
	}
	d.tripOn(errDown)
	if s == breaker.Open {
		return
	}
	d.clock.Add(firstBreak)
	probe := d.permit()
	if s == breaker.Recovering {
		probe.Record(success)
		d.report(success)
	}
	d.requireState(s)
}

func TestRefusalsOfExecute(t *testing.T) {
	d := drive(t, breaker.Settings{})
	d.trip()
	ran := false
	run := func(context.Context) (int, error) { ran = true; return 7, nil }
	err := d.Execute(t.Context(), func(context.Context) error { ran = true; return nil })
	assert.ErrorIs(t, err, breaker.ErrRejected)
	n, err := breaker.Execute(t.Context(), d.Breaker, run)
	assert.ErrorIs(t, err, breaker.ErrRejected)
	assert.Zero(t, n)
	n, err = breaker.ExecuteClassified(t.Context(), d.Breaker, run, func(int, error) breaker.Outcome { return success })
	assert.ErrorIs(t, err, breaker.ErrRejected)
	assert.Zero(t, n)
	assert.False(t, ran)
	p, err := d.TryAcquire(t.Context())
	assert.ErrorIs(t, err, breaker.ErrRejected)
	assert.Nil(t, p)
	assert.Equal(t, uint64(4), d.Snapshot().Totals.Rejected)
}

// RetryAfter is worked out when it is asked, also long after the refusal was returned.
func TestRefusalRetryAfter(t *testing.T) {
	d := drive(t, breaker.Settings{})
	d.trip()
	rejected := d.refused()
	for _, step := range []struct {
		wait, want time.Duration
		message    string
	}{
		{0, 15 * time.Second, "retry after 15 s"},
		{1, 15*time.Second - 1, "retry after 15 s"},
		{14*time.Second - 1, time.Second, "retry after 1 s"},
		{time.Second - 1, 1, "retry after 1 s"},
	} {
		d.clock.Add(step.wait)
		wait, ok := rejected.RetryAfter()
		assert.True(t, ok)
		assert.Equal(t, step.want, wait)
		assert.Contains(t, rejected.Error(), step.message)
	}
	d.clock.Add(1)
	requireNoRetryAfter(t, rejected)
	d.report(transient)
	d.requireState(breaker.Open)
	requireNoRetryAfter(t, rejected)
	again := d.refused()
	assert.NotSame(t, rejected, again, "another open period has its own refusals")
	wait, ok := again.RetryAfter()
	assert.True(t, ok)
	assert.Equal(t, 2*firstBreak, wait)
}

func requireNoRetryAfter(t *testing.T, rejected *breaker.RejectedError) {
	t.Helper()
	wait, ok := rejected.RetryAfter()
	require.False(t, ok)
	require.Zero(t, wait)
	require.Equal(t, `breaker: "" is open`, rejected.Error())
}

func TestRefusalRetryAfterIsOverAfterReset(t *testing.T) {
	for name, control := range map[string]func(*driven){
		"reset":   func(d *driven) { d.Reset() },
		"isolate": func(d *driven) { d.Isolate() },
	} {
		t.Run(name, func(t *testing.T) {
			d := drive(t, breaker.Settings{})
			d.trip()
			rejected := d.refused()
			control(d)
			requireNoRetryAfter(t, rejected)
		})
	}
}

// One caller's data must not show up in another's error.
func TestRefusalKeepsTheCauseToItself(t *testing.T) {
	d := drive(t, breaker.Settings{})
	d.tripOn(errors.New("no such card: 4111 1111 1111 1111"))
	rejected := d.refused()
	require.ErrorContains(t, rejected.Cause, "4111")
	assert.NotContains(t, rejected.Error(), "4111")
	assert.NotContains(t, fmt.Sprintf("%v %s %q", rejected, rejected, rejected), "4111")
	require.NoError(t, errors.Unwrap(rejected))
}

// Without an error there is none to keep: an outcome that was recorded directly, a slow success, a lost probe.
func TestRefusalWithoutACause(t *testing.T) {
	d := drive(t, breaker.Settings{SlowCallThreshold: time.Second})
	d.trip()
	assert.NoError(t, d.refused().Cause)
	d.clock.Add(firstBreak)
	slow := d.permit()
	d.clock.Add(2 * time.Second)
	_ = slow.Done(t.Context(), breaker.Mark(errDown, success))
	assert.Equal(t, breaker.ReasonProbeSlow, d.last().Reason)
	assert.NoError(t, d.last().Err, "the call was no failure")
	assert.NoError(t, d.refused().Cause)
}

// largeError stands for an error that holds on to a response.
type largeError struct{ _ [1 << 10]byte }

func (*largeError) Error() string { return "large" }

func TestCauseIsDroppedWhenTheCircuitCloses(t *testing.T) {
	d := drive(t, breaker.Settings{})
	cause := func() weak.Pointer[largeError] {
		err := new(largeError)
		d.tripOn(err)
		require.Same(t, err, d.refused().Cause)
		return weak.Make(err)
	}()
	d.changes = nil
	runtime.GC()
	require.NotNil(t, cause.Value(), "it is kept while the circuit is open")
	d.Reset()
	runtime.GC()
	assert.Nil(t, cause.Value())
	runtime.KeepAlive(d) // or the cause would go with the breaker
}

func TestZeroRejectedError(t *testing.T) {
	var e breaker.RejectedError
	_, ok := e.RetryAfter()
	assert.False(t, ok)
	assert.Equal(t, `breaker: "" is closed`, e.Error())
	assert.ErrorIs(t, fmt.Errorf("orders: %w", &e), breaker.ErrRejected)
}
