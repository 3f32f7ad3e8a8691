// Package breakerotel shows circuit breakers through OpenTelemetry.
//
// Metrics: [RegisterMetrics] observes every breaker of a [breaker.Monitor] when metrics are collected.
//
// Traces: [Execute] tells the span of a call which breaker guards it and in what state, and whether it was refused; [RecordRefusal]
// does the latter for calls made in another way, and [RecordStateChange] adds an event to the span of the call that changed a
// state. None of them starts a span: the breaker is part of the call, not a call of its own.
//
//	monitor.Subscribe(breakerotel.RecordStateChange)
//
// Names and attributes are listed in the README.
package breakerotel
