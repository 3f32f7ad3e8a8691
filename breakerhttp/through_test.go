package breakerhttp_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
	"github.com/brownout-go/breaker/breakerhttp"
)

// respond returns a base that answers with one response.
func respond(resp *http.Response) roundTripFunc {
	return func(*http.Request) (*http.Response, error) { return resp, nil }
}

func readAll(t *testing.T, resp *http.Response) {
	_, _ = io.Copy(io.Discard, resp.Body)
}

func closeUnread(t *testing.T, resp *http.Response) {
	require.NoError(t, resp.Body.Close())
}

// The outcome of a response with a body is not known before the body has ended, and is counted once however it ends.
func TestOutcomeWaitsForTheBody(t *testing.T) {
	broken := errors.New("connection reset")
	for name, test := range map[string]struct {
		status int
		body   io.Reader
		end    func(*testing.T, *http.Response)
		want   breaker.Outcome
	}{
		"read to the end":     {200, strings.NewReader("body"), readAll, breaker.Success},
		"closed unread":       {200, strings.NewReader("body"), closeUnread, breaker.Ignored},
		"not found, closed":   {404, strings.NewReader("body"), closeUnread, breaker.Ignored},
		"breaks off":          {200, brokenReader{strings.NewReader("bo"), broken}, readAll, breaker.Transient},
		"failure, read":       {503, strings.NewReader("body"), readAll, breaker.Transient},
		"failure, closed":     {503, strings.NewReader("body"), closeUnread, breaker.Transient},
		"throttled, closed":   {429, strings.NewReader("body"), closeUnread, breaker.Throttled},
		"permanent, closed":   {400, strings.NewReader("body"), closeUnread, breaker.Permanent},
		"an empty one is one": {200, strings.NewReader(""), readAll, breaker.Success},
	} {
		t.Run(name, func(t *testing.T) {
			b := breaker.MustNew(consecutive(2))
			transport := &breakerhttp.Transport{Breaker: b, ThroughBody: true,
				Base: respond(&http.Response{StatusCode: test.status, Body: io.NopCloser(test.body)})}
			resp, err := transport.RoundTrip(get(t, "http://example.com/"))
			require.NoError(t, err)
			assert.Empty(t, outcomes(b), "before the body has ended")
			test.end(t, resp)
			assert.Equal(t, once(test.want), outcomes(b))
			readAll(t, resp)
			closeUnread(t, resp)
			assert.Equal(t, once(test.want), outcomes(b), "ended again")
		})
	}
}

// A probe whose body was closed after 10 of many bytes counted as a success and closed the circuit: what would have come next,
// nobody knows. The same holds for any request. A body that was read as far as its length goes has ended, asked for its end or
// not; a status that is a failure is one, however little of the body was read.
func TestRegression_BodyClosedEarlySaysNothing(t *testing.T) {
	const long = 1000
	for name, test := range map[string]struct {
		status, read int
		length       int64
		want         breaker.Outcome
	}{
		"unread":                  {200, 0, long, breaker.Ignored},
		"ten bytes":               {200, 10, long, breaker.Ignored},
		"all but one":             {200, long - 1, long, breaker.Ignored},
		"all":                     {200, long, long, breaker.Success},
		"all of unknown length":   {200, long, -1, breaker.Ignored},
		"ten of unknown length":   {200, 10, -1, breaker.Ignored},
		"unknown, as zero":        {200, 10, 0, breaker.Ignored},
		"an answer, ten bytes":    {404, 10, long, breaker.Ignored},
		"the caller's fault":      {401, 10, long, breaker.Permanent},
		"the caller's fault, all": {401, long, long, breaker.Success},
		"a limit":                 {429, 10, long, breaker.Throttled},
		"a failure":               {503, 10, long, breaker.Transient},
	} {
		t.Run(name, func(t *testing.T) {
			b := halfOpen(t)
			transport := &breakerhttp.Transport{Breaker: b, ThroughBody: true, Base: respond(&http.Response{
				StatusCode: test.status, ContentLength: test.length, Body: io.NopCloser(strings.NewReader(strings.Repeat("x", long))),
			})}
			resp, err := transport.RoundTrip(get(t, "http://example.com/"))
			require.NoError(t, err)
			_, err = io.ReadFull(resp.Body, make([]byte, test.read))
			require.NoError(t, err)
			closeUnread(t, resp)
			assert.Equal(t, once(test.want), ofProbe(b))
			assert.Equal(t, test.want == breaker.Success, b.State() == breaker.Closed)
			assert.Zero(t, b.Snapshot().ProbesInFlight)
		})
	}
}

