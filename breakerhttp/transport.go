package breakerhttp

import (
	"errors"
	"net/http"

	"github.com/brownout-go/breaker"
)

// Transport is an [http.RoundTripper] that asks a breaker before it sends a request and tells it how the request went. It
// changes no request and derives no context. A request body that is not in memory is read through another that notices when it
// fails: Base then gets a shallow copy of the request, with that body. Like any RoundTripper it is safe for concurrent use, and
// its fields must not be changed while it is used.
//
// A request that the breaker does not admit returns a *[breaker.RejectedError] before its body is read. Where the breaker's
// Settings.WhenOpen is [breaker.Wait], the request waits for admission instead, until its context ends or Settings.MaxWait has
// passed; http.Client.Timeout ends a wait too. Settings.RejectionDelay delays the refusal as it does for [breaker.Execute].
//
// Errors are classified as [breaker.Breaker.Execute] does it: a cancelled request is [breaker.Ignored], one whose deadline ran
// out is evidence. What fails on the side of the request is Ignored as well: its body cannot be read or has another length than
// Content-Length says, or [http.Transport] does not send it, for its method, scheme, host, port, headers or trailers.
//
// A response that counts as a failure is returned as the response it is; the breaker is told of it by a [StatusError]. For a
// probe, a response that counts as [breaker.Permanent] is a Success, since a server that finds fault with a request works; the
// table at [Classify] has every status.
type Transport struct {
	// Base sends the requests. nil: http.DefaultTransport.
	Base http.RoundTripper
	// Breaker guards every request.
	Breaker *breaker.Breaker
	// Select names the breaker of a request and wins over Breaker. A nil breaker without an error leaves the request unguarded;
	// an error is returned in place of a response. See [PerHost].
	Select func(*http.Request) (*breaker.Breaker, error)
	// Classify tells what a response or an error says about the server, in place of Settings.Classify of the breaker. It is not
	// asked about cancelled requests, about errors with a [breaker.Mark], or about refusals of another breaker. It must not
	// consume the body unless it puts another in its place. One that panics is reported to Settings.OnCallbackError: an error is
	// Transient then, and a response Ignored. nil: the function [Classify], but Settings.Classify for errors, where the breaker
	// has one.
	Classify func(*http.Response, error) breaker.Outcome
	// ThroughBody makes the outcome wait until the response body has been read to its end, has failed or is closed, so that a
	// stream that breaks off is a failure. A body is read to its end once Read has returned io.EOF or as many bytes as
	// Content-Length says. One that is closed before says nothing: the request is Ignored, unless its status alone is a failure,
	// a limit or the caller's fault. So a probe whose body nobody reads proves nothing: read every body.
	//
	// Classify is asked at the end, with the error that ended the body if one did, and with the trailers in place. The latency of
	// a response still ends at its headers: how fast a body is read is the reader's doing; a failure counts with the time until
	// its end. The request holds its place at the breaker until then; one whose body nobody closes holds it for good, which
	// Settings.ProbeTimeout makes up for. There is nothing to wait for without a body, as after HEAD, 204 and 304, and after 101 Switching
	// Protocols, where a connection takes the place of the body.
	ThroughBody bool
}

var (
	errNoBreaker = errors.New("breakerhttp: Transport has neither Breaker nor Select")
	errNoAnswer  = errors.New("breakerhttp: Transport.Base returned neither a response nor an error")
	errPanic     = errors.New("breakerhttp: Transport.Base panicked")
)

// RoundTrip sends the request if its breaker admits it.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	x := &exchange{transport: t, req: req}
	defer x.tidy()
	resp, err := x.send()
	x.returned = true
	return resp, err
}

// CloseIdleConnections closes those of Base, if it can. [http.Client.CloseIdleConnections] calls it.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.base().(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

func (t *Transport) base() http.RoundTripper {
	if t.Base == nil {
		return http.DefaultTransport
	}
	return t.Base
}

// breakerOf returns the breaker that guards a request, nil for none.
func (t *Transport) breakerOf(req *http.Request) (*breaker.Breaker, error) {
	switch {
	case t.Select != nil:
		return t.Select(req)
	case t.Breaker != nil:
		return t.Breaker, nil
	default:
		return nil, errNoBreaker
	}
}
