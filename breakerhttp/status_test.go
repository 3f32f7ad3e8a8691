package breakerhttp_test

import (
	"context"
	"errors"
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
	"github.com/brownout-go/breaker/breakerhttp"
)

// answerLater returns a base that answers 503 with a Retry-After.
func answerLater(retryAfter string) roundTripFunc {
	return respond(&http.Response{StatusCode: 503, Body: http.NoBody, Header: http.Header{"Retry-After": {retryAfter}}})
}

// Five 503s opened a circuit, and nobody could say why: neither the change of state nor the refusals held an error, because a
// response comes without one.
func TestRegression_FailedResponseIsTheCause(t *testing.T) {
	bothWays(t, func(t *testing.T, throughBody bool) {
		s := consecutive(5)
		var change breaker.StateChange
		s.OnStateChange = func(_ context.Context, c breaker.StateChange) { change = c }
		transport := &breakerhttp.Transport{Breaker: breaker.MustNew(s), Base: answer(503, "down"), ThroughBody: throughBody}
		req := get(t, "http://user:secret@example.com:8080/path?token=secret")
		req.Header.Set("Authorization", "secret")
		for range 5 {
			resp, err := transport.RoundTrip(req)
			require.NoError(t, err, "to the caller it is a response")
			assert.Equal(t, 503, resp.StatusCode)
			readAll(t, resp)
		}
		var failed *breakerhttp.StatusError
		require.ErrorAs(t, change.Err, &failed)
		assert.Equal(t, breakerhttp.StatusError{StatusCode: 503, Host: "example.com:8080"}, *failed)
		assert.Equal(t, "breakerhttp: example.com:8080 answered 503 Service Unavailable", change.Err.Error())

		_, err := transport.RoundTrip(req)
		var refusal *breaker.RejectedError
		require.ErrorAs(t, err, &refusal)
		require.ErrorAs(t, refusal.Cause, &failed)
		assert.Equal(t, 503, failed.StatusCode)
	})
}

func TestStatusErrorText(t *testing.T) {
	assert.Equal(t, "breakerhttp: a answered 599", (&breakerhttp.StatusError{StatusCode: 599, Host: "a"}).Error())
}

// The response failed by itself: that its caller has gone away since changes nothing.
func TestFailedResponseToACancelledRequest(t *testing.T) {
	bothWays(t, func(t *testing.T, throughBody bool) {
		ctx, cancel := context.WithCancel(t.Context())
		b := breaker.MustNew(consecutive(2))
		transport := &breakerhttp.Transport{Breaker: b, ThroughBody: throughBody,
			Base: roundTripFunc(func(req *http.Request) (*http.Response, error) {
				cancel()
				return answer(503, "down")(req)
			})}
		resp, err := transport.RoundTrip(get(t, "http://example.com/").WithContext(ctx))
		require.NoError(t, err)
		readAll(t, resp)
		assert.Equal(t, once(breaker.Transient), outcomes(b))
	})
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(1994, 11, 6, 8, 49, 0, 0, time.UTC)
	for _, test := range []struct {
		text string
		want time.Duration
		ok   bool
	}{
		{"90", 90 * time.Second, true},
		{" 1 ", time.Second, true},
		{"007", 7 * time.Second, true},
		{"9223372036", 9223372036 * time.Second, true},
		{"9223372037", math.MaxInt64, true},
		{"9223372036854775808", math.MaxInt64, true},
		{"99999999999999999999999999", math.MaxInt64, true},
		{"Sun, 06 Nov 1994 08:49:37 GMT", 37 * time.Second, true},
		{"Sunday, 06-Nov-94 08:49:37 GMT", 37 * time.Second, true},
		{"Sun Nov  6 08:49:37 1994", 37 * time.Second, true},
		{"Fri, 31 Dec 9999 23:59:59 GMT", math.MaxInt64, true},
		{"Sun, 06 Nov 1994 08:49:01 GMT", time.Second, true},
		{"Sun, 06 Nov 1994 08:49:00 GMT", 0, false},
		{"Sun, 06 Nov 1994 08:48:59 GMT", 0, false},
		{"Sat, 01 Jan 0001 00:00:00 GMT", 0, false},
		{"0", 0, false},
		{"-1", 0, false},
		{"+1", 0, false},
		{"1.5", 0, false},
		{"1e3", 0, false},
		{"0x10", 0, false},
		{"soon", 0, false},
		{"", 0, false},
		{" ", 0, false},
	} {
		got, ok := breakerhttp.RetryAfter(http.Header{"Retry-After": {test.text}}, now)
		assert.Equal(t, test.want, got, test.text)
		assert.Equal(t, test.ok, ok, test.text)
	}
	_, ok := breakerhttp.RetryAfter(nil, now)
	assert.False(t, ok)
}

