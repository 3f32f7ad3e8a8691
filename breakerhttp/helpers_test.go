package breakerhttp_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
	"github.com/brownout-go/breaker/breakerhttp"
)

// bothWays runs a test for outcomes at the headers and for outcomes at the end of the body.
func bothWays(t *testing.T, test func(t *testing.T, throughBody bool)) {
	t.Run("headers", func(t *testing.T) { test(t, false) })
	t.Run("through body", func(t *testing.T) { test(t, true) })
}

type roundTripFunc func(*http.Request) (*http.Response, error)

func (f roundTripFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// answer returns a base that answers every request alike.
func answer(status int, body string) roundTripFunc {
	return func(req *http.Request) (*http.Response, error) {
		if req.Body != nil {
			req.Body.Close()
		}
		return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(body)), Request: req}, nil
	}
}

// fail returns a base that fails every request alike.
func fail(err error) roundTripFunc {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

// watchedBody is a body that tells what was done with it.
type watchedBody struct {
	io.Reader
	reads, closes atomic.Int32
}

func newWatchedBody() *watchedBody { return &watchedBody{Reader: strings.NewReader("body")} }

func (b *watchedBody) Read(p []byte) (int, error) {
	b.reads.Add(1)
	return b.Reader.Read(p)
}

func (b *watchedBody) Close() error {
	b.closes.Add(1)
	return nil
}

// brokenReader fails after some text.
type brokenReader struct {
	text io.Reader
	err  error
}

func (r brokenReader) Read(p []byte) (int, error) {
	n, err := r.text.Read(p)
	if err == io.EOF {
		err = r.err
	}
	return n, err
}

func get(t *testing.T, url string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	return req
}

// post returns a request with a body that tells what was done with it.
func post(ctx context.Context, t *testing.T) (*http.Request, *watchedBody) {
	t.Helper()
	body := newWatchedBody()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://example.com/", body)
	require.NoError(t, err)
	return req, body
}

// consecutive returns settings under which nothing but a number of failures in a row opens the circuit, and the whole load comes
// back at once.
func consecutive(failures int) breaker.Settings {
	return breaker.Settings{
		Name:                "server",
		ConsecutiveFailures: failures,
		Failures:            breaker.Failures{Off: true},
		SlowCalls:           breaker.SlowCalls{Off: true},
		BreakDuration:       10 * time.Second,
		BreakJitter:         breaker.JitterNone,
		Recovery:            breaker.Recovery{Off: true},
	}
}

// outcomes returns what a breaker has counted, by outcome.
func outcomes(b *breaker.Breaker) map[breaker.Outcome]uint64 {
	n := b.Snapshot().Totals
	counted := map[breaker.Outcome]uint64{
		breaker.Success: n.Successes, breaker.Transient: n.Transient, breaker.Throttled: n.Throttled,
		breaker.Permanent: n.Permanent, breaker.Ignored: n.Ignored,
	}
	for o, count := range counted {
		if count == 0 {
			delete(counted, o)
		}
	}
	return counted
}

// once is one outcome and no other.
func once(o breaker.Outcome) map[breaker.Outcome]uint64 { return map[breaker.Outcome]uint64{o: 1} }

// roundTrip sends a request and reads the response to its end.
func roundTrip(t *testing.T, transport http.RoundTripper, want int) {
	t.Helper()
	resp, err := transport.RoundTrip(get(t, "http://example.com/"))
	require.NoError(t, err)
	assert.Equal(t, want, resp.StatusCode)
	_, err = io.Copy(io.Discard, resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
}

// serve starts a server and returns a client that goes through a transport, with the server's own as the base.
func serve(t *testing.T, h http.HandlerFunc, through *breakerhttp.Transport, start func(*httptest.Server),
) (client *http.Client, address string) {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	start(server)
	t.Cleanup(server.Close)
	client = server.Client()
	through.Base = client.Transport
	client.Transport = through
	return client, server.URL
}

func http1(s *httptest.Server) { s.Start() }

func http2(s *httptest.Server) {
	s.EnableHTTP2 = true
	s.StartTLS()
}
