package breakerhttp_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
	"github.com/brownout-go/breaker/breakerhttp"
)

// Waiting and the delay of a refusal are those of breaker.Execute.
func TestWaitsWhenTheBreakerDoes(t *testing.T) {
	bothWays(t, func(t *testing.T, throughBody bool) {
		synctest.Test(t, func(t *testing.T) {
			s := consecutive(1)
			s.WhenOpen = breaker.Wait
			b := breaker.MustNew(s)
			transport := &breakerhttp.Transport{Breaker: b, Base: answer(500, ""), ThroughBody: throughBody}
			roundTrip(t, transport, 500)

			start := time.Now()
			transport.Base = answer(200, "")
			roundTrip(t, transport, 200)
			assert.Equal(t, 10*time.Second, time.Since(start))
			assert.Equal(t, breaker.HalfOpen, b.State())
			assert.Zero(t, b.Snapshot().Totals.Rejected)
		})
	})
}

func TestWaitEndsWithTheContext(t *testing.T) {
	bothWays(t, func(t *testing.T, throughBody bool) {
		synctest.Test(t, func(t *testing.T) {
			s := consecutive(1)
			s.WhenOpen = breaker.Wait
			b := breaker.MustNew(s)
			b.Isolate()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			req, body := post(ctx, t)
			transport := &breakerhttp.Transport{Breaker: b, Base: answer(200, ""), ThroughBody: throughBody}
			_, err := transport.RoundTrip(req)
			assert.ErrorIs(t, err, context.DeadlineExceeded)
			assert.EqualValues(t, 1, body.closes.Load())
			assert.Empty(t, outcomes(b))
		})
	})
}

func TestRejectionDelay(t *testing.T) {
	bothWays(t, func(t *testing.T, throughBody bool) {
		synctest.Test(t, func(t *testing.T) {
			s := consecutive(1)
			s.RejectionDelay = 3 * time.Second
			b := breaker.MustNew(s)
			b.Isolate()
			transport := &breakerhttp.Transport{Breaker: b, Base: answer(200, ""), ThroughBody: throughBody}
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
			defer cancel()
			for i, want := range []time.Duration{3 * time.Second, time.Second} { // the second delay is cut short
				start := time.Now()
				_, err := transport.RoundTrip(get(t, "http://example.com/").WithContext(ctx))
				require.ErrorIs(t, err, breaker.ErrRejected, "call %d", i)
				assert.Equal(t, want, time.Since(start), "call %d", i)
			}
			start := time.Now()
			_, err := transport.RoundTrip(get(t, "http://example.com/").WithContext(ctx))
			assert.ErrorIs(t, err, context.DeadlineExceeded)
			assert.Zero(t, time.Since(start))
		})
	})
}
