package breaker_test

import (
	"context"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
)

// faults collects what OnCallbackError hears.
type faults []*breaker.CallbackError

func (f *faults) hear(_ context.Context, e *breaker.CallbackError) { *f = append(*f, e) }

// requireOne returns the only fault.
func (f *faults) requireOne(t *testing.T) *breaker.CallbackError {
	t.Helper()
	require.Len(t, *f, 1)
	return (*f)[0]
}

func TestUnknownOutcomeIsIgnoredAndReported(t *testing.T) {
	const unknown = breaker.Outcome(200)
	answer := func(error) breaker.Outcome { return unknown }
	for _, test := range []struct {
		callback string
		call     func(*driven)
	}{
		{"Classify", func(d *driven) { d.permit().Done(d.t.Context(), errDown) }},
		{"Mark", func(d *driven) { d.permit().Done(d.t.Context(), breaker.Mark(errDown, unknown)) }},
		{"Record", func(d *driven) { d.permit().Record(unknown) }},
		{"Record", func(d *driven) { d.permit().RecordLatency(unknown, time.Second) }},
		{"Classify", func(d *driven) {
			_, _ = breaker.ExecuteClassified(d.t.Context(), d.Breaker, func(context.Context) (int, error) { return 0, nil },
				func(int, error) breaker.Outcome { return unknown })
		}},
	} {
		t.Run(test.callback, func(t *testing.T) {
			var heard faults
			d := drive(t, breaker.Settings{Name: "orders", Classify: answer, OnCallbackError: heard.hear})
			test.call(d)
			assert.Equal(t, breaker.Ignored, d.onlyOutcome())
			fault := heard.requireOne(t)
			assert.Equal(t, "orders", fault.Name)
			assert.Equal(t, test.callback, fault.Callback)
			assert.Error(t, fault.Err)
			assert.Nil(t, fault.Panic)
		})
	}
}

// A classifier that panics is our caller's fault, yet its call has failed and its result must come through.
func TestPanickingClassifier(t *testing.T) {
	var heard faults
	d := drive(t, breaker.Settings{
		Name: "orders", OnCallbackError: heard.hear, Classify: func(error) breaker.Outcome { panic("no idea") },
	})
	err := d.Execute(t.Context(), func(context.Context) error { return errDown })
	assert.Equal(t, errDown, err)
	assert.Equal(t, transient, d.onlyOutcome())
	fault := heard.requireOne(t)
	assert.Equal(t, "Classify", fault.Callback)
	assert.Equal(t, "no idea", fault.Panic)
	assert.NoError(t, fault.Err)
	assert.Contains(t, string(fault.Stack), "TestPanickingClassifier")
	assert.Equal(t, `breaker: "orders": Classify panicked: no idea`, fault.Error())
}

func TestPanickingClassifierOfACall(t *testing.T) {
	var heard faults
	d := drive(t, breaker.Settings{OnCallbackError: heard.hear})
	n, err := breaker.ExecuteClassified(t.Context(), d.Breaker,
		func(context.Context) (int, error) { return 7, errDown },
		func(int, error) breaker.Outcome { panic("no idea") })
	assert.Equal(t, 7, n)
	assert.Equal(t, errDown, err)
	assert.Equal(t, transient, d.onlyOutcome())
	heard.requireOne(t)
}

// A classifier that panicked about a nil error made a failure of a call that had none.
func TestRegression_PanickingClassifierOfASuccess(t *testing.T) {
	var heard faults
	d := drive(t, breaker.Settings{ConsecutiveFailures: 1, OnCallbackError: heard.hear})
	n, err := breaker.ExecuteClassified(t.Context(), d.Breaker,
		func(context.Context) (int, error) { return 7, nil },
		func(int, error) breaker.Outcome { panic("no idea") })
	assert.Equal(t, 7, n)
	require.NoError(t, err)
	assert.Equal(t, breaker.Ignored, d.onlyOutcome())
	fault := heard.requireOne(t)
	assert.Equal(t, "Classify", fault.Callback)
	assert.Equal(t, "no idea", fault.Panic)
}

// A classifier that ends the goroutine leaves no failure behind either, whether there was an error or not.
func TestClassifierOfASuccessThatExits(t *testing.T) {
	var heard faults
	d := drive(t, breaker.Settings{ConsecutiveFailures: 1, OnCallbackError: heard.hear})
	onGoroutine(func() {
		_, _ = breaker.ExecuteClassified(t.Context(), d.Breaker,
			func(context.Context) (int, error) { return 7, nil },
			func(int, error) breaker.Outcome { runtime.Goexit(); return transient })
		t.Error("the goroutine has ended")
	})
	assert.Equal(t, breaker.Ignored, d.onlyOutcome())
	assert.Equal(t, "Classify", heard.requireOne(t).Callback)
}

// A classifier that ends its goroutine takes the caller with it, as it would without a breaker; the slot comes back.
func TestClassifierThatExits(t *testing.T) {
	var heard faults
	d := drive(t, breaker.Settings{
		OnCallbackError: heard.hear, Classify: func(error) breaker.Outcome { runtime.Goexit(); return transient },
	})
	d.halfOpenOn(func() {
		_ = d.Execute(t.Context(), func(context.Context) error { return errDown })
		t.Error("the goroutine has ended")
	})
	assert.Equal(t, uint64(1), d.Snapshot().Totals.Ignored)
	assert.Equal(t, "Classify", heard.requireOne(t).Callback)
	assert.True(t, d.permit().IsProbe(), "the slot has come back")
}

