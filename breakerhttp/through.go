package breakerhttp

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/brownout-go/breaker"
)

// sendThrough sends a request whose outcome waits for the end of the response body.
func (t *Transport) sendThrough(x *exchange, b *breaker.Breaker, s *breaker.Settings) (*http.Response, error) {
	ctx := x.req.Context()
	permit, err := admit(ctx, b, s)
	if err != nil {
		return nil, err
	}
	p := &pending{ctx: ctx, permit: permit, settings: s, classify: t.classifier(s)}
	unwound, scratch := true, newScratch(s)
	defer func() {
		if unwound {
			permit.Record(outcomeOn(scratch))
		}
	}()
	elapsed := stopwatch(s.Clock)
	p.resp, err = breaker.Execute(context.Background(), scratch, x.roundTrip)
	p.latency, unwound = elapsed(), false
	if err != nil || !hasBody(p.resp) {
		p.end(err)
	} else {
		p.resp.Body = p.watch(p.resp.Body)
	}
	return p.resp, err
}

// admit asks for a permit as breaker.Execute asks for admission.
func admit(ctx context.Context, b *breaker.Breaker, s *breaker.Settings) (*breaker.Permit, error) {
	if s.WhenOpen == breaker.Wait {
		return b.Acquire(ctx)
	}
	permit, err := b.TryAcquire(ctx)
	if err != nil && s.RejectionDelay > 0 {
		after := time.After
		if s.Clock != nil {
			after = s.Clock.After
		}
		select {
		case <-after(s.RejectionDelay):
		case <-ctx.Done():
		}
	}
	return permit, err
}

// stopwatch starts to measure by a clock, nil being the real one.
func stopwatch(c breaker.Clock) (elapsed func() time.Duration) {
	if c == nil {
		start := time.Now()
		return func() time.Duration { return time.Since(start) }
	}
	start := c.Now()
	return func() time.Duration { return c.Since(start) }
}

// hasBody reports whether there is a body to wait for. What follows 101 Switching Protocols is no body but a connection, which
// may last for days and says nothing about how requests are answered.
func hasBody(resp *http.Response) bool {
	return resp.Body != nil && resp.Body != http.NoBody && resp.StatusCode != http.StatusSwitchingProtocols
}

// newScratch returns a breaker that serves one call, to find out what a breaker with these settings makes of it. A permit takes
// an outcome but does not judge one: panics, runtime.Goexit, marks and classifiers that fail thus mean what they always mean.
func newScratch(s *breaker.Settings) *breaker.Breaker {
	return breaker.MustNew(breaker.Settings{
		Name:            s.Name,
		OnCallbackError: s.OnCallbackError,
		Failures:        breaker.Failures{Off: true},
		SlowCalls:       breaker.SlowCalls{Off: true},
	})
}

// outcomeOn returns the outcome that a scratch breaker has counted, [breaker.Ignored] if it has counted none.
func outcomeOn(scratch *breaker.Breaker) breaker.Outcome {
	switch n := scratch.Snapshot().Totals; {
	case n.Successes > 0:
		return breaker.Success
	case n.Transient > 0:
		return breaker.Transient
	case n.Throttled > 0:
		return breaker.Throttled
	case n.Permanent > 0:
		return breaker.Permanent
	default:
		return breaker.Ignored
	}
}

// pending is an admitted request whose outcome is still to come.
type pending struct {
	ctx      context.Context // of the request
	permit   *breaker.Permit
	settings *breaker.Settings
	classify func(*http.Response, error) breaker.Outcome
	resp     *http.Response
	latency  time.Duration // until the headers
	ended    atomic.Bool   // the first end counts
}

// end records the outcome of a request that is over, with the error that ended it if one did.
func (p *pending) end(err error) {
	if !p.ended.CompareAndSwap(false, true) {
		return
	}
	defer p.permit.Release() // also if the classifier calls runtime.Goexit
	if err != nil && p.ctx.Err() == context.Canceled {
		return // ignored, and no question for a classifier
	}
	o := p.judge(err)
	if err == nil {
		p.permit.RecordLatency(o, p.latency)
	} else {
		p.permit.Done(p.ctx, breaker.Mark(err, o)) // takes the error along, for those who ask why the circuit opened
	}
}

// judge classifies. A deadline that has run out must not keep the scratch breaker from it.
func (p *pending) judge(err error) breaker.Outcome {
	scratch := newScratch(p.settings)
	_, _ = breaker.ExecuteClassified(context.WithoutCancel(p.ctx), scratch,
		func(context.Context) (*http.Response, error) { return p.resp, err }, p.classify)
	return outcomeOn(scratch)
}

// watch wraps a response body. One that can be written to stays so.
func (p *pending) watch(b io.ReadCloser) io.ReadCloser {
	watched := &body{b, p}
	if w, ok := b.(io.Writer); ok {
		return struct {
			io.ReadCloser
			io.Writer
		}{watched, w}
	}
	return watched
}

// body is a response body whose end is the end of its request.
type body struct {
	io.ReadCloser
	pending *pending
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch err {
	case nil:
	case io.EOF:
		b.pending.end(nil)
	default:
		b.pending.end(err)
	}
	return n, err
}

// Close ends the request first, or a Read that it interrupts would count as a failure.
func (b *body) Close() (err error) {
	defer func() { err = b.ReadCloser.Close() }()
	b.pending.end(nil)
	return nil
}
