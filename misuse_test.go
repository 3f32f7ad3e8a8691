package breaker_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
)

// panicOf returns the text of the panic in f.
func panicOf(f func()) (text string) {
	defer func() { text, _ = recover().(string) }()
	f()
	return "no panic"
}

// uses are all ways to use a breaker that need it and a context.
func uses(b *breaker.Breaker, ctx context.Context) map[string]func() {
	run := func(context.Context) error { return nil }
	get := func(context.Context) (int, error) { return 0, nil }
	return map[string]func(){
		"Breaker.Execute":   func() { _ = b.Execute(ctx, run) },
		"Execute":           func() { _, _ = breaker.Execute(ctx, b, get) },
		"ExecuteClassified": func() { _, _ = breaker.ExecuteClassified(ctx, b, get, nil) },
		"Acquire":           func() { _, _ = b.Acquire(ctx) },
		"TryAcquire":        func() { _, _ = b.TryAcquire(ctx) },
		"IsolateContext":    func() { _ = b.IsolateContext(ctx) },
		"ResetContext":      func() { _ = b.ResetContext(ctx) },
	}
}

// readers are all ways to use a breaker that need nothing else.
func readers(b *breaker.Breaker) map[string]func() {
	return map[string]func(){
		"Name":              func() { b.Name() },
		"Settings":          func() { b.Settings() },
		"State":             func() { b.State() },
		"OpenedAt":          func() { b.OpenedAt() },
		"RetryAfter":        func() { b.RetryAfter() },
		"NormalLatency":     func() { b.NormalLatency() },
		"NormalFailureRate": func() { b.NormalFailureRate() },
		"Snapshot":          func() { b.Snapshot() },
		"Isolate":           func() { b.Isolate() },
		"Reset":             func() { b.Reset() },
	}
}

func requirePanics(t *testing.T, calls map[string]func(), want string) {
	t.Helper()
	for name, call := range calls {
		assert.Contains(t, panicOf(call), want, name)
	}
}

func TestMisuseIsNamed(t *testing.T) {
	var none context.Context
	assert.Contains(t, panicOf(func() { breaker.IsProbe(none) }), "nil context")
	requirePanics(t, uses(nil, t.Context()), "nil *Breaker")
	requirePanics(t, readers(nil), "nil *Breaker")

	zero := new(breaker.Breaker)
	requirePanics(t, uses(zero, t.Context()), "breaker.New")
	requirePanics(t, readers(zero), "breaker.New")

	b := breaker.MustNew(breaker.Settings{})
	requirePanics(t, uses(b, nil), "nil context")
	requirePanics(t, map[string]func(){
		"Breaker.Execute":   func() { _ = b.Execute(t.Context(), nil) },
		"Execute":           func() { _, _ = breaker.Execute[int](t.Context(), b, nil) },
		"ExecuteClassified": func() { _, _ = breaker.ExecuteClassified[int](t.Context(), b, nil, nil) },
	}, "nil function")
	permit, err := b.TryAcquire(t.Context())
	require.NoError(t, err)
	//lint:ignore SA1012 the nil context is the mistake under test
	requirePanics(t, map[string]func(){"Done": func() { permit.Done(nil, nil) }}, "nil context")
	assert.True(t, permit.Record(breaker.Success), "the mistake has not ended the permit")
}

func TestMisuseTouchesNothing(t *testing.T) {
	d := drive(t, breaker.Settings{})
	probe := d.halfOpen()
	probe.Release()
	before := d.Snapshot()
	requirePanics(t, uses(d.Breaker, nil), "nil context")
	assert.Equal(t, before, d.Snapshot())
}

// A context that is done already returns its error and touches nothing: no probe is used up, no refusal is counted.
func TestDoneContextTouchesNothing(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	expired, cancel := context.WithTimeout(t.Context(), -1)
	defer cancel()
	for _, state := range everyState {
		t.Run(state.String(), func(t *testing.T) {
			d := drive(t, ramped)
			d.enter(state)
			before := d.Snapshot()
			for ctx, want := range map[context.Context]error{cancelled: context.Canceled, expired: context.DeadlineExceeded} {
				ran := false
				err := d.Execute(ctx, func(context.Context) error { ran = true; return nil })
				assert.Equal(t, want, err)
				assert.False(t, ran)
				_, err = breaker.Execute(ctx, d.Breaker, func(context.Context) (int, error) { ran = true; return 0, nil })
				assert.Equal(t, want, err)
				assert.False(t, ran)
				_, err = d.TryAcquire(ctx)
				assert.Equal(t, want, err)
				_, err = d.Acquire(ctx)
				assert.Equal(t, want, err)
			}
			assert.Equal(t, before, d.Snapshot())
		})
	}
}

func TestNewOfInvalidSettings(t *testing.T) {
	invalid := breaker.Settings{MinCalls: -1}
	b, err := breaker.New(invalid)
	assert.Nil(t, b)
	var problems *breaker.SettingsError
	require.ErrorAs(t, err, &problems)
	defer func() {
		thrown, ok := recover().(error)
		require.True(t, ok)
		assert.True(t, errors.As(thrown, &problems), "it panics with the SettingsError")
	}()
	breaker.MustNew(invalid)
}

// New copies the settings: what the caller does with them later is nothing to the breaker.
func TestNewCopiesTheSettings(t *testing.T) {
	s := breaker.Settings{Name: "orders"}
	b := breaker.MustNew(s)
	s.Name = "other"
	assert.Equal(t, "orders", b.Name())
	assert.Equal(t, breaker.Settings{Name: "other"}, s, "nor does New write to them")
}

// A zero breaker asked with a context that had ended gave the context's error, so the mistake stayed hidden until some call came
// with time left.
func TestRegression_ZeroBreakerPanicsAlsoWhereTheContextHasEnded(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	var zero breaker.Breaker
	requirePanics(t, map[string]func(){
		"TryAcquire": func() { _, _ = zero.TryAcquire(ended) },
		"Execute":    func() { _ = zero.Execute(ended, func(context.Context) error { return nil }) },
	}, "zero Breaker")
}
