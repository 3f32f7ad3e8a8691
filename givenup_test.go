package breaker_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
)

// everyExecute makes a call whose caller gives it up in the middle of it: act gets the means for that.
var everyExecute = map[string]func(d *driven, act func(ctx context.Context, giveUp func()) error) error{
	"Breaker.Execute": func(d *driven, act func(context.Context, func()) error) error {
		ctx, cancel := context.WithCancel(d.t.Context())
		return d.Execute(ctx, func(ctx context.Context) error { return act(ctx, cancel) })
	},
	"Execute": func(d *driven, act func(context.Context, func()) error) error {
		ctx, cancel := context.WithCancel(d.t.Context())
		_, err := breaker.Execute(ctx, d.Breaker, func(ctx context.Context) (int, error) { return 0, act(ctx, cancel) })
		return err
	},
	"ExecuteClassified": func(d *driven, act func(context.Context, func()) error) error {
		ctx, cancel := context.WithCancel(d.t.Context())
		_, err := breaker.ExecuteClassified(ctx, d.Breaker, func(ctx context.Context) (int, error) { return 0, act(ctx, cancel) },
			func(_ int, err error) breaker.Outcome {
				if err != nil {
					return transient
				}
				return success
			})
		return err
	},
}

// giveUpAfter is a call of which its caller has had enough after a time.
func (d *driven) giveUpAfter(after time.Duration) (err error) {
	return everyExecute["Breaker.Execute"](d, func(ctx context.Context, giveUp func()) error {
		d.clock.Add(after)
		giveUp()
		return ctx.Err()
	})
}

// A caller that has gone says nothing about the dependency, however its call ends. A panic was a failure all the same, and
// httputil.ReverseProxy panics for no other reason than that its client has gone: five impatient clients opened the circuit.
func TestRegression_CancelledCallThatPanicsIsIgnored(t *testing.T) {
	for name, execute := range everyExecute {
		t.Run(name, func(t *testing.T) {
			d := drive(t, breaker.Settings{ConsecutiveFailures: 1})
			for range 3 {
				assert.PanicsWithValue(t, http.ErrAbortHandler, func() {
					_ = execute(d, func(_ context.Context, giveUp func()) error { giveUp(); panic(http.ErrAbortHandler) })
				})
			}
			d.requireState(breaker.Closed)
			assert.Equal(t, breaker.Totals{Ignored: 3}, d.Snapshot().Totals)

			assert.Panics(t, func() {
				_ = execute(d, func(context.Context, func()) error { panic(http.ErrAbortHandler) })
			})
			assert.Equal(t, uint64(1), d.Snapshot().Totals.Transient, "with its caller still there it is a failure")
		})
	}
}

// Its slot comes back, and the circuit stays half-open.
func TestRegression_CancelledProbeThatPanicsGivesItsSlotBack(t *testing.T) {
	for name, execute := range everyExecute {
		t.Run(name, func(t *testing.T) {
			d := drive(t, breaker.Settings{})
			d.halfOpen().Release()
			assert.Panics(t, func() {
				_ = execute(d, func(_ context.Context, giveUp func()) error { giveUp(); panic("gone") })
			})
			d.requireState(breaker.HalfOpen)
			assert.True(t, d.permit().IsProbe())
		})
	}
}

// The same from end to end: a client goes away in the middle of a body, and the proxy panics in the breaker's function.
func TestRegression_ClientOfAReverseProxyThatGoesAway(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "the first of many bytes")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	defer backend.Close()
	target, err := url.Parse(backend.URL)
	require.NoError(t, err)
	d := drive(t, breaker.Settings{ConsecutiveFailures: 1})
	thrown := make(chan any, 1)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { thrown <- recover() }()
		_ = d.Execute(r.Context(), func(ctx context.Context) error {
			httputil.NewSingleHostReverseProxy(target).ServeHTTP(w, r.WithContext(ctx))
			return nil
		})
	}))
	defer front.Close()
	ctx, goAway := context.WithCancel(t.Context())
	defer goAway()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, front.URL, nil)
	require.NoError(t, err)
	answer, err := front.Client().Do(request)
	require.NoError(t, err)
	_, err = answer.Body.Read(make([]byte, 1))
	require.NoError(t, err)
	goAway()
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.ErrAbortHandler, <-thrown)
	assert.Equal(t, breaker.Ignored, d.onlyOutcome())
	d.requireState(breaker.Closed)
}

// hanging trips on slow calls alone: past a second, at half of four.
func hanging() breaker.Settings {
	return breaker.Settings{
		ConsecutiveFailures: breaker.Disabled, SlowCallThreshold: time.Second, MinCalls: 4, Failures: breaker.Failures{Off: true},
	}
}

