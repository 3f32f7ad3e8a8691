package breakerhttp_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
	"github.com/brownout-go/breaker/breakerhttp"
)

// costs are the transports whose cost is bounded, on a base that costs nothing.
func costs() map[string]*breakerhttp.Transport {
	resp := &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}
	b := breaker.MustNew(breaker.Settings{Name: "server"})
	none := func(*http.Request) (*breaker.Breaker, error) { return nil, nil }
	return map[string]*breakerhttp.Transport{
		"headers":      {Base: respond(resp), Breaker: b},
		"through body": {Base: respond(resp), Breaker: b, ThroughBody: true},
		"classifier":   {Base: respond(resp), Breaker: b, Classify: breakerhttp.Classify},
		"unguarded":    {Base: respond(resp), Select: none},
	}
}

// A round trip through the breaker costs at most two allocations beside those of its base, which has none here.
func TestAllocationsOfARoundTrip(t *testing.T) {
	req := get(t, "http://example.com/")
	for name, transport := range costs() {
		allocations := testing.AllocsPerRun(100, func() {
			_, err := transport.RoundTrip(req)
			require.NoError(t, err)
		})
		assert.LessOrEqual(t, allocations, 2.0, name)
	}
}

// A response whose end is watched costs no allocation more.
func TestAllocationsOfAWatchedBody(t *testing.T) {
	body := newWatchedBody()
	transport := &breakerhttp.Transport{Breaker: breaker.MustNew(consecutive(1)), ThroughBody: true}
	resp := &http.Response{StatusCode: http.StatusOK}
	transport.Base = respond(resp)
	req := get(t, "http://example.com/")
	allocations := testing.AllocsPerRun(100, func() {
		resp.Body = body
		got, err := transport.RoundTrip(req)
		require.NoError(t, err)
		require.NoError(t, got.Body.Close())
	})
	assert.LessOrEqual(t, allocations, 2.0)
	assert.EqualValues(t, 101, body.closes.Load())
}

func BenchmarkRoundTrip(b *testing.B) {
	req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, "http://example.com/", nil)
	require.NoError(b, err)
	for name, transport := range costs() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = transport.RoundTrip(req)
			}
		})
	}
}
