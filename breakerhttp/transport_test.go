package breakerhttp_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
	"github.com/brownout-go/breaker/breakerhttp"
)

// Every way in which a request does not reach the base closes its body, once, and never reads it.
func TestRequestBodyIsClosedUnread(t *testing.T) {
	isolated := breaker.MustNew(consecutive(1))
	isolated.Isolate()
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		transport breakerhttp.Transport
		ctx       context.Context
		panics    bool
	}{
		"refused":           {transport: breakerhttp.Transport{Breaker: isolated}},
		"select fails":      {transport: breakerhttp.Transport{Select: selectFails}},
		"no breaker":        {},
		"context cancelled": {transport: breakerhttp.Transport{Breaker: breaker.MustNew(consecutive(1))}, ctx: cancelled},
		"select panics":     {transport: breakerhttp.Transport{Select: selectPanics}, panics: true},
		"zero breaker":      {transport: breakerhttp.Transport{Breaker: new(breaker.Breaker)}, panics: true},
	} {
		t.Run(name, func(t *testing.T) {
			bothWays(t, func(t *testing.T, throughBody bool) {
				transport := test.transport
				transport.ThroughBody = throughBody
				transport.Base = roundTripFunc(func(*http.Request) (*http.Response, error) {
					assert.Fail(t, "the base was asked")
					return nil, nil
				})
				if test.ctx == nil {
					test.ctx = t.Context()
				}
				req, body := post(test.ctx, t)
				func() {
					defer func() { assert.Equal(t, test.panics, recover() != nil) }()
					resp, err := transport.RoundTrip(req)
					assert.Error(t, err)
					assert.Nil(t, resp)
				}()
				assert.Zero(t, body.reads.Load(), "reads")
				assert.EqualValues(t, 1, body.closes.Load(), "closes")
			})
		})
	}
}

func selectFails(*http.Request) (*breaker.Breaker, error) { return nil, errors.New("no such tenant") }

func selectPanics(*http.Request) (*breaker.Breaker, error) { panic("select") }

func TestRequestIsHandedOnUnchanged(t *testing.T) {
	bothWays(t, func(t *testing.T, throughBody bool) {
		req, body := post(t.Context(), t)
		before := *req
		var got *http.Request
		transport := &breakerhttp.Transport{
			Breaker:     breaker.MustNew(consecutive(1)),
			ThroughBody: throughBody,
			Base: roundTripFunc(func(r *http.Request) (*http.Response, error) {
				got = r
				return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
			}),
		}
		_, err := transport.RoundTrip(req)
		require.NoError(t, err)
		assert.Same(t, req, got)
		assert.Equal(t, before, *req)
		assert.Zero(t, body.closes.Load(), "a body that the base was given is the base's to close")
	})
}

func TestRefusalReachesTheCallerOfAClient(t *testing.T) {
	bothWays(t, func(t *testing.T, throughBody bool) {
		b := breaker.MustNew(consecutive(1))
		client := &http.Client{Transport: &breakerhttp.Transport{Base: answer(500, ""), Breaker: b, ThroughBody: throughBody}}
		resp, err := client.Get("http://example.com/")
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())

		_, err = client.Get("http://example.com/")
		var wrapped *url.Error
		require.ErrorAs(t, err, &wrapped)
		var refusal *breaker.RejectedError
		require.ErrorAs(t, err, &refusal)
		assert.Equal(t, breaker.Open, refusal.State)
		assert.Equal(t, breaker.ReasonConsecutiveFailures, refusal.Reason)
		wait, ok := refusal.RetryAfter()
		assert.True(t, ok)
		assert.Greater(t, wait, 9*time.Second)
		assert.EqualValues(t, 1, b.Snapshot().Totals.Rejected)
	})
}

func TestUnguarded(t *testing.T) {
	none := func(*http.Request) (*breaker.Breaker, error) { return nil, nil }
	isolated := breaker.MustNew(consecutive(1))
	isolated.Isolate()
	transport := &breakerhttp.Transport{Base: answer(200, "body"), Select: none, Breaker: isolated, ThroughBody: true}
	resp, err := transport.RoundTrip(get(t, "http://example.com/"))
	require.NoError(t, err, "Select wins over Breaker")
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	assert.Equal(t, "body", string(text))
}