func TestNothingToWaitForAfterHead(t *testing.T) {
	b := breaker.MustNew(consecutive(1))
	req := get(t, "http://example.com/")
	req.Method = http.MethodHead
	_, err := (&breakerhttp.Transport{Breaker: b, ThroughBody: true, Base: answer(200, "")}).RoundTrip(req)
	require.NoError(t, err)
	assert.Equal(t, once(breaker.Success), outcomes(b))
}

func TestNothingToWaitFor(t *testing.T) {
	for name, resp := range map[string]*http.Response{
		"no body":             {StatusCode: 204, Body: http.NoBody},
		"nil body":            {StatusCode: 200},
		"switching protocols": {StatusCode: 101, Body: io.NopCloser(strings.NewReader("connection"))},
		"no content":          {StatusCode: 204, Body: io.NopCloser(strings.NewReader(""))},
		"not modified":        {StatusCode: 304, Body: io.NopCloser(strings.NewReader(""))},
	} {
		b := breaker.MustNew(consecutive(1))
		body := resp.Body
		transport := &breakerhttp.Transport{Breaker: b, ThroughBody: true, Base: respond(resp)}
		got, err := transport.RoundTrip(get(t, "http://example.com/"))
		require.NoError(t, err, name)
		assert.Equal(t, once(breaker.Success), outcomes(b), name)
		assert.Equal(t, body, got.Body, "%s: the body is the base's own", name)
	}
}

// A body that a caller can write to, such as that of a tunnel, stays writable.
func TestWritableBody(t *testing.T) {
	var sent strings.Builder
	tunnel := struct {
		io.Reader
		io.Writer
		io.Closer
	}{strings.NewReader("answer"), &sent, newWatchedBody()}
	b := breaker.MustNew(consecutive(1))
	transport := &breakerhttp.Transport{Breaker: b, ThroughBody: true,
		Base: respond(&http.Response{StatusCode: 200, Body: tunnel})}
	resp, err := transport.RoundTrip(get(t, "http://example.com/"))
	require.NoError(t, err)
	writer, ok := resp.Body.(io.ReadWriteCloser)
	require.True(t, ok)
	_, err = io.WriteString(writer, "question")
	require.NoError(t, err)
	assert.Equal(t, "question", sent.String())
	readAll(t, resp)
	assert.Equal(t, once(breaker.Success), outcomes(b))
}

// The failure that opened the circuit is the error that broke the body off.
func TestBrokenBodyIsTheCause(t *testing.T) {
	s := consecutive(1)
	var change breaker.StateChange
	s.OnStateChange = func(_ context.Context, c breaker.StateChange) { change = c }
	body := io.NopCloser(brokenReader{strings.NewReader("bo"), io.ErrUnexpectedEOF})
	transport := &breakerhttp.Transport{Breaker: breaker.MustNew(s), ThroughBody: true,
		Base: respond(&http.Response{StatusCode: 200, Body: body})}
	resp, err := transport.RoundTrip(get(t, "http://example.com/"))
	require.NoError(t, err)
	_, err = io.ReadAll(resp.Body)
	assert.Equal(t, io.ErrUnexpectedEOF, err, "the reader gets the error as it is")
	assert.Equal(t, breaker.Open, change.To)
	require.ErrorIs(t, change.Err, io.ErrUnexpectedEOF)
	assert.Equal(t, io.ErrUnexpectedEOF.Error(), change.Err.Error())

	_, err = transport.RoundTrip(get(t, "http://example.com/"))
	var refusal *breaker.RejectedError
	require.ErrorAs(t, err, &refusal)
	assert.ErrorIs(t, refusal.Cause, io.ErrUnexpectedEOF)
}

