package breakerotel

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/brownout-go/breaker"
)

// Event is the name of the span event that [RecordStateChange] adds.
const Event = "breaker.state_change"

// Execute is [breaker.Execute] that tells the span of ctx: breaker.name, breaker.state as the call was admitted, and breaker.probe if
// it is a probe; or what [RecordRefusal] tells if it was refused. The status of the span is left to whoever made it.
//
// The span is the one that ctx carries, so begin it before, for an attempt or for the operation; of several calls in one span the
// last tells.
func Execute[T any](ctx context.Context, b *breaker.Breaker, fn func(context.Context) (T, error)) (T, error) {
	return ExecuteClassified(ctx, b, fn, nil)
}

// ExecuteClassified is [breaker.ExecuteClassified] that tells the span of ctx what [Execute] tells it.
func ExecuteClassified[T any](ctx context.Context, b *breaker.Breaker, fn func(context.Context) (T, error),
	classify func(T, error) breaker.Outcome) (T, error) {
	if fn == nil {
		panic("breakerotel: Execute of a nil function")
	}
	admitted := false
	value, err := breaker.ExecuteClassified(ctx, b, func(ctx context.Context) (T, error) {
		admitted = true
		recordAdmission(ctx, b)
		return fn(ctx)
	}, classify)
	if !admitted { // otherwise a refusal is that of a breaker further in
		RecordRefusal(ctx, err)
	}
	return value, err
}

// recordAdmission tells the span of ctx which breaker has admitted the call.
func recordAdmission(ctx context.Context, b *breaker.Breaker) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(name(b.Name()), StateKey.String(b.State().String()))
	if breaker.IsProbe(ctx) {
		span.SetAttributes(ProbeKey.Bool(true))
	}
}

// RecordRefusal tells the span of ctx that a breaker refused the call, if err says so, and reports whether it does: breaker.refused,
// breaker.name, breaker.state, breaker.reason, and breaker.retry_after in seconds while the break lasts. A [breaker.WaitError]
// tells breaker.waited, in seconds, instead of the last two. The error may be wrapped, as an [net/http.Client] does. The status of
// the span is left to whoever made it.
//
// The cause of the open circuit is not told: it is the error of another caller, and may hold that caller's data.
func RecordRefusal(ctx context.Context, err error) bool {
	if !errors.Is(err, breaker.ErrRejected) {
		return false
	}
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.SetAttributes(refusal(err)...)
	}
	return true
}

// refusal returns what is told of a refusal.
func refusal(err error) []attribute.KeyValue {
	var rejected *breaker.RejectedError
	var gaveUp *breaker.WaitError
	switch {
	case errors.As(err, &rejected):
		told := append(refused(rejected.Name, rejected.State), ReasonKey.String(rejected.Reason.String()))
		if wait, ok := rejected.RetryAfter(); ok {
			told = append(told, RetryAfterKey.Float64(wait.Seconds()))
		}
		return told
	case errors.As(err, &gaveUp):
		return append(refused(gaveUp.Name, gaveUp.State), WaitedKey.Float64(gaveUp.Waited.Seconds()))
	}
	return []attribute.KeyValue{RefusedKey.Bool(true)} // an error of another kind that says it is one
}

func refused(n string, s breaker.State) []attribute.KeyValue {
	return []attribute.KeyValue{RefusedKey.Bool(true), name(n), StateKey.String(s.String())}
}

// RecordStateChange adds a span event named [Event] to the span of ctx. Give it to Settings.OnStateChange, or to Monitor.Subscribe
// for every breaker of a monitor: the context that they hand on is that of the call which caused the change, and so the span is that
// of the call. A change by Isolate or Reset belongs to no call and adds nothing, and neither does one that is delivered, by another
// goroutine, after the span has ended.
//
// The event has breaker.name, breaker.from, breaker.to and breaker.reason; breaker.break_duration in seconds and breaker.opens for a change
// to open; breaker.counts.calls, .failures and .slow if the change was decided on calls; and error.type, the Go type of the failure that
// decided it. Its text is not told: it may hold a caller's data.
func RecordStateChange(ctx context.Context, change breaker.StateChange) {
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.AddEvent(Event, trace.WithAttributes(stateChange(change)...))
	}
}

// stateChange returns what is told of a change.
func stateChange(c breaker.StateChange) []attribute.KeyValue {
	told := append(move(c.From, c.To, c.Reason), name(c.Name))
	if c.To == breaker.Open {
		told = append(told, BreakKey.Float64(c.Break.Seconds()), OpensKey.Int(c.Opens))
	}
	if c.Counts.Calls > 0 {
		told = append(told, CallsKey.Int(c.Counts.Calls), FailuresKey.Int(c.Counts.Failures), SlowKey.Int(c.Counts.Slow))
	}
	if c.Err != nil {
		told = append(told, errorTypeKey.String(fmt.Sprintf("%T", c.Err)))
	}
	return told
}
