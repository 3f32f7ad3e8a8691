// Package breakergrpc puts circuit breakers into gRPC clients and servers.
//
//	conn, err := grpc.NewClient(target,
//		grpc.WithUnaryInterceptor(breakergrpc.UnaryClientInterceptor(breakergrpc.Always(b))),
//		grpc.WithStreamInterceptor(breakergrpc.StreamClientInterceptor(breakergrpc.Always(b))),
//	)
//
// A [Selector] names the breaker of each call: [Always] one, [PerTarget] and [PerMethod] one of a group. [Classify] says what a
// status tells about the server. A call that is refused never reaches the network, or the handler on a server. Its error is a
// status, [codes.Unavailable] with a RetryInfo where the break tells how long to wait, and still matches [breaker.ErrRejected];
// errors.As finds the *[breaker.RejectedError] in it.
//
// # Retries
//
// A breaker samples one call of the interceptor. The retries of gRPC itself, transparent ones as well as those of a service
// config's retryPolicy or hedgingPolicy, lie below the interceptors: all attempts of a call are one outcome, that of the last,
// and a refusal is never retried by them. An interceptor that retries belongs outside the breaker, before it in the chain, so
// that the attempt that opens the circuit stops the next one. It must not retry what matches [breaker.ErrRejected] at once.
//
// # Connections
//
// Without [grpc.WaitForReady] a call to a server that cannot be reached fails at once and is evidence at once. With it, in the call
// or in the service config, the call waits for a connection, and its deadline is the first that the breaker hears of the outage:
// give such calls a deadline. A timeout in a service config is set below the interceptors and counts like a deadline.
//
// A probe is as good as the connection it finds. gRPC waits longer and longer between attempts to connect, up to 2 min by default,
// and fails every call until the next: probes too, though the server may be back. Keep backoff.Config.MaxDelay below the
// breaker's BreakDuration, see [grpc.WithConnectParams].
//
// # Streams
//
// A stream has the outcome of its last message: [io.EOF] is a [breaker.Success], an error counts by its status. Until then it
// holds its place at the breaker, so it must come to an end as gRPC asks for anyway: read it until an error, cancel its context, or
// close the connection. One that its caller cancels says nothing, unless it is slow and nothing has come back: then it is evidence
// of slowness, as everywhere. One whose deadline passes while nobody waits for the server says nothing either.
//
// The latency of a stream ends with the first thing that comes back, headers or a message: how long a stream goes on is nobody's
// fault. A stream that is silent by nature, such as a subscription, needs [WithOutcomeAtHeaders] or a breaker with SlowCalls off.
//
// # Servers
//
// The interceptors of a server guard its own handlers. A panic of a handler counts as [breaker.Transient] and goes on unchanged, so
// interceptors that recover may stand on either side. Those that authenticate belong outside the breaker: to a probe, the refusal
// of a handler is proof that it works. A deadline that passes is evidence, and clients choose it: where they are not to be trusted,
// let a [WithClassify] function ignore [codes.DeadlineExceeded].
package breakergrpc
