package breakerhttp

import (
	"context"
	"errors"
	"net/http"

	"github.com/brownout-go/breaker"
)

// Transport is an [http.RoundTripper] that asks a breaker before it sends a request and tells it how the request went. It
// changes no request and derives no context. Like any RoundTripper it is safe for concurrent use, and its fields must not be
// changed while it is used.
//
// A request that the breaker does not admit returns a *[breaker.RejectedError] before its body is read. Where the breaker's
// Settings.WhenOpen is [breaker.Wait], the request waits for admission instead, until its context ends or Settings.MaxWait has
// passed; http.Client.Timeout ends a wait too. Settings.RejectionDelay delays the refusal as it does for [breaker.Execute].
//
// Errors are classified as [breaker.Breaker.Execute] does it: a cancelled request is [breaker.Ignored], one whose deadline ran
// out is evidence.
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
	// consume the body unless it puts another in its place. nil: the function [Classify], but Settings.Classify for errors, where
	// the breaker has one.
	Classify func(*http.Response, error) breaker.Outcome
	// ThroughBody makes the outcome wait until the response body has been read to its end, has failed or is closed, so that a
	// stream that breaks off is a failure. Classify is asked then, with the error that ended the body if one did, and with
	// the trailers in place. The latency of a response still ends at its headers: how fast a body is read is the reader's doing;
	// a body that fails counts with the time until it failed. The request holds its place at the breaker until then; one whose
	// body nobody closes holds it for good, which Settings.ProbeTimeout makes up for. SlowCalls.Overdue would take a body that is
	// long in reading for a call that hangs, so do not combine the two. There is nothing to wait for without a body and after
	// 101 Switching Protocols, where a connection takes the place of the body.
	ThroughBody bool
}

var (
	errNoBreaker = errors.New("breakerhttp: Transport has neither Breaker nor Select")
	errNoAnswer  = errors.New("breakerhttp: Transport.Base returned neither a response nor an error")
)

// RoundTrip sends the request if its breaker admits it.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	x := &exchange{base: t.base(), req: req}
	defer x.tidy()
	b, err := t.breakerOf(req)
	if err != nil {
		return nil, err
	}
	resp, err := t.send(x, b)
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

func (t *Transport) send(x *exchange, b *breaker.Breaker) (*http.Response, error) {
	if b == nil {
		return x.roundTrip(x.req.Context())
	}
	s := b.Settings()
	if t.ThroughBody {
		return t.sendThrough(x, b, &s)
	}
	return breaker.ExecuteClassified(x.req.Context(), b, x.roundTrip, t.classifier(&s))
}

// classifier returns the function that judges what a breaker with these settings admits.
func (t *Transport) classifier(s *breaker.Settings) func(*http.Response, error) breaker.Outcome {
	switch {
	case t.Classify != nil:
		return t.Classify
	case s.Classify == nil:
		return Classify
	}
	return func(resp *http.Response, err error) breaker.Outcome {
		if err != nil {
			return s.Classify(err)
		}
		return Classify(resp, nil)
	}
}

// exchange is one request and what the base made of it.
type exchange struct {
	base      http.RoundTripper
	req       *http.Request
	delegated bool           // the base has the request, and the duty to close its body
	resp      *http.Response // from the base
	returned  bool           // the caller has the response, and the duty to close its body
}

// roundTrip asks the base and holds it to its contract: a response or an error, not both and not neither.
func (x *exchange) roundTrip(context.Context) (*http.Response, error) {
	x.delegated = true
	resp, err := x.base.RoundTrip(x.req)
	x.resp = resp
	if err != nil {
		x.closeResponse()
		return nil, err
	}
	if resp == nil {
		return nil, errNoAnswer
	}
	return resp, nil
}

// tidy closes the bodies that nobody else has the duty to close, also when a panic or runtime.Goexit is on its way.
func (x *exchange) tidy() {
	if !x.delegated && x.req.Body != nil {
		x.req.Body.Close()
	}
	if !x.returned {
		x.closeResponse()
	}
}

func (x *exchange) closeResponse() {
	if x.resp != nil && x.resp.Body != nil {
		x.resp.Body.Close()
	}
}
