package breaker_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
)

func TestNilAndZeroPermitsAreInert(t *testing.T) {
	for name, p := range map[string]*breaker.Permit{"nil": nil, "zero": new(breaker.Permit)} {
		t.Run(name, func(t *testing.T) {
			for _, e := range everyEnding {
				assert.False(t, e.end(t, p), e.name)
			}
			assert.False(t, p.IsProbe())
		})
	}
}

// The first report ends a permit, whichever it is; each of the others does nothing after it.
func TestOnlyTheFirstEndingCounts(t *testing.T) {
	for _, first := range everyEnding {
		for _, second := range everyEnding {
			d := drive(t, breaker.Settings{})
			p := d.permit()
			counted := first.end(t, p)
			assert.Equal(t, first.name != release.name, counted, "%s", first.name)
			want := d.Snapshot()
			assert.False(t, second.end(t, p), "%s after %s", second.name, first.name)
			assert.Equal(t, want, d.Snapshot(), "%s after %s", second.name, first.name)
		}
	}
}

func TestEndingsAreWhatTheySay(t *testing.T) {
	for _, test := range []struct {
		ending
		want breaker.Outcome
	}{
		{doneWell, success}, {doneBadly, transient}, {slowly, success}, {release, breaker.Ignored},
		{record(success), success}, {record(transient), transient}, {record(breaker.Throttled), breaker.Throttled},
		{record(breaker.Permanent), breaker.Permanent}, {record(breaker.Ignored), breaker.Ignored},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := drive(t, breaker.Settings{})
			test.end(t, d.permit())
			assert.Equal(t, test.want, d.onlyOutcome())
		})
	}
}

// The deferred Release of the usual idiom must neither undo a report nor keep a slot.
func TestDeferredReleaseIsAlwaysSafe(t *testing.T) {
	d := drive(t, breaker.Settings{})
	d.halfOpen().Release()
	call := func(report bool) {
		p := d.permit()
		defer p.Release()
		if report {
			p.Done(t.Context(), nil)
		}
	}
	call(false)
	assert.Equal(t, 0, d.Snapshot().ProbeSuccesses)
	call(true)
	assert.Equal(t, 1, d.Snapshot().ProbeSuccesses)
	assert.Zero(t, d.Snapshot().ProbesInFlight)
}

// A permit may be ended from several goroutines: one of them is the first.
func TestPermitEndsOnceUnderContention(t *testing.T) {
	d := drive(t, breaker.Settings{})
	for range 20 {
		p := d.permit()
		before := d.Snapshot().Totals
		var counted atomic.Int32
		var all sync.WaitGroup
		for i := range 16 {
			all.Go(func() {
				if everyEnding[i%3].end(t, p) {
					counted.Add(1)
				}
			})
		}
		all.Wait()
		assert.Equal(t, int32(1), counted.Load())
		after := d.Snapshot().Totals
		assert.Equal(t, before.Successes+before.Transient+1, after.Successes+after.Transient)
		d.Reset()
	}
}

func TestIsProbe(t *testing.T) {
	d := drive(t, ramped)
	p := d.permit()
	assert.False(t, p.IsProbe())
	probe := d.halfOpen()
	probe.Record(success)
	assert.True(t, probe.IsProbe(), "also once it has ended")
	d.report(success)
	d.clock.Add(9 * time.Second)
	d.refused()
	assert.False(t, d.permit().IsProbe(), "a ramp call is none")
}

// A classifier that panics or exits inside Done is the caller's; the slot of the probe comes back all the same.
func TestDoneWithAClassifierThatDoesNotReturn(t *testing.T) {
	for _, test := range []struct {
		name     string
		classify func(error) breaker.Outcome
		want     breaker.State
	}{
		{"panic", func(error) breaker.Outcome { panic("no idea") }, breaker.Open},
		{"Goexit", func(error) breaker.Outcome { runtime.Goexit(); return transient }, breaker.HalfOpen},
	} {
		t.Run(test.name, func(t *testing.T) {
			var heard faults
			d := drive(t, breaker.Settings{Classify: test.classify, OnCallbackError: heard.hear})
			probe := d.halfOpen()
			onGoroutine(func() { probe.Done(t.Context(), errDown) })
			d.requireState(test.want)
			assert.Zero(t, d.Snapshot().ProbesInFlight)
			heard.requireOne(t)
			assert.False(t, probe.Record(success), "it has ended")
		})
	}
}