// The classifier is asked once, at the end of the body, with what ended it and with the trailers in place.
func TestClassifierIsAskedAtTheEndOfTheBody(t *testing.T) {
	for _, failure := range []error{nil, io.ErrUnexpectedEOF} {
		resp := &http.Response{StatusCode: 200, Trailer: http.Header{}}
		resp.Body = io.NopCloser(brokenReader{strings.NewReader("body"), failure})
		if failure == nil {
			resp.Body = io.NopCloser(strings.NewReader("body"))
		}
		b, asked := breaker.MustNew(consecutive(1)), 0
		transport := &breakerhttp.Transport{Breaker: b, ThroughBody: true, Base: respond(resp),
			Classify: func(r *http.Response, err error) breaker.Outcome {
				asked++
				assert.Same(t, resp, r)
				assert.Equal(t, failure, err)
				assert.Equal(t, "14", r.Trailer.Get("Status"))
				return breaker.Throttled
			}}
		got, err := transport.RoundTrip(get(t, "http://example.com/"))
		require.NoError(t, err)
		assert.Zero(t, asked)
		resp.Trailer.Set("Status", "14")
		readAll(t, got)
		closeUnread(t, got)
		assert.Equal(t, 1, asked)
		assert.Equal(t, once(breaker.Throttled), outcomes(b))
	}
}

// interruptible is a body whose reads wait until it is closed. Its Close lets a reader run as far as it gets.
type interruptible struct{ closed chan struct{} }

func (b interruptible) Read([]byte) (int, error) {
	<-b.closed
	return 0, http.ErrBodyReadAfterClose
}

func (b interruptible) Close() error {
	close(b.closed)
	synctest.Wait()
	return nil
}

// A caller that closes a body while another goroutine reads it has made the read fail: the dependency has not.
func TestCloseDuringRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.MustNew(consecutive(1))
		transport := &breakerhttp.Transport{Breaker: b, ThroughBody: true,
			Base: respond(&http.Response{StatusCode: 200, Body: interruptible{make(chan struct{})}})}
		resp, err := transport.RoundTrip(get(t, "http://example.com/"))
		require.NoError(t, err)
		read := make(chan error)
		go func() {
			_, err := resp.Body.Read(make([]byte, 1))
			read <- err
		}()
		synctest.Wait()
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, http.ErrBodyReadAfterClose, <-read)
		assert.Equal(t, once(breaker.Ignored), outcomes(b))
	})
}

// How long a body is read says nothing about the server; how long it took to answer does.
func TestLatencyEndsAtTheHeaders(t *testing.T) {
	for _, test := range []struct {
		headers, body time.Duration
		slow          uint64
	}{
		{time.Second, 10 * time.Second, 0},
		{2 * time.Second, 0, 0},
		{2*time.Second + 1, 0, 1},
	} {
		bothWays(t, func(t *testing.T, throughBody bool) {
			synctest.Test(t, func(t *testing.T) {
				s := consecutive(1)
				s.SlowCallThreshold = 2 * time.Second
				b := breaker.MustNew(s)
				transport := &breakerhttp.Transport{Breaker: b, ThroughBody: throughBody,
					Base: roundTripFunc(func(req *http.Request) (*http.Response, error) {
						time.Sleep(test.headers)
						return answer(200, "body")(req)
					})}
				resp, err := transport.RoundTrip(get(t, "http://example.com/"))
				require.NoError(t, err)
				time.Sleep(test.body)
				readAll(t, resp)
				assert.Equal(t, once(breaker.Success), outcomes(b))
				assert.Equal(t, test.slow, b.Snapshot().Totals.Slow)
			})
		})
	}
}

// The clock of the breaker is the one that is asked, for the latency and for the delay of a refusal.
func TestInjectedClock(t *testing.T) {
	bothWays(t, func(t *testing.T, throughBody bool) {
		mock := clock.NewMock()
		s := consecutive(1)
		s.SlowCallThreshold = 2 * time.Second
		s.RejectionDelay = time.Hour
		s.Clock = delayless{mock}
		b := breaker.MustNew(s)
		transport := &breakerhttp.Transport{Breaker: b, ThroughBody: throughBody,
			Base: roundTripFunc(func(req *http.Request) (*http.Response, error) {
				mock.Add(3 * time.Second)
				return answer(200, "body")(req)
			})}
		roundTrip(t, transport, 200)
		assert.EqualValues(t, 1, b.Snapshot().Totals.Slow)
		b.Isolate()
		_, err := transport.RoundTrip(get(t, "http://example.com/"))
		require.ErrorIs(t, err, breaker.ErrRejected)
	})
}

// delayless is a clock whose alarms go off at once.
type delayless struct{ *clock.Mock }

func (c delayless) After(time.Duration) <-chan time.Time {
	fired := make(chan time.Time, 1)
	fired <- c.Now()
	return fired
}

