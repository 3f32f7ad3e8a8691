// Package breaker is a circuit breaker: it stops calls to a dependency that fails or has become slow, finds out with a few
// probes when it is back, and hands the load back.
//
//	b, err := breaker.New(breaker.Settings{Name: "inventory"})
//	...
//	n, err := breaker.Execute(ctx, b, func(ctx context.Context) (int, error) { return client.Stock(ctx, item) })
//
// One [Breaker] guards one dependency, and every call to that dependency goes through it: in [Breaker.Execute], in the functions
// [Execute] and [ExecuteClassified], which return a result, or between [Breaker.TryAcquire] or [Breaker.Acquire] and the end of
// the [Permit]. A [Group] holds one breaker for each tenant or host. Package breakerhttp does it for an HTTP client. Retries go
// outside the breaker.
//
// # States
//
// [Closed] admits every call and watches how they end. Enough evidence makes it [Open]: calls are refused with a
// [RejectedError], which errors.Is matches with [ErrRejected], for a break that grows from open to open. When the break is over,
// the next calls are probes ([HalfOpen]). One that fails or is slow opens the circuit again. Enough that succeed close it: at
// once or, with a [Recovery], along a ramp ([Recovering]) that a failure ends and slow calls hold back. [Breaker.Isolate] refuses
// everything until [Breaker.Reset] ([Isolated]).
//
// # What counts
//
// A call ends with an [Outcome]. [Success] and [Transient] are evidence. [Throttled] (it said "not now"), [Permanent] (the caller
// was wrong) and [Ignored] (the caller gave up) say nothing about the dependency's health and count nowhere. An error is
// Transient unless its context was cancelled, it carries a [Mark], it is another breaker's refusal, or Settings.Classify says
// otherwise. A deadline that ran out is Transient: that is how a dependency hangs.
//
// # What opens the circuit
//
//   - ConsecutiveFailures (5) in a row;
//   - failures / calls ≥ FailureRatio (off);
//   - failures / calls ≥ Failures.Multiple (5) times what is normal for this dependency, and ≥ Failures.Floor (0.05);
//   - slow / calls ≥ SlowCallRatio (0.5), where slow means longer than SlowCallThreshold (off) or than SlowCalls.Multiple (3)
//     times what is normal for this dependency.
//
// The ratios are those of the last Window (30 s), from MinCalls (20) on. What is normal is measured all the time, over a window so
// long that an incident opens the circuit before it becomes normal. What is measured may make a rule stricter, never looser. The
// evidence is cleared with each change of state; the measurement never is.
//
// # What to set
//
// The zero [Settings], with a Name. Then, in this order: Classify, for errors that are answers; Recovery, for a dependency that
// would go down again under its full load; SlowCallThreshold, for a latency that is too long whatever is normal; and WhenOpen,
// for callers with time to wait. Failures.FalseAlarmEvery bounds how often chance opens the circuit, SlowCalls.TailQuantile is
// for a latency with two humps, and SlowCalls.Overdue sees calls that hang before they end; all three are off. ObserveOnly tries
// settings on live traffic, [Simulation] on none.
//
// [Breaker.Snapshot] shows everything, Settings.OnStateChange tells of every change, and a [Monitor] does both for many breakers.
// Time is read from Settings.Clock, so tests need not sleep. There is no goroutine, no ticker and nothing to close.
package breaker