// Latency runs from the moment the permit is handed out until fn has returned or the report has come in.
func TestLatencyIsMeasured(t *testing.T) {
	const took = 3 * time.Second
	for name, call := range map[string]func(d *driven){
		"Breaker.Execute": func(d *driven) {
			_ = d.Execute(d.t.Context(), func(context.Context) error { d.clock.Add(took); return nil })
		},
		"Breaker.Execute, failing": func(d *driven) {
			_ = d.Execute(d.t.Context(), func(context.Context) error { d.clock.Add(took); return errDown })
		},
		"Execute": func(d *driven) {
			_, _ = breaker.Execute(d.t.Context(), d.Breaker, func(context.Context) (int, error) { d.clock.Add(took); return 0, nil })
		},
		"a panic": func(d *driven) {
			defer func() { _ = recover() }()
			_ = d.Execute(d.t.Context(), func(context.Context) error { d.clock.Add(took); panic("call") })
		},
		"Done":          func(d *driven) { p := d.permit(); d.clock.Add(took); p.Done(d.t.Context(), nil) },
		"Record":        func(d *driven) { p := d.permit(); d.clock.Add(took); p.Record(success) },
		"RecordLatency": func(d *driven) { p := d.permit(); d.clock.Add(time.Hour); p.RecordLatency(success, took) },
	} {
		t.Run(name, func(t *testing.T) {
			atLimit := drive(t, breaker.Settings{SlowCallThreshold: took})
			atLimit.clock.Add(time.Hour) // so that neither end of the call is at zero
			call(atLimit)
			assert.Zero(t, atLimit.Snapshot().Totals.Slow, "not longer than it took")
			beyond := drive(t, breaker.Settings{SlowCallThreshold: took - 1})
			beyond.clock.Add(time.Hour)
			call(beyond)
			assert.Equal(t, uint64(1), beyond.Snapshot().Totals.Slow)
		})
	}
}

// What Execute measures is what becomes normal, from the first sample on.
func TestLatencyOfExecuteIsTheBaseline(t *testing.T) {
	d := drive(t, breaker.Settings{})
	d.clock.Add(time.Hour)
	for range 20 {
		require.NoError(t, d.Execute(t.Context(), func(context.Context) error { d.clock.Add(10 * time.Millisecond); return nil }))
	}
	normal, ok := d.NormalLatency()
	assert.True(t, ok)
	assert.Equal(t, 10240*time.Microsecond, normal)
}

// Neither the classification nor the delivery of an event is the dependency's latency. But the break is served from when it
// was decided, which is after the classifier has taken its time.
func TestLatencyEndsBeforeClassification(t *testing.T) {
	var d *driven
	d = drive(t, breaker.Settings{
		SlowCallThreshold: time.Second, ConsecutiveFailures: 1,
		Classify: func(error) breaker.Outcome { d.clock.Add(time.Hour); return transient },
	})
	_ = d.Execute(t.Context(), func(context.Context) error { return errDown })
	assert.Zero(t, d.Snapshot().Totals.Slow)
	d.requireRetryAfter(firstBreak)
	assert.Equal(t, d.clock.Now(), d.last().At)
}

// The same for the classifier of one call.
func TestLatencyEndsBeforeClassificationOfACall(t *testing.T) {
	d := drive(t, breaker.Settings{SlowCallThreshold: time.Second, ConsecutiveFailures: 1})
	answer := func(context.Context) (int, error) { return 503, nil }
	_, _ = breaker.ExecuteClassified(t.Context(), d.Breaker, answer, func(int, error) breaker.Outcome {
		d.clock.Add(time.Hour)
		return transient
	})
	assert.Zero(t, d.Snapshot().Totals.Slow)
	d.requireRetryAfter(firstBreak)
	assert.Equal(t, d.clock.Now(), d.last().At)
}

// The probe's latency begins when it is handed out, after the event that its own admission delivered.
func TestLatencyBeginsAfterTheEventOfTheAdmission(t *testing.T) {
	c := drive(t, breaker.Settings{}).clock
	b := breaker.MustNewClassic(breaker.Settings{
		Clock: c, SlowCallThreshold: time.Second, BreakJitter: breaker.JitterNone, ConsecutiveFailures: 1,
		OnStateChange: func(_ context.Context, change breaker.StateChange) {
			if change.To == breaker.HalfOpen {
				c.Add(time.Minute)
			}
		},
	})
	p, err := b.TryAcquire(t.Context())
	require.NoError(t, err)
	p.Record(transient)
	c.Add(firstBreak)
	require.NoError(t, b.Execute(t.Context(), func(context.Context) error { return nil }))
	assert.Equal(t, breaker.HalfOpen, b.State(), "one of two probes has succeeded, and was not slow")
}