// stalled is a body that never comes to its end by itself: its reads end with the context of the request.
type stalled struct{ ctx context.Context }

func (s stalled) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}

func (s stalled) Close() error { return nil }

// A caller that gives up on a body says nothing; a deadline that the body lets pass is evidence.
func TestContextEndsWhileTheBodyIsRead(t *testing.T) {
	for _, test := range []struct {
		end  func(cancel context.CancelFunc)
		want breaker.Outcome
	}{
		{func(cancel context.CancelFunc) { cancel() }, breaker.Ignored},
		{func(context.CancelFunc) { time.Sleep(time.Minute) }, breaker.Transient},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			b := breaker.MustNew(consecutive(2))
			asked := 0
			transport := &breakerhttp.Transport{Breaker: b, ThroughBody: true,
				Base: respond(&http.Response{StatusCode: 200, Body: stalled{ctx}}),
				Classify: func(*http.Response, error) breaker.Outcome {
					asked++
					return breaker.Transient
				}}
			resp, err := transport.RoundTrip(get(t, "http://example.com/").WithContext(ctx))
			require.NoError(t, err)
			go test.end(cancel)
			readAll(t, resp)
			assert.Equal(t, once(test.want), outcomes(b))
			assert.Equal(t, test.want == breaker.Transient, asked == 1, "cancelled requests are not classified")
		})
	}
}

// A probe whose body nobody closes holds its slot until ProbeTimeout; then the circuit opens anew and goes on.
func TestBodiesThatNobodyCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := consecutive(1)
		s.ProbeTimeout = time.Minute
		s.ProbeSuccesses = 1
		b := breaker.MustNew(s)
		transport := &breakerhttp.Transport{Breaker: b, ThroughBody: true, Base: answer(503, "down")}
		roundTrip(t, transport, 503)

		transport.Base = answer(200, "body")
		time.Sleep(s.BreakDuration)
		_, err := transport.RoundTrip(get(t, "http://example.com/"))
		require.NoError(t, err)
		assert.Equal(t, 1, b.Snapshot().ProbesInFlight)

		time.Sleep(s.ProbeTimeout - 1)
		_, err = transport.RoundTrip(get(t, "http://example.com/"))
		require.ErrorIs(t, err, breaker.ErrRejected)
		assert.Equal(t, breaker.HalfOpen, b.State())

		time.Sleep(time.Nanosecond)
		_, err = transport.RoundTrip(get(t, "http://example.com/"))
		require.ErrorIs(t, err, breaker.ErrRejected)
		assert.Equal(t, breaker.ReasonProbeTimeout, b.Snapshot().Reason)

		time.Sleep(2 * s.BreakDuration)
		roundTrip(t, transport, 200)
		assert.Equal(t, breaker.Closed, b.State())
	})
}

// A body that ends after the circuit has opened says nothing about what the dependency is like since.
func TestBodyOfAnEarlierEpoch(t *testing.T) {
	b := breaker.MustNew(consecutive(1))
	transport := &breakerhttp.Transport{Breaker: b, ThroughBody: true, Base: answer(200, "body")}
	resp, err := transport.RoundTrip(get(t, "http://example.com/"))
	require.NoError(t, err)
	b.Isolate()
	readAll(t, resp)
	assert.Empty(t, outcomes(b))
	assert.EqualValues(t, 1, b.Snapshot().Totals.Discarded)
}

// A reader whose classifier ends its goroutine leaves neither a slot taken nor a connection open.
func TestClassifierCallsGoexitWhileABodyIsRead(t *testing.T) {
	s := consecutive(1)
	s.OnCallbackError = func(context.Context, *breaker.CallbackError) {}
	b, body := breaker.MustNew(s), newWatchedBody()
	transport := &breakerhttp.Transport{Breaker: b, ThroughBody: true, Base: respond(&http.Response{StatusCode: 200, Body: body}),
		Classify: func(*http.Response, error) breaker.Outcome { runtime.Goexit(); return breaker.Success }}
	resp, err := transport.RoundTrip(get(t, "http://example.com/"))
	require.NoError(t, err)
	exits(t, func() {
		defer resp.Body.Close()
		readAll(t, resp)
	})
	assert.Equal(t, once(breaker.Ignored), outcomes(b))
	assert.EqualValues(t, 1, body.closes.Load())
}