// A base may break the contract of a RoundTripper; the transport keeps it.
func TestBaseThatBreaksItsContract(t *testing.T) {
	failure := errors.New("reset by peer")
	for name, test := range map[string]struct {
		guard func(*http.Request) (*breaker.Breaker, error)
	}{
		"guarded":   {func(*http.Request) (*breaker.Breaker, error) { return breaker.MustNew(consecutive(1)), nil }},
		"unguarded": {func(*http.Request) (*breaker.Breaker, error) { return nil, nil }},
	} {
		t.Run(name, func(t *testing.T) {
			bothWays(t, func(t *testing.T, throughBody bool) {
				body := newWatchedBody()
				both := func(*http.Request) (*http.Response, error) {
					return &http.Response{StatusCode: 200, Body: body}, failure
				}
				transport := &breakerhttp.Transport{Select: test.guard, Base: roundTripFunc(both), ThroughBody: throughBody}
				resp, err := transport.RoundTrip(get(t, "http://example.com/"))
				assert.Nil(t, resp)
				assert.Equal(t, failure, err)
				assert.EqualValues(t, 1, body.closes.Load(), "the response nobody gets is closed")

				transport.Base = fail(nil)
				resp, err = transport.RoundTrip(get(t, "http://example.com/"))
				assert.Nil(t, resp)
				assert.ErrorContains(t, err, "neither a response nor an error")
			})
		})
	}
}

func TestErrorsAreClassifiedAsExecuteDoes(t *testing.T) {
	failure := errors.New("reset by peer")
	isolated := breaker.MustNew(breaker.Settings{Name: "inner"})
	isolated.Isolate()
	_, refusal := isolated.TryAcquire(t.Context())
	require.Error(t, refusal)
	permanent := func(error) breaker.Outcome { return breaker.Permanent }
	throttled := func(*http.Response, error) breaker.Outcome { return breaker.Throttled }
	for name, test := range map[string]struct {
		base     error
		settings func(error) breaker.Outcome
		classify func(*http.Response, error) breaker.Outcome
		want     breaker.Outcome
	}{
		"plain":                        {failure, nil, nil, breaker.Transient},
		"settings":                     {failure, permanent, nil, breaker.Permanent},
		"transport":                    {failure, nil, throttled, breaker.Throttled},
		"transport wins over settings": {failure, permanent, throttled, breaker.Throttled},
		"mark wins":                    {breaker.Mark(failure, breaker.Success), permanent, throttled, breaker.Success},
		"refusal wins":                 {refusal, permanent, throttled, breaker.Ignored},
		"unknown outcome": {failure, nil, func(*http.Response, error) breaker.Outcome { return 99 },
			breaker.Ignored},
	} {
		t.Run(name, func(t *testing.T) {
			bothWays(t, func(t *testing.T, throughBody bool) {
				s := consecutive(2)
				s.Classify = test.settings
				s.OnCallbackError = func(context.Context, *breaker.CallbackError) {}
				b := breaker.MustNew(s)
				transport := &breakerhttp.Transport{
					Breaker: b, Base: fail(test.base), Classify: test.classify, ThroughBody: throughBody,
				}
				_, err := transport.RoundTrip(get(t, "http://example.com/"))
				assert.Equal(t, test.base, err, "the caller gets the error as it is")
				assert.Equal(t, once(test.want), outcomes(b))
			})
		})
	}
}

func TestSettingsClassifyDoesNotJudgeResponses(t *testing.T) {
	bothWays(t, func(t *testing.T, throughBody bool) {
		s := consecutive(2)
		s.Classify = func(error) breaker.Outcome { return breaker.Ignored }
		b := breaker.MustNew(s)
		transport := &breakerhttp.Transport{Breaker: b, Base: answer(500, ""), ThroughBody: throughBody}
		resp, err := transport.RoundTrip(get(t, "http://example.com/"))
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, once(breaker.Transient), outcomes(b))
	})
}

