package breakerhttp

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/brownout-go/breaker"
)

// exchange is one request and what came of it.
type exchange struct {
	transport *Transport
	req       *http.Request // as the caller gave it
	breaker   *breaker.Breaker
	permit    *breaker.Permit
	watch     stopwatch
	latency   time.Duration  // until the headers, if it is measured
	resp      *http.Response // from the base
	delegated bool           // the base has the request, and the duty to close its body
	returned  bool           // the caller has the response, and the duty to close its body
	ended     atomic.Bool    // the breaker knows the outcome, or is being told
	spoiled   atomic.Bool    // the request's body failed, or its length is not what it says
	body      io.ReadCloser  // of the response, if the outcome waits for it
	read      atomic.Int64   // bytes of it
}

// send asks the breaker of the request, and then the base.
func (x *exchange) send() (resp *http.Response, err error) {
	if x.breaker, err = x.transport.breakerOf(x.req); err != nil {
		return nil, err
	}
	if x.breaker == nil {
		return x.roundTrip(x.req)
	}
	if x.permit, err = x.admit(); err != nil {
		return nil, err
	}
	return x.guarded()
}

// guarded sends a request that is admitted. A panic is passed on from the deferred function that finds it, on top of the frames
// that it came from, so that its trace stays whole.
func (x *exchange) guarded() (resp *http.Response, err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		defer x.permit.Release() // all there is to do for runtime.Goexit
		if p := recover(); p != nil {
			x.permit.Done(x.req.Context(), breaker.Mark(errPanic, breaker.Transient))
			panic(p)
		}
	}()
	resp, err = x.roundTrip(x.outgoing())
	if x.watch.on {
		x.latency = x.watch.elapsed()
	}
	if err == nil && x.transport.ThroughBody && x.hasBody() {
		x.permit.Answered() // how long a body takes to read is no wait for the server
		x.watchBody()
	} else {
		x.end(err, false)
	}
	returned = true
	return resp, err
}

// admit asks for a permit as breaker.Execute asks for admission.
func (x *exchange) admit() (*breaker.Permit, error) {
	ctx, s := x.req.Context(), x.breaker.Settings()
	if s.WhenOpen == breaker.Wait {
		permit, err := x.breaker.Acquire(ctx)
		x.startWatch(s.Clock)
		return permit, err
	}
	permit, err := x.breaker.TryAcquire(ctx)
	if err != nil && s.RejectionDelay > 0 {
		delay(ctx, s.Clock, s.RejectionDelay)
	}
	x.startWatch(s.Clock)
	return permit, err
}

// delay waits for d by a clock, or until ctx ends.
func delay(ctx context.Context, c breaker.Clock, d time.Duration) {
	after := time.After
	if c != nil {
		after = c.After
	}
	select {
	case <-after(d):
	case <-ctx.Done():
	}
}

// startWatch measures the latency where the permit cannot: it would go on through a classifier or a body.
func (x *exchange) startWatch(c breaker.Clock) {
	if x.transport.ThroughBody || x.transport.Classify != nil {
		x.watch = stopwatch{on: true, clock: c, start: now(c)}
	}
}

// roundTrip asks the base and holds it to its contract: a response or an error, not both and not neither.
func (x *exchange) roundTrip(req *http.Request) (*http.Response, error) {
	base := x.transport.base()
	x.delegated = true
	resp, err := base.RoundTrip(req)
	x.resp = resp
	if err != nil {
		x.closeResponse()
		return nil, err
	}
	if resp == nil {
		return nil, errNoAnswer
	}
	if resp.Request == req {
		resp.Request = x.req
	}
	return resp, nil
}

// end tells the breaker how a request ended, once: with an error if it did, or with a response, cut off by its reader or not.
func (x *exchange) end(err error, cut bool) {
	if !x.ended.CompareAndSwap(false, true) {
		return
	}
	defer x.permit.Release() // also if the classifier calls runtime.Goexit
	if err != nil {
		x.failed(err)
	} else {
		x.answered(cut)
	}
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

// stopwatch measures by a clock, nil being the real one.
type stopwatch struct {
	on    bool
	clock breaker.Clock
	start time.Time
}

func (w *stopwatch) elapsed() time.Duration {
	if w.clock == nil {
		return time.Since(w.start)
	}
	return w.clock.Since(w.start)
}

// now reads a clock, nil being the real one.
func now(c breaker.Clock) time.Time {
	if c == nil {
		return time.Now()
	}
	return c.Now()
}