// Callers that all gave up on a hanging dependency after 8 s left nothing behind, so it never opened, whatever the threshold. A
// call that was slow when it was given up is evidence of slowness.
func TestRegression_CallersThatGiveUpOnAHangOpenTheCircuit(t *testing.T) {
	for name, execute := range everyExecute {
		t.Run(name, func(t *testing.T) {
			d := drive(t, hanging())
			for i := range 4 {
				d.requireState(breaker.Closed)
				err := execute(d, func(ctx context.Context, giveUp func()) error {
					d.clock.Add(2 * time.Second)
					giveUp()
					return ctx.Err()
				})
				require.ErrorIs(t, err, context.Canceled)
				assert.Equal(t, uint64(i+1), d.Snapshot().Totals.Slow)
			}
			d.requireState(breaker.Open)
			assert.Equal(t, breaker.ReasonSlowCalls, d.last().Reason)
			assert.NoError(t, d.last().Err, "no failure has decided it")
			assert.Equal(t, breaker.Counts{Calls: 4, Slow: 4}, d.last().Counts)
			assert.Equal(t, uint64(4), d.Snapshot().Totals.Ignored)
		})
	}
}

// So does a permit that is done, and a call that panics when it is given up.
func TestRegression_WhateverEndsACallThatIsGivenUp(t *testing.T) {
	for name, call := range map[string]func(*driven){
		"Done": func(d *driven) {
			p := d.permit()
			d.clock.Add(2 * time.Second)
			p.Done(cancelled(d.t), errDown)
		},
		"panic": func(d *driven) {
			defer func() { _ = recover() }()
			_ = everyExecute["Execute"](d, func(_ context.Context, giveUp func()) error {
				d.clock.Add(2 * time.Second)
				giveUp()
				panic("gone")
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := drive(t, hanging())
			for range 4 {
				d.requireState(breaker.Closed)
				call(d)
			}
			d.requireState(breaker.Open)
			assert.Equal(t, breaker.Totals{Ignored: 4, Slow: 4, Opens: 1}, d.Snapshot().Totals)
		})
	}
}

// It is slow past the threshold, not at it, and proves no more than that: no failure, no end of a streak, nothing of what is normal.
func TestGivenUpCallIsSlowAndNothingElse(t *testing.T) {
	d := drive(t, breaker.Settings{SlowCallThreshold: time.Second})
	d.report(transient, transient)
	before := d.Snapshot()
	require.ErrorIs(t, d.giveUpAfter(time.Second), context.Canceled)
	before.Totals.Ignored++
	assert.Equal(t, before, d.Snapshot(), "it was not slow yet")

	require.ErrorIs(t, d.giveUpAfter(time.Second+1), context.Canceled)
	before.Totals.Ignored++
	before.Totals.Slow++
	before.Counts.Calls++
	before.Counts.Slow++
	assert.Equal(t, before, d.Snapshot())
	assert.Equal(t, 2, d.Snapshot().Counts.ConsecutiveFailures)

	for range 100 {
		_ = d.giveUpAfter(time.Millisecond)
	}
	before.Totals.Ignored += 100
	assert.Equal(t, before, d.Snapshot())
}

// The baselines learn nothing from it: a hang that everybody gives up would become what is normal.
func TestGivenUpCallsAreInNoBaseline(t *testing.T) {
	d := drive(t, breaker.Settings{MinCalls: 1000, Failures: breaker.Failures{MinSamples: 100}})
	for range 100 {
		d.permit().RecordLatency(success, 100*time.Millisecond)
	}
	d.report(transient)
	before := d.Snapshot()
	require.NotNil(t, before.NormalFailureRate)
	for range 200 {
		_ = d.giveUpAfter(400 * time.Millisecond)
	}
	after := d.Snapshot()
	assert.Equal(t, uint64(200), after.Totals.Slow)
	assert.Equal(t, before.NormalLatency, after.NormalLatency)
	assert.Equal(t, before.NormalFailureRate, after.NormalFailureRate)
}

// What is said to be ignored is taken at its word: it was not given up by the caller.
func TestIgnoredThatIsSaidStaysNeutral(t *testing.T) {
	for name, end := range map[string]func(*driven, *breaker.Permit){
		"Record":        func(_ *driven, p *breaker.Permit) { p.Record(breaker.Ignored) },
		"RecordLatency": func(_ *driven, p *breaker.Permit) { p.RecordLatency(breaker.Ignored, time.Hour) },
		"Release":       func(_ *driven, p *breaker.Permit) { p.Release() },
		"mark":          func(d *driven, p *breaker.Permit) { p.Done(d.t.Context(), breaker.Mark(errDown, breaker.Ignored)) },
		"unknown":       func(_ *driven, p *breaker.Permit) { p.Record(breaker.Ignored + 1) },
	} {
		t.Run(name, func(t *testing.T) {
			s := hanging()
			s.OnCallbackError = func(context.Context, *breaker.CallbackError) {}
			d := drive(t, s)
			for range 10 {
				p := d.permit()
				d.clock.Add(2 * time.Second)
				end(d, p)
			}
			d.requireState(breaker.Closed)
			assert.Equal(t, breaker.Totals{Ignored: 10}, d.Snapshot().Totals)
		})
	}
}

// A call in a ramp that is given up when it is slow holds the ramp back like any slow call, and does not re-open the circuit.
func TestGivenUpCallHoldsTheRampBack(t *testing.T) {
	s := ramped
	s.SlowCallThreshold = time.Second
	d := drive(t, s)
	d.recovering()
	d.clock.Add(5 * time.Second)
	for {
		p, err := d.TryAcquire(t.Context())
		if err == nil {
			d.clock.Add(2 * time.Second)
			p.Done(cancelled(t), errDown)
			break
		}
	}
	d.requireState(breaker.Recovering)
	assert.InDelta(t, 0.365, d.Snapshot().AdmittedFraction, 1e-9, "half of what the clock admits after 7 of 10 s")
}

// A cold dependency whose probes are all given up by their callers was half-open for ever. A probe that was slow by then has not
// proved that the dependency is back.
func TestRegression_SlowProbeThatIsGivenUpFails(t *testing.T) {
	for name, execute := range everyExecute {
		for _, recovery := range []breaker.Recovery{{}, {Fraction: 1}} {
			t.Run(name, func(t *testing.T) {
				d := drive(t, breaker.Settings{SlowCallThreshold: time.Second, Recovery: recovery})
				d.halfOpen().Release()
				wait := func(after time.Duration) {
					_ = execute(d, func(ctx context.Context, giveUp func()) error {
						assert.True(t, breaker.IsProbe(ctx))
						d.clock.Add(after)
						giveUp()
						return ctx.Err()
					})
				}
				wait(time.Second)
				d.requireState(breaker.HalfOpen)
				wait(time.Second + 1)
				d.requireState(breaker.Open)
				assert.Equal(t, breaker.ReasonProbeFailed, d.last().Reason)
				assert.Equal(t, 2*firstBreak, d.last().Break)
				assert.NoError(t, d.refused().Cause)
			})
		}
	}
}

// In a cohort it is one failure, judged with the others.
func TestSlowProbeOfACohortThatIsGivenUp(t *testing.T) {
	d := drive(t, breaker.Settings{SlowCallThreshold: time.Second, ProbeCohort: 4, FailureRatio: 0.5, SlowCallRatio: 1})
	d.halfOpen().Release()
	_ = d.giveUpAfter(2 * time.Second)
	d.requireState(breaker.HalfOpen)
	assert.Equal(t, breaker.Counts{Calls: 1, Failures: 1, Slow: 1, ConsecutiveFailures: 1}, d.Snapshot().Counts)
	_ = d.giveUpAfter(2 * time.Second)
	d.requireState(breaker.Open)
	assert.Equal(t, breaker.ReasonProbeFailed, d.last().Reason)
}

// What was given up somewhere further in, before it was admitted, never reached the dependency: however long its caller waited for
// another breaker, this one has learned nothing. It was a slow call of the outer one at first.
func TestRegression_GivenUpWaitForAnotherBreakerIsNoSlowCall(t *testing.T) {
	inner := map[string]error{
		"wait":    &breaker.WaitError{Name: "inner", State: breaker.Open, Waited: time.Minute, Err: context.Canceled},
		"refusal": &breaker.RejectedError{Name: "inner"},
	}
	for name, answer := range inner {
		t.Run(name, func(t *testing.T) {
			d := drive(t, hanging())
			for range 10 {
				_ = everyExecute["Breaker.Execute"](d, func(_ context.Context, giveUp func()) error {
					d.clock.Add(2 * time.Second)
					giveUp()
					return answer
				})
			}
			d.requireState(breaker.Closed)
			assert.Equal(t, breaker.Totals{Ignored: 10}, d.Snapshot().Totals)
		})
	}
}

// The function of a call is told whether it is a probe, and no other is: not while closed, not in a ramp.
func TestRegression_ProbeCanTellThatItIsOne(t *testing.T) {
	for name, execute := range everyExecute {
		t.Run(name, func(t *testing.T) {
			d := drive(t, ramped)
			probes := func() (is bool) {
				require.NoError(t, execute(d, func(ctx context.Context, _ func()) error { is = breaker.IsProbe(ctx); return nil }))
				return is
			}
			assert.False(t, probes(), "closed")
			d.trip()
			d.clock.Add(firstBreak)
			assert.True(t, probes())
			assert.True(t, probes())
			d.requireState(breaker.Recovering)
			d.clock.Add(9 * time.Second)
			d.offer(1, 0)
			assert.False(t, probes(), "recovering")
			assert.False(t, breaker.IsProbe(t.Context()))
		})
	}
}