// A panic in the base is the dependency's failure, goes on as it is and leaves no slot taken.
func TestBasePanics(t *testing.T) {
	bothWays(t, func(t *testing.T, throughBody bool) {
		b := breaker.MustNew(consecutive(2))
		transport := &breakerhttp.Transport{Breaker: b, ThroughBody: throughBody,
			Base: roundTripFunc(func(*http.Request) (*http.Response, error) { panic("base") })}
		req, body := post(t.Context(), t)
		assert.PanicsWithValue(t, "base", func() { _, _ = transport.RoundTrip(req) })
		assert.Equal(t, once(breaker.Transient), outcomes(b))
		assert.Zero(t, body.closes.Load(), "the base had the body")
	})
}

func TestBaseCallsGoexit(t *testing.T) {
	bothWays(t, func(t *testing.T, throughBody bool) {
		b := breaker.MustNew(consecutive(2))
		transport := &breakerhttp.Transport{Breaker: b, ThroughBody: throughBody,
			Base: roundTripFunc(func(*http.Request) (*http.Response, error) { runtime.Goexit(); return nil, nil })}
		exits(t, func() { _, _ = transport.RoundTrip(get(t, "http://example.com/")) })
		assert.Equal(t, once(breaker.Ignored), outcomes(b))
	})
}

// exits runs f on a goroutine of its own and checks that it ends without returning.
func exits(t *testing.T, f func()) {
	t.Helper()
	done, returned := make(chan struct{}), false
	go func() {
		defer close(done)
		f()
		returned = true
	}()
	<-done
	assert.False(t, returned)
}

// A classifier that panics is reported; the response reaches the caller and is ignored, because nothing tells of a failure.
func TestClassifierPanics(t *testing.T) {
	bothWays(t, func(t *testing.T, throughBody bool) {
		s := consecutive(2)
		var reported []*breaker.CallbackError
		s.OnCallbackError = func(_ context.Context, err *breaker.CallbackError) { reported = append(reported, err) }
		b := breaker.MustNew(s)
		transport := &breakerhttp.Transport{Breaker: b, Base: answer(200, "body"), ThroughBody: throughBody,
			Classify: func(*http.Response, error) breaker.Outcome { panic("classify") }}
		resp, err := transport.RoundTrip(get(t, "http://example.com/"))
		require.NoError(t, err)
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		assert.Equal(t, "body", string(text))
		assert.Equal(t, once(breaker.Ignored), outcomes(b))
		require.Len(t, reported, 1)
		assert.Equal(t, "classify", reported[0].Panic)
		assert.Equal(t, "server", reported[0].Name)
		assert.Equal(t, "Classify", reported[0].Callback)
	})
}

// A classifier that calls runtime.Goexit takes the response with it: its body is closed all the same.
func TestClassifierCallsGoexit(t *testing.T) {
	bothWays(t, func(t *testing.T, throughBody bool) {
		s := consecutive(2)
		s.OnCallbackError = func(context.Context, *breaker.CallbackError) {}
		b, body := breaker.MustNew(s), newWatchedBody()
		transport := &breakerhttp.Transport{Breaker: b, ThroughBody: throughBody,
			Base: roundTripFunc(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 200, Body: body}, nil
			}),
			Classify: func(*http.Response, error) breaker.Outcome { runtime.Goexit(); return breaker.Success }}
		exits(t, func() {
			resp, err := transport.RoundTrip(get(t, "http://example.com/"))
			if assert.NoError(t, err) {
				resp.Body.Close()
			}
		})
		assert.EqualValues(t, 1, body.closes.Load())
		assert.Equal(t, once(breaker.Ignored), outcomes(b))
	})
}

type idleCloser struct {
	roundTripFunc
	closed int
}

func (c *idleCloser) CloseIdleConnections() { c.closed++ }

func TestCloseIdleConnections(t *testing.T) {
	base := &idleCloser{roundTripFunc: answer(200, "")}
	client := &http.Client{Transport: &breakerhttp.Transport{Base: base}}
	client.CloseIdleConnections()
	assert.Equal(t, 1, base.closed)

	client.Transport = &breakerhttp.Transport{Base: answer(200, "")}
	assert.NotPanics(t, client.CloseIdleConnections, "a base without idle connections")
}
