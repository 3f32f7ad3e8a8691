package breakerhttp_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"runtime/debug"
	"strings"
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

// A request without a body, or with one in memory, is handed on as it is. Another body is read through the transport's, in a
// shallow copy; the caller's request stays as it was, and is the one that the response names.
func TestRequestIsHandedOnUnchanged(t *testing.T) {
	for name, test := range map[string]struct {
		body func() io.Reader
		same bool
	}{
		"none":    {func() io.Reader { return nil }, true},
		"nothing": {func() io.Reader { return http.NoBody }, true},
		"string":  {func() io.Reader { return strings.NewReader("body") }, true},
		"bytes":   {func() io.Reader { return bytes.NewReader([]byte("body")) }, true},
		"buffer":  {func() io.Reader { return bytes.NewBufferString("body") }, true},
		"nop":     {func() io.Reader { return io.NopCloser(brokenReader{strings.NewReader("body"), io.EOF}) }, false},
		"stream":  {func() io.Reader { return newWatchedBody() }, false},
	} {
		t.Run(name, func(t *testing.T) {
			bothWays(t, func(t *testing.T, throughBody bool) {
				body := test.body()
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://example.com/", body)
				require.NoError(t, err)
				before, getBody := *req, req.GetBody
				before.GetBody = nil // functions are not comparable
				got, resp := received(t, req, throughBody)
				assert.Equal(t, test.same, req == got, "the request itself")
				assert.Same(t, req, resp.Request)
				assert.Equal(t, getBody == nil, req.GetBody == nil)
				req.GetBody = nil
				assert.Equal(t, before, *req)
				if body == nil {
					return
				}
				copied := *got
				copied.Body, copied.GetBody = before.Body, nil
				assert.Equal(t, before, copied, "all but the body")
				text, err := io.ReadAll(got.Body)
				require.NoError(t, err)
				assert.Equal(t, body != http.NoBody, string(text) == "body")
			})
		})
	}
}

// received returns a request as the base gets it, and the response.
func received(t *testing.T, req *http.Request, throughBody bool) (got *http.Request, resp *http.Response) {
	t.Helper()
	transport := &breakerhttp.Transport{
		Breaker:     breaker.MustNew(consecutive(1)),
		ThroughBody: throughBody,
		Base: roundTripFunc(func(r *http.Request) (*http.Response, error) {
			got = r
			return &http.Response{StatusCode: 200, Body: http.NoBody, Request: r}, nil
		}),
	}
	resp, err := transport.RoundTrip(req)
	require.NoError(t, err)
	return got, resp
}

// A body that the base was given is the base's to close.
func TestBodyIsClosedByTheBase(t *testing.T) {
	bothWays(t, func(t *testing.T, throughBody bool) {
		req, body := post(t.Context(), t)
		got, _ := received(t, req, throughBody)
		assert.Zero(t, body.closes.Load())
		require.NoError(t, got.Body.Close())
		assert.EqualValues(t, 1, body.closes.Load())
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

// A base that panics because its caller has gone away says nothing.
func TestBasePanicsAfterACancel(t *testing.T) {
	bothWays(t, func(t *testing.T, throughBody bool) {
		b := breaker.MustNew(consecutive(1))
		ctx, cancel := context.WithCancel(t.Context())
		transport := &breakerhttp.Transport{Breaker: b, ThroughBody: throughBody,
			Base: roundTripFunc(func(*http.Request) (*http.Response, error) {
				cancel()
				panic(http.ErrAbortHandler)
			})}
		assert.PanicsWithError(t, http.ErrAbortHandler.Error(), func() {
			_, _ = transport.RoundTrip(get(t, "http://example.com/").WithContext(ctx))
		})
		assert.Equal(t, once(breaker.Ignored), outcomes(b))
	})
}

func panicsByName() { panic("base") }

// Whoever recovers the panic of a base finds the frames that it came from.
func TestTraceOfAPanicStaysWhole(t *testing.T) {
	transport := &breakerhttp.Transport{Breaker: breaker.MustNew(consecutive(1)),
		Base: roundTripFunc(func(*http.Request) (*http.Response, error) { panicsByName(); return nil, nil })}
	defer func() {
		assert.Equal(t, "base", recover())
		assert.Contains(t, string(debug.Stack()), "panicsByName")
	}()
	_, _ = transport.RoundTrip(get(t, "http://example.com/"))
}

// A classifier that panics is reported; the response reaches the caller and says nothing, an error is a failure.
func TestClassifierPanics(t *testing.T) {
	for want, base := range map[breaker.Outcome]roundTripFunc{
		breaker.Ignored:   answer(503, "body"),
		breaker.Transient: fail(io.ErrUnexpectedEOF),
	} {
		bothWays(t, func(t *testing.T, throughBody bool) {
			s := consecutive(2)
			var reported []*breaker.CallbackError
			s.OnCallbackError = func(_ context.Context, err *breaker.CallbackError) { reported = append(reported, err) }
			b := breaker.MustNew(s)
			transport := &breakerhttp.Transport{Breaker: b, Base: base, ThroughBody: throughBody,
				Classify: func(*http.Response, error) breaker.Outcome { panic("classify") }}
			resp, err := transport.RoundTrip(get(t, "http://example.com/"))
			if want == breaker.Transient {
				assert.Equal(t, io.ErrUnexpectedEOF, err)
			} else {
				require.NoError(t, err)
				text, err := io.ReadAll(resp.Body)
				require.NoError(t, err)
				assert.Equal(t, "body", string(text))
			}
			assert.Equal(t, once(want), outcomes(b))
			require.Len(t, reported, 1)
			assert.Equal(t, "classify", reported[0].Panic)
			assert.Contains(t, string(reported[0].Stack), "TestClassifierPanics")
			assert.Equal(t, "server", reported[0].Name)
			assert.Equal(t, "Classify", reported[0].Callback)
		})
	}
}

// An outcome that there is not is reported as that of the classifier.
func TestUnknownOutcomeIsReported(t *testing.T) {
	for _, base := range []roundTripFunc{answer(200, ""), fail(io.ErrUnexpectedEOF)} {
		s := consecutive(1)
		var reported []*breaker.CallbackError
		s.OnCallbackError = func(_ context.Context, err *breaker.CallbackError) { reported = append(reported, err) }
		b := breaker.MustNew(s)
		transport := &breakerhttp.Transport{Breaker: b, Base: base,
			Classify: func(*http.Response, error) breaker.Outcome { return 99 }}
		_, _ = transport.RoundTrip(get(t, "http://example.com/"))
		assert.Equal(t, once(breaker.Ignored), outcomes(b))
		require.Len(t, reported, 1)
		assert.Equal(t, "Classify", reported[0].Callback)
		assert.Equal(t, "server", reported[0].Name)
	}
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
