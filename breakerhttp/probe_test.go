package breakerhttp_test

import (
	"net/http"
	"testing"

	"github.com/benbjohnson/clock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
	"github.com/brownout-go/breaker/breakerhttp"
)

// halfOpen returns a breaker whose next call is a probe, which closes it if it succeeds. It has counted one failure.
func halfOpen(t *testing.T) *breaker.Breaker {
	t.Helper()
	s, mock := consecutive(1), clock.NewMock()
	s.Clock, s.ProbeSuccesses = mock, 1
	b := breaker.MustNew(s)
	permit, err := b.TryAcquire(t.Context())
	require.NoError(t, err)
	permit.Record(breaker.Transient)
	mock.Add(s.BreakDuration)
	require.Equal(t, breaker.HalfOpen, b.State())
	return b
}

// ofProbe returns what has been counted beside the failure that opened the circuit of halfOpen.
func ofProbe(b *breaker.Breaker) map[breaker.Outcome]uint64 {
	counted := outcomes(b)
	if counted[breaker.Transient]--; counted[breaker.Transient] == 0 {
		delete(counted, breaker.Transient)
	}
	return counted
}

// A service that came back behind an expired token answered 401, and the half-open circuit never closed: a 401 is the caller's
// fault and so proved nothing, while a 404 did. Here is the table at Classify, for every status and as data of its own.
func TestRegression_AnAnswerProvesToAProbeThatTheServerWorks(t *testing.T) {
	for status := 100; status <= 599; status++ {
		want, state := breaker.Success, breaker.Closed
		switch {
		case status == 407:
			want, state = breaker.Permanent, breaker.HalfOpen
		case status == 429:
			want, state = breaker.Throttled, breaker.HalfOpen
		case status == 408, status >= 500 && status != 501 && status != 505:
			want, state = breaker.Transient, breaker.Open
		}
		for _, throughBody := range []bool{false, true} {
			b := halfOpen(t)
			transport := &breakerhttp.Transport{Breaker: b, Base: answer(status, "body"), ThroughBody: throughBody}
			roundTrip(t, transport, status)
			assert.Equal(t, once(want), ofProbe(b), "status %d", status)
			assert.Equal(t, state, b.State(), "status %d", status)
			assert.Zero(t, b.Snapshot().ProbesInFlight, "status %d", status)
		}
	}
}

// Beside a probe the Permanent of Classify stands, for every status that has it.
func TestPermanentStandsForOrdinaryRequests(t *testing.T) {
	for status := 100; status <= 599; status++ {
		b := breaker.MustNew(consecutive(2))
		roundTrip(t, &breakerhttp.Transport{Breaker: b, Base: answer(status, "")}, status)
		want := breakerhttp.Classify(&http.Response{StatusCode: status}, nil)
		assert.Equal(t, once(want), outcomes(b), "status %d", status)
	}
}

// What a classifier of the user's calls Permanent is an answer too. Every other outcome stands, and so does that of an error.
func TestProbeWithAClassifier(t *testing.T) {
	for _, test := range []struct {
		base      roundTripFunc
		said      breaker.Outcome
		want      breaker.Outcome
		wantState breaker.State
	}{
		{answer(200, ""), breaker.Permanent, breaker.Success, breaker.Closed},
		{answer(503, ""), breaker.Permanent, breaker.Success, breaker.Closed},
		{answer(407, ""), breaker.Permanent, breaker.Permanent, breaker.HalfOpen},
		{answer(407, ""), breaker.Success, breaker.Success, breaker.Closed},
		{answer(200, ""), breaker.Throttled, breaker.Throttled, breaker.HalfOpen},
		{answer(200, ""), breaker.Ignored, breaker.Ignored, breaker.HalfOpen},
		{answer(401, ""), breaker.Transient, breaker.Transient, breaker.Open},
		{fail(http.ErrSchemeMismatch), breaker.Permanent, breaker.Permanent, breaker.HalfOpen},
	} {
		bothWays(t, func(t *testing.T, throughBody bool) {
			b := halfOpen(t)
			transport := &breakerhttp.Transport{Breaker: b, Base: test.base, ThroughBody: throughBody,
				Classify: func(*http.Response, error) breaker.Outcome { return test.said }}
			resp, err := transport.RoundTrip(get(t, "http://example.com/"))
			if err == nil {
				readAll(t, resp)
			}
			assert.Equal(t, once(test.want), ofProbe(b))
			assert.Equal(t, test.wantState, b.State())
			assert.Zero(t, b.Snapshot().ProbesInFlight)
		})
	}
}
