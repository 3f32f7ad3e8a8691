package breaker

import (
	"bytes"
	"context"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// explode is a callback that panics. It has a name to look for in the stack.
func explode(context.Context, StateChange) { panic("boom") }

func exit(context.Context, StateChange) { runtime.Goexit() }

func TestObserve_FailingCallback(t *testing.T) {
	for _, test := range []struct {
		name       string
		fail       func(context.Context, StateChange)
		panicValue any
		err        error
		message    string
	}{
		{"panic", explode, "boom", nil, " panicked: boom"},
		{"Goexit", exit, nil, errGoexit, ": called runtime.Goexit"},
	} {
		for _, where := range []string{"OnStateChange", "Subscribe"} {
			t.Run(where+" "+test.name, func(t *testing.T) {
				heard, faults, m := new(watchLog), new(faultLog), new(Monitor)
				s := brittle(clock.NewMock())
				s.Monitor, s.OnCallbackError = m, faults.add
				if where == "OnStateChange" {
					s.OnStateChange = test.fail
				} else {
					m.Subscribe(test.fail)
				}
				m.Subscribe(heard.add)
				b := MustNewClassic(s)
				trip(t, b) // requires that the caller's error is what comes back

				assert.Equal(t, Open, b.State(), "the state stands")
				assert.Equal(t, []State{Open}, heard.states(), "later observers still hear of it")
				require.Len(t, faults.all(), 1)
				fault := faults.all()[0]
				assert.Equal(t, "db", fault.Name)
				assert.Equal(t, where, fault.Callback)
				assert.Equal(t, test.panicValue, fault.Panic)
				assert.Equal(t, test.err, fault.Unwrap())
				assert.Equal(t, `breaker: "db": `+where+test.message, fault.Error())
				if test.panicValue != nil {
					assert.Contains(t, string(fault.Stack), "breaker.explode")
				}

				b.Isolate()
				assert.Equal(t, []State{Open, Isolated}, heard.states(), "delivery goes on")
			})
		}
	}
}

func TestObserve_FailingCallbackLeavesThePanicOfTheCall(t *testing.T) {
	heard, m := new(watchLog), new(Monitor)
	s := brittle(clock.NewMock())
	s.Monitor, s.OnStateChange, s.OnCallbackError = m, explode, new(faultLog).add
	m.Subscribe(heard.add)
	b := MustNewClassic(s)
	assert.PanicsWithValue(t, "the caller's own", func() {
		_ = b.Execute(t.Context(), func(context.Context) error { panic("the caller's own") })
	})
	assert.Equal(t, []State{Open}, heard.states())
}

func TestObserve_FailingCallbackOfTheProbe(t *testing.T) {
	mock := clock.NewMock()
	s := brittle(mock)
	s.OnStateChange, s.OnCallbackError = exit, new(faultLog).add
	b := MustNewClassic(s)
	trip(t, b)
	mock.Add(10 * time.Second)
	p, err := b.TryAcquire(t.Context())
	require.NoError(t, err, "the admission itself told of the half-open state")
	assert.True(t, p.IsProbe())
	assert.True(t, p.Done(t.Context(), nil))
	assert.Equal(t, Closed, b.State())
}

func TestObserve_FaultOfOnCallbackErrorIsSwallowed(t *testing.T) {
	for name, fail := range map[string]func(){
		"panic":  func() { panic("worse") },
		"Goexit": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			heard, m, asked := new(watchLog), new(Monitor), 0
			s := brittle(clock.NewMock())
			s.Monitor, s.OnStateChange = m, explode
			s.OnCallbackError = func(context.Context, *CallbackError) {
				asked++
				fail()
			}
			m.Subscribe(heard.add)
			b := MustNewClassic(s)
			trip(t, b)
			assert.Equal(t, 1, asked)
			assert.Equal(t, []State{Open}, heard.states())
		})
	}
}

func TestObserve_OnCallbackErrorMayCallAnything(t *testing.T) {
	var b *Breaker
	heard, m := new(watchLog), new(Monitor)
	s := brittle(clock.NewMock())
	s.Monitor = m
	s.OnStateChange = func(_ context.Context, c StateChange) {
		if c.To == Open {
			panic("boom")
		}
	}
	s.OnCallbackError = func(ctx context.Context, _ *CallbackError) { assert.NoError(t, b.ResetContext(ctx)) }
	m.Subscribe(heard.add)
	b = MustNewClassic(s)
	trip(t, b)
	assert.Equal(t, []State{Open, Closed}, heard.states())
}

func TestObserve_FaultsGoToSlogByDefault(t *testing.T) {
	var out bytes.Buffer
	old := slog.Default()
	defer slog.SetDefault(old)
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	s := brittle(clock.NewMock())
	s.OnStateChange = explode
	trip(t, MustNewClassic(s))
	assert.Contains(t, out.String(), "level=ERROR")
	assert.Contains(t, out.String(), "OnStateChange panicked: boom")
	assert.Contains(t, out.String(), "breaker.explode")
}

func TestObserve_FaultHasTheContextOfTheChange(t *testing.T) {
	type key struct{}
	var got any
	var ended error
	s := brittle(clock.NewMock())
	s.OnStateChange = explode
	s.OnCallbackError = func(ctx context.Context, _ *CallbackError) { got, ended = ctx.Value(key{}), ctx.Err() }
	b := MustNewClassic(s)
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "request 7"))
	cancel()
	require.NoError(t, b.IsolateContext(ctx))
	assert.Equal(t, "request 7", got)
	assert.NoError(t, ended)
}
