package breakerotel_test

import (
	"context"
	"fmt"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/brownout-go/breaker"
	"github.com/brownout-go/breaker/breakerotel"
)

// told returns the attributes of a span or an event by name.
func told(attributes []attribute.KeyValue) map[string]any {
	values := map[string]any{}
	for _, a := range attributes {
		values[string(a.Key)] = a.Value.AsInterface()
	}
	return values
}

func succeed(context.Context) (string, error) { return "done", nil }

func TestSpanOfACallThatIsAdmitted(t *testing.T) {
	tr := newTracer()
	b, _ := made(nil, "inventory")
	span := tr.spanOf(func(ctx context.Context) {
		value, err := breakerotel.Execute(ctx, b, succeed)
		assert.Equal(t, "done", value)
		assert.NoError(t, err)
	})
	assert.Equal(t, map[string]any{"breaker.name": "inventory", "breaker.state": "closed"}, told(span.Attributes()))
	assert.Empty(t, span.Events())
}

func TestSpanOfACallThatIsRefused(t *testing.T) {
	tr := newTracer()
	b, mock := made(nil, "inventory\n")
	call(b, errDown)
	mock.Add(250 * time.Millisecond)
	span := tr.spanOf(func(ctx context.Context) {
		_, err := breakerotel.Execute(ctx, b, succeed)
		assert.ErrorIs(t, err, breaker.ErrRejected)
	})
	assert.Equal(t, map[string]any{
		"breaker.refused": true, "breaker.name": "inventory\uFFFD", "breaker.state": "open",
		"breaker.reason": "consecutive-failures", "breaker.retry_after": 0.75,
	}, told(span.Attributes()))
	assert.Equal(t, codes.Unset, span.Status().Code, "it belongs to whoever made the span")

	b.Isolate()
	span = tr.spanOf(func(ctx context.Context) { _, _ = breakerotel.Execute(ctx, b, succeed) })
	assert.Equal(t, map[string]any{
		"breaker.refused": true, "breaker.name": "inventory\uFFFD", "breaker.state": "isolated", "breaker.reason": "isolated",
	}, told(span.Attributes()), "nobody knows when an isolated circuit closes")
}

func TestSpanOfAProbe(t *testing.T) {
	tr := newTracer()
	b, mock := made(nil, "inventory")
	call(b, errDown)
	mock.Add(time.Second)
	span := tr.spanOf(func(ctx context.Context) { _, _ = breakerotel.Execute(ctx, b, succeed) })
	assert.Equal(t, map[string]any{"breaker.name": "inventory", "breaker.state": "half-open", "breaker.probe": true},
		told(span.Attributes()))
}

// The result of a call says something that its error does not.
func TestExecuteClassified(t *testing.T) {
	tr := newTracer()
	b, _ := made(nil, "inventory")
	span := tr.spanOf(func(ctx context.Context) {
		value, err := breakerotel.ExecuteClassified(ctx, b, succeed, func(value string, err error) breaker.Outcome {
			assert.Equal(t, "done", value)
			return breaker.Transient
		})
		assert.Equal(t, "done", value)
		assert.NoError(t, err)
	})
	assert.Equal(t, breaker.Open, b.State())
	assert.Equal(t, "inventory", told(span.Attributes())["breaker.name"])
}

// A breaker further in refuses: that says nothing about the outer one, which has admitted the call.
func TestRefusalFromFurtherIn(t *testing.T) {
	tr := newTracer()
	outer, _ := made(nil, "outer")
	inner, _ := made(nil, "inner")
	inner.Isolate()
	span := tr.spanOf(func(ctx context.Context) {
		_, err := breakerotel.Execute(ctx, outer, func(ctx context.Context) (string, error) {
			return breaker.Execute(ctx, inner, succeed)
		})
		assert.ErrorIs(t, err, breaker.ErrRejected)
	})
	assert.Equal(t, map[string]any{"breaker.name": "outer", "breaker.state": "closed"}, told(span.Attributes()))
}

func TestRecordRefusal(t *testing.T) {
	tr := newTracer()
	b, _ := made(nil, "inventory")
	call(b, errDown)
	_, refusal := b.TryAcquire(t.Context())
	wrapped := &url.Error{Op: "Get", URL: "http://inventory/", Err: fmt.Errorf("attempt 3: %w", refusal)}
	span := tr.spanOf(func(ctx context.Context) { assert.True(t, breakerotel.RecordRefusal(ctx, wrapped)) })
	assert.Equal(t, true, told(span.Attributes())["breaker.refused"])
	assert.Equal(t, "inventory", told(span.Attributes())["breaker.name"])

	span = tr.spanOf(func(ctx context.Context) {
		assert.False(t, breakerotel.RecordRefusal(ctx, nil))
		assert.False(t, breakerotel.RecordRefusal(ctx, errDown))
	})
	assert.Empty(t, span.Attributes())
	assert.True(t, breakerotel.RecordRefusal(context.Background(), refusal), "there is no span to tell")

	span = tr.spanOf(func(ctx context.Context) { assert.True(t, breakerotel.RecordRefusal(ctx, breaker.ErrRejected)) })
	assert.Equal(t, map[string]any{"breaker.refused": true}, told(span.Attributes()), "nothing else is known")
}

func TestRefusalOfACallThatGaveUpWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTracer()
		b := breaker.MustNew(breaker.Settings{Name: "inventory", WhenOpen: breaker.Wait})
		b.Isolate()
		span := tr.spanOf(func(ctx context.Context) {
			ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
			defer cancel()
			_, err := breakerotel.Execute(ctx, b, succeed)
			assert.ErrorIs(t, err, context.DeadlineExceeded)
		})
		assert.Equal(t, map[string]any{
			"breaker.refused": true, "breaker.name": "inventory", "breaker.state": "isolated", "breaker.waited": 3.0,
		}, told(span.Attributes()))
	})
}

// onlyEvent returns the one event of a span.
func onlyEvent(t *testing.T, span sdktrace.ReadOnlySpan) sdktrace.Event {
	t.Helper()
	require.Len(t, span.Events(), 1)
	return span.Events()[0]
}

// The span of each call that changes a state gets the event, and no other.
func TestStateChangesInSpans(t *testing.T) {
	tr := newTracer()
	var monitor breaker.Monitor
	defer monitor.Subscribe(breakerotel.RecordStateChange)()
	b, mock := made(&monitor, "inventory")
	down := func(ctx context.Context) {
		_, _ = breakerotel.Execute(ctx, b, func(context.Context) (string, error) { return "", errDown })
	}
	up := func(ctx context.Context) { _, _ = breakerotel.Execute(ctx, b, succeed) }

	assert.Empty(t, tr.spanOf(up).Events())
	event := onlyEvent(t, tr.spanOf(down))
	assert.Equal(t, "breaker.state_change", event.Name)
	assert.Equal(t, map[string]any{
		"breaker.name": "inventory", "breaker.from": "closed", "breaker.to": "open", "breaker.reason": "consecutive-failures",
		"breaker.break_duration": 1.0, "breaker.opens": int64(1), "error.type": "*errors.errorString",
	}, without(told(event.Attributes), "breaker.counts."))
	assert.Empty(t, tr.spanOf(up).Events(), "a refusal changes nothing")
	mock.Add(time.Second)
	events := tr.spanOf(up).Events()
	require.Len(t, events, 2)
	assert.Equal(t, map[string]any{
		"breaker.name": "inventory", "breaker.from": "open", "breaker.to": "half-open", "breaker.reason": "break-elapsed",
	}, told(events[0].Attributes))
	assert.Equal(t, "closed", told(events[1].Attributes)["breaker.to"])
	b.Isolate() // by no call
}

// without returns the attributes whose names do not begin with a prefix.
func without(attributes map[string]any, prefix string) map[string]any {
	for name := range attributes {
		if len(name) > len(prefix) && name[:len(prefix)] == prefix {
			delete(attributes, name)
		}
	}
	return attributes
}

func TestStateChangeTellsItsCounts(t *testing.T) {
	tr := newTracer()
	change := breaker.StateChange{
		Name: "inventory", From: breaker.Closed, To: breaker.Open, Reason: breaker.ReasonSlowCalls,
		Break: 1500 * time.Millisecond, Opens: 2, Counts: breaker.Counts{Calls: 20, Failures: 3, Slow: 11},
	}
	event := onlyEvent(t, tr.spanOf(func(ctx context.Context) { breakerotel.RecordStateChange(ctx, change) }))
	assert.Equal(t, map[string]any{
		"breaker.name": "inventory", "breaker.from": "closed", "breaker.to": "open", "breaker.reason": "slow-calls",
		"breaker.break_duration": 1.5, "breaker.opens": int64(2),
		"breaker.counts.calls": int64(20), "breaker.counts.failures": int64(3), "breaker.counts.slow": int64(11),
	}, told(event.Attributes))
	breakerotel.RecordStateChange(context.Background(), change) // no span
}

func TestStateChangeAsCallback(t *testing.T) {
	tr := newTracer()
	b := breaker.MustNew(breaker.Settings{
		Name: "inventory", ConsecutiveFailures: 1, OnStateChange: breakerotel.RecordStateChange,
	})
	span := tr.spanOf(func(ctx context.Context) {
		_ = b.Execute(ctx, func(context.Context) error { return errDown })
	})
	assert.Equal(t, "open", told(onlyEvent(t, span).Attributes)["breaker.to"])
}

// A panic goes on as if there were no span.
func TestPanicGoesOn(t *testing.T) {
	b, _ := made(nil, "inventory")
	assert.PanicsWithValue(t, "boom", func() {
		_, _ = breakerotel.Execute(t.Context(), b, func(context.Context) (int, error) { panic("boom") })
	})
	assert.Equal(t, breaker.Open, b.State())
}

// Without a span that records, the wrapper costs no more than the closure it makes.
func TestExecuteWithoutASpan(t *testing.T) {
	b, _ := made(nil, "inventory")
	ctx := t.Context()
	assert.LessOrEqual(t, testing.AllocsPerRun(100, func() { _, _ = breakerotel.Execute(ctx, b, succeed) }), 2.0)
}