// halfOpenOn runs a call on a goroutine of its own, as the probe of a breaker whose break has just elapsed.
func (d *driven) halfOpenOn(call func()) {
	d.t.Helper()
	d.trip()
	d.clock.Add(firstBreak)
	onGoroutine(call)
}

// The place of the panic must still be in the trace, so nothing on the way up may recover and panic anew.
func TestPanicInACallGoesOnUnchanged(t *testing.T) {
	thrown := &struct{ text string }{"a value, not a copy of it"}
	for name, call := range map[string]func(*breaker.Breaker){
		"Breaker.Execute": func(b *breaker.Breaker) {
			_ = b.Execute(t.Context(), func(context.Context) error { throwFromHere(thrown); return nil })
		},
		"Execute": func(b *breaker.Breaker) {
			_, _ = breaker.Execute(t.Context(), b, func(context.Context) (int, error) { throwFromHere(thrown); return 0, nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := drive(t, breaker.Settings{})
			func() {
				defer func() {
					assert.Same(t, thrown, recover())
					assert.Contains(t, string(debug.Stack()), "throwFromHere")
				}()
				call(d.Breaker)
			}()
			assert.Equal(t, transient, d.onlyOutcome())
		})
	}
}

func throwFromHere(v any) { panic(v) }

// The value is the very same whatever was thrown, and the trace is whole through every way to execute, one inside the other.
func TestRegression_PanicKeepsItsValueAndTrace(t *testing.T) {
	for name, throw := range map[string]func(){
		"error":             func() { throwFromHere(errDown) },
		"nil":               func() { throwFromHere(nil) },
		"division by zero":  func() { t.Log(divideFromHere(1, 0)) },
		"nil dereference":   func() { (*driven)(nil).loadFromHere() },
		"in a deferred one": func() { defer throwFromHere("second"); panic("first") },
	} {
		t.Run(name, func(t *testing.T) {
			bare, trace := thrownBy(throw)
			require.Contains(t, trace, "FromHere")
			for _, breakers := range []int{1, 3} {
				d := drive(t, breaker.Settings{ConsecutiveFailures: 100})
				got, trace := thrownBy(func() { nest(d, breakers, throw) })
				assert.Equal(t, bare, got)
				assert.Contains(t, trace, "FromHere")
				assert.Equal(t, uint64(breakers), d.Snapshot().Totals.Transient)
			}
		})
	}
}

func divideFromHere(a, b int) int { return a / b }

func (d *driven) loadFromHere() any { return d.t }

// thrownBy returns what a function panics with, and the stack on which that is recovered.
func thrownBy(f func()) (thrown any, trace string) {
	defer func() { thrown, trace = recover(), string(debug.Stack()) }()
	f()
	return nil, ""
}

// nest runs a function in so many calls, each in the other and in its own way.
func nest(d *driven, calls int, f func()) {
	if calls == 0 {
		f()
		return
	}
	if calls%2 == 0 {
		_, _ = breaker.Execute(d.t.Context(), d.Breaker, func(context.Context) (int, error) { nest(d, calls-1, f); return 0, nil })
		return
	}
	_ = d.Execute(d.t.Context(), func(context.Context) error { nest(d, calls-1, f); return nil })
}

// A panic of a probe fails it, and so gives its slot back; Goexit ends it as Ignored. A peer leaks the slot for good.
func TestProbeThatDoesNotReturn(t *testing.T) {
	for _, test := range []struct {
		name string
		end  func()
		want breaker.State
	}{
		{"panic", func() { panic("probe") }, breaker.Open},
		{"nil dereference", func() { var p *driven; p.t.Log() }, breaker.Open},
		{"Goexit", runtime.Goexit, breaker.HalfOpen},
		{"Goexit in a deferred function of a panic", func() { defer runtime.Goexit(); panic("probe") }, breaker.HalfOpen},
		{"panic in a deferred function of a Goexit", func() { defer func() { panic("probe") }(); runtime.Goexit() }, breaker.Open},
		{"Goexit deep down", func() { descend(200) }, breaker.HalfOpen},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := drive(t, breaker.Settings{})
			d.halfOpenOn(func() {
				defer func() { _ = recover() }()
				_ = d.Execute(t.Context(), func(context.Context) error { test.end(); return nil })
			})
			d.requireState(test.want)
			assert.Zero(t, d.Snapshot().ProbesInFlight)
			if test.want == breaker.HalfOpen {
				assert.Equal(t, uint64(1), d.Snapshot().Totals.Ignored)
				assert.True(t, d.permit().IsProbe())
			}
		})
	}
}

// descend ends its goroutine below so many more frames.
func descend(frames int) {
	if frames == 0 {
		runtime.Goexit()
	}
	descend(frames - 1)
}

// A call that runs in a deferred function, because its goroutine panics or exits, is a call like any other.
func TestCallWhileItsGoroutineEnds(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic("outer") }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			d := drive(t, breaker.Settings{})
			onGoroutine(func() {
				defer func() {
					_ = recover()
					_ = d.Execute(t.Context(), func(context.Context) error { return nil })
				}()
				end()
			})
			assert.Equal(t, success, d.onlyOutcome())
		})
	}
}

func onGoroutine(f func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f()
	}()
	<-ended
}
