// Package breaker is a circuit breaker. It stops calls to a dependency that fails or slows down, finds out with a few probes
// when it is back, and then hands the load back.
//
//	b, err := breaker.New(breaker.Settings{Name: "inventory"})
//	...
//	n, err := breaker.Execute(ctx, b, func(ctx context.Context) (int, error) { return client.Stock(ctx, item) })
//
// One [Breaker] guards one dependency, and every call to that dependency must go through it. Use [Breaker.Execute], or the
// functions [Execute] and [ExecuteClassified] for calls that return a result. For work that is not a single function, take a
// [Permit] with [Breaker.TryAcquire] or [Breaker.Acquire], and end it when the work is done. A [Group] holds one breaker for each
// tenant or host, and package breakerhttp guards an HTTP client. Retries go outside the breaker.
//
// # States
//
// A [Closed] circuit admits every call and watches the outcomes. With enough evidence it becomes [Open]: it refuses calls with a
// [RejectedError], which errors.Is matches with [ErrRejected], for the length of a break that follows the traffic and the length of the incident.
// When the break is over, the next calls are probes ([HalfOpen]). A probe that fails opens the circuit again; a slow one proves
// nothing. When enough probes have succeeded the load comes back along a ramp ([Recovering]), which failed and slow calls hold
// back, and the circuit closes. Recovery.Off closes it at once. [Breaker.Isolate] refuses everything until
// [Breaker.Reset] ([Isolated]).
//
// # What counts
//
// Every call ends with an [Outcome]. [Success] and [Transient] are evidence. [Throttled] (it said "not now"), [Permanent] (the
// caller was wrong) and [Ignored] (the caller gave up) are neutral: they enter no ratio, no streak and no baseline. An error is
// Transient unless the context of the call was cancelled, the error carries a [Mark], it is another breaker's refusal, or
// Settings.Classify says otherwise. A deadline that ran out is Transient, because that is how a hanging dependency shows.
//
// # What opens the circuit
//
//   - ConsecutiveFailures (5) in a row; if that is not written up to 14 from 10 calls a second on, more where chance brings as many,
//     and only if they have lasted for 250 ms;
//   - failures / calls ≥ FailureRatio (off);
//   - failures that are abnormal for this dependency, and at least Failures.Floor (0.5) of the calls since that began;
//   - slow calls that are abnormal for it, and at least SlowCallRatio (0.5) of the calls since that began, where slow means longer
//     than SlowCallThreshold (off) or than SlowCalls.Multiple (3) times its normal latency and SlowCalls.Floor (100 ms). Calls in
//     flight count as they become slow.
//
// Sequential tests decide what is abnormal, each with at most about one false alarm in 30 days. Ratios are judged over the last
// Window (30 s), once it holds MinCalls (20). What is normal is measured all the time, over a window long enough that an incident
// opens the circuit before it can pass for normal. [Classic] has fixed rules in place of the tests. Evidence is cleared at every change of state; measurements never are.
//
// # What to set
//
// Start with the zero [Settings] and a Name. Then look at these, in this order: Classify, if some errors are valid answers;
// FailureRatio, if less than half of the calls failing is too much; SlowCallThreshold, if some latency is too long whatever is
// normal; and WhenOpen, if callers have time to wait. To try settings out, use ObserveOnly on live traffic, or a [Simulation] without any.
//
// [Breaker.Snapshot] shows everything there is to see, Settings.OnStateChange reports every change, and a [Monitor] does both for
// many breakers. Time comes from Settings.Clock, so tests need not sleep. A breaker starts no goroutine and no ticker, and there
// is nothing to close.
package breaker
