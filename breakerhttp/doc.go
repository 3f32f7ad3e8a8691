// Package breakerhttp puts a circuit breaker into an HTTP client.
//
//	client := &http.Client{Transport: &breakerhttp.Transport{Breaker: b}}
//
// [Transport] guards every request with one breaker, or with the breaker that its Select function names; [PerHost] selects one
// for each host. [Classify] says what a response tells about the server, [StatusError] tells of the one that failed, and
// [BreakDuration] makes its Retry-After the break. A request that is refused never reaches the network:
// the client returns a *[url.Error] in which errors.As finds the *[breaker.RejectedError].
//
// A redirect that the client follows is a request of its own, with an outcome of its own. Retries belong outside the client, so
// that the attempt that opens the circuit stops the next one.
package breakerhttp