// Whatever the header holds, a wait is positive if there is one, and zero if there is none.
func FuzzRetryAfter(f *testing.F) {
	for _, text := range []string{"90", "-1", "9223372037", "Sun, 06 Nov 1994 08:49:37 GMT", ""} {
		f.Add(text, int64(0))
	}
	f.Fuzz(func(t *testing.T, text string, unix int64) {
		wait, ok := breakerhttp.RetryAfter(http.Header{"Retry-After": {text}}, time.Unix(unix, 0))
		assert.Equal(t, ok, wait > 0)
		assert.GreaterOrEqual(t, wait, time.Duration(0))
	})
}

// breakOf opens a new circuit by one request and returns its break, which would be 10 s without a hint.
func breakOf(t *testing.T, base http.RoundTripper, throughBody bool) time.Duration {
	t.Helper()
	s := consecutive(1)
	s.Clock = clock.NewMock() // at the beginning of 1970
	s.BreakDurationFunc = breakerhttp.BreakDuration(time.Minute)
	s.OnCallbackError = func(_ context.Context, err *breaker.CallbackError) { assert.Fail(t, err.Error()) }
	b := breaker.MustNew(s)
	resp, err := (&breakerhttp.Transport{Breaker: b, Base: base, ThroughBody: throughBody}).RoundTrip(get(t, "http://example.com/"))
	if err == nil {
		readAll(t, resp)
	}
	wait, ok := b.RetryAfter()
	require.True(t, ok)
	return wait
}

// The example did this by hand: 9223372037 seconds overflowed into no break at all, and a date was no hint.
func TestRegression_RetryAfterIsTheBreak(t *testing.T) {
	bothWays(t, func(t *testing.T, throughBody bool) {
		for text, want := range map[string]time.Duration{
			"30":                            30 * time.Second,
			"1":                             time.Second,
			"60":                            time.Minute,
			"61":                            time.Minute,
			"9223372037":                    time.Minute,
			"99999999999999999999999999":    time.Minute,
			"Thu, 01 Jan 1970 00:00:45 GMT": 45 * time.Second,
			"Fri, 31 Dec 1999 23:59:59 GMT": time.Minute,
			"Wed, 31 Dec 1969 23:59:59 GMT": 10 * time.Second,
			"0":                             10 * time.Second,
			"-5":                            10 * time.Second,
			"soon":                          10 * time.Second,
		} {
			assert.Equal(t, want, breakOf(t, answerLater(text), throughBody), text)
		}
		assert.Equal(t, 10*time.Second, breakOf(t, answer(503, ""), throughBody), "no header")
		assert.Equal(t, 10*time.Second, breakOf(t, fail(errors.New("no route to host")), throughBody), "no response")
	})
}

// The example kept the hint in a variable, so that a server that had once said 30 s got its 30 s when it could no longer be
// reached at all.
func TestRegression_OldRetryAfterIsNoHint(t *testing.T) {
	s, mock := consecutive(2), clock.NewMock()
	s.Clock, s.BreakDurationFunc = mock, breakerhttp.BreakDuration(time.Minute)
	b := breaker.MustNew(s)
	transport := &breakerhttp.Transport{Breaker: b, Base: answerLater("30")}
	roundTrip(t, transport, 503)
	transport.Base = fail(errors.New("no route to host"))
	_, err := transport.RoundTrip(get(t, "http://example.com/"))
	require.Error(t, err)
	wait, ok := b.RetryAfter()
	assert.True(t, ok)
	assert.Equal(t, s.BreakDuration, wait)
}

func TestBreakDurationNeedsABound(t *testing.T) {
	for _, longest := range []time.Duration{0, -1} {
		assert.Panics(t, func() { breakerhttp.BreakDuration(longest) })
	}
	assert.NotPanics(t, func() { breakerhttp.BreakDuration(1) })
}
