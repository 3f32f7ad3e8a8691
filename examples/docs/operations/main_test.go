package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
	"github.com/brownout-go/breaker/examples/docs/internal/manual"
)

func TestControl(t *testing.T) {
	var monitor breaker.Monitor
	orders := breaker.MustNew(breaker.Settings{Name: "orders", Monitor: &monitor})
	stock := breaker.MustNew(breaker.Settings{Name: "stock", Monitor: &monitor})
	handler := control(&monitor)
	for _, step := range []struct {
		method, path string
		code         int
		stock        breaker.State
	}{
		{http.MethodPost, "/circuits/prices/isolate", http.StatusNotFound, breaker.Closed},
		{http.MethodGet, "/circuits/stock/isolate", http.StatusMethodNotAllowed, breaker.Closed},
		{http.MethodPost, "/circuits/stock/isolate", http.StatusOK, breaker.Isolated},
		{http.MethodPost, "/circuits/stock/reset", http.StatusOK, breaker.Closed},
	} {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest(step.method, step.path, nil))
		assert.Equal(t, step.code, answer.Code, step.path)
		assert.Equal(t, step.stock, stock.State(), step.path)
		assert.Equal(t, breaker.Closed, orders.State(), step.path)
	}
}

// Two breakers may have one name. The operator means both.
func TestControlOfTwoBreakersOfOneName(t *testing.T) {
	var monitor breaker.Monitor
	left := breaker.MustNew(breaker.Settings{Name: "orders", Monitor: &monitor})
	right := breaker.MustNew(breaker.Settings{Name: "orders", Monitor: &monitor})
	answer := httptest.NewRecorder()
	control(&monitor).ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/circuits/orders/isolate", nil))
	assert.Equal(t, http.StatusOK, answer.Code)
	assert.Equal(t, breaker.Isolated, left.State())
	assert.Equal(t, breaker.Isolated, right.State())
}

func TestStalled(t *testing.T) {
	clock := new(manual.Clock)
	b := breaker.MustNew(breaker.Settings{
		ConsecutiveFailures: 1,
		BreakDuration:       10 * time.Second,
		BreakJitter:         breaker.JitterNone,
		SlowCallThreshold:   time.Second,
		ProbeSuccesses:      1,
		Recovery:            breaker.Recovery{Fraction: 0.5},
		Clock:               clock,
	})
	call := func(o breaker.Outcome) {
		p, err := b.TryAcquire(t.Context())
		if errors.Is(err, breaker.ErrRejected) {
			return
		}
		require.NoError(t, err)
		p.RecordLatency(o, 2*time.Second)
	}
	call(breaker.Transient)
	clock.Advance(10 * time.Second)
	call(breaker.Success) // a slow probe begins the ramp
	for second := range 12 {
		assert.Equal(t, second > 10, stalled(b.Snapshot(), clock.Now()), "after %d s", second)
		for range 20 {
			call(breaker.Success)
		}
		clock.Advance(time.Second)
	}
	require.NoError(t, b.ResetContext(context.Background()))
	assert.False(t, stalled(b.Snapshot(), clock.Now()))
}
