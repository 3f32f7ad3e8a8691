package breakerhttp

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"runtime"

	"github.com/brownout-go/breaker"
)

// failed tells the breaker of an error. The breaker judges as it does everywhere, unless the transport has a classifier.
func (x *exchange) failed(err error) {
	ctx := x.req.Context()
	cancelled := ctx.Err() == context.Canceled
	switch {
	case cancelled && x.body != nil:
		x.permit.RecordLatency(breaker.Ignored, x.latency) // how long the body was read says nothing either
	case cancelled || speaksForItself(err):
		x.permit.Done(ctx, err)
	case x.spoiled.Load() || isRequestFault(x.req, err):
		x.permit.RecordLatency(breaker.Ignored, 0)
	case x.transport.Classify == nil:
		x.permit.Done(ctx, err)
	default:
		x.permit.Done(ctx, breaker.Mark(err, x.ask(err)))
	}
}

// answered tells the breaker of a response whose body, if the outcome waits for it, has ended. One that was cut off by its
// reader proves nothing, but a failure that its headers tell is one all the same.
func (x *exchange) answered(cut bool) {
	o := classifyStatus(x.resp.StatusCode)
	if x.transport.Classify != nil {
		o = x.ask(nil)
	}
	switch {
	case cut && o == breaker.Success, x.spoiled.Load() && o == breaker.Transient:
		o = breaker.Ignored
	case !cut && x.permit.IsProbe():
		o = proven(o, x.resp.StatusCode)
	}
	switch {
	case o == breaker.Transient: // it stands, cancelled or not: the answer is there
		x.permit.Done(context.WithoutCancel(x.req.Context()), breaker.Mark(x.statusError(), o))
	case x.watch.on:
		x.permit.RecordLatency(o, x.latency)
	case o == breaker.Success:
		x.permit.Done(x.req.Context(), nil) // the quickest way
	default:
		x.permit.Record(o)
	}
}

// statusError describes the response for those who ask why the circuit opened.
func (x *exchange) statusError() error {
	e := &StatusError{StatusCode: x.resp.StatusCode}
	if x.req.URL != nil {
		e.Host = x.req.URL.Host
	}
	e.RetryAfter, _ = RetryAfter(x.resp.Header, now(x.breaker.Settings().Clock))
	return e
}

// ask asks the transport's classifier. What is wrong with it is reported, as the breaker reports on its own: after a panic an
// error is a failure and an answer says nothing.
func (x *exchange) ask(err error) (o breaker.Outcome) {
	returned := false
	defer func() {
		if returned {
			return
		}
		p := recover()
		if p == nil {
			x.report(func() breaker.Outcome { runtime.Goexit(); return breaker.Ignored })
		}
		if o = breaker.Ignored; err != nil {
			o = breaker.Transient
		}
		x.report(func() breaker.Outcome { panic(p) })
	}()
	o = x.transport.Classify(x.resp, err)
	returned = true
	if o > breaker.Ignored {
		x.report(func() breaker.Outcome { return o })
		o = breaker.Ignored
	}
	return o
}

// report has a classifier's fault reported by a breaker, which knows how, by repeating it there. It is for faults alone: no
// request builds a breaker.
func (x *exchange) report(fault func() breaker.Outcome) {
	s := x.breaker.Settings()
	reporter := breaker.MustNew(breaker.Settings{
		Name:            s.Name,
		OnCallbackError: s.OnCallbackError,
		Failures:        breaker.Failures{Off: true},
		SlowCalls:       breaker.SlowCalls{Off: true},
	})
	_, _ = breaker.ExecuteClassified(context.WithoutCancel(x.req.Context()), reporter,
		func(context.Context) (*http.Response, error) { return nil, nil },
		func(*http.Response, error) breaker.Outcome { return fault() })
}

// markType is the type of an error with a mark.
var markType = reflect.TypeOf(breaker.Mark(errNoAnswer, breaker.Ignored))

// speaksForItself reports whether no classifier has a say in an error: it has a mark, is the refusal of another breaker, or
// cannot even be looked into. The breaker deals with all three.
func speaksForItself(err error) (yes bool) {
	defer func() { yes = recover() != nil || yes }()
	return errors.As(err, reflect.New(markType).Interface()) || errors.Is(err, breaker.ErrRejected)
}
