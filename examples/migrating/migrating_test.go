package migrating

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// service is the dependency.
type service struct {
	err   error
	asked int
}

func (s *service) fetch(context.Context, string) (int, error) {
	s.asked++
	return 7, s.err
}

// ask sends n calls and returns how many of them the dependency has seen.
func (s *service) ask(n int, price fetcher) (asked int) {
	before := s.asked
	for range n {
		_, _ = price(context.Background(), "tea")
	}
	return s.asked - before
}

var errDown = errors.New("connection refused")

const fallback = 3

func fallingBack(guard func(fetcher, int) fetcher) func(fetcher) fetcher {
	return func(f fetcher) fetcher { return guard(f, fallback) }
}

// Both sides are asked the same, and the dependency sees the same. Each run ends with the circuit open: the breaker of mercari
// keeps a goroutine while it is closed.
func TestBothSides(t *testing.T) {
	for name, test := range map[string]struct {
		guard   func(fetcher) fetcher
		opensAt int // failures
	}{
		"gobreaker, before":   {gobreakerBefore, 5},
		"gobreaker, after":    {gobreakerAfter, 5},
		"failsafe-go, before": {failsafeBefore, 20},
		"failsafe-go, after":  {failsafeAfter, 20},
		"hystrix-go, after":   {hystrixAfter, 20},
		"mercari, before":     {mercariBefore, 20},
		"mercari, after":      {mercariAfter, 20},
		"circuit, before":     {fallingBack(circuitBefore), 20},
		"circuit, after":      {fallingBack(circuitAfter), 20},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s service
				price := test.guard(s.fetch)
				p, err := price(t.Context(), "tea")
				require.NoError(t, err)
				assert.Equal(t, 7, p)
				time.Sleep(time.Minute) // the success leaves the window

				s.err = errDown
				assert.Equal(t, test.opensAt, s.ask(100, price), "asked before the circuit opened")
				s.err = nil
				time.Sleep(20 * time.Second) // the break
				assert.GreaterOrEqual(t, s.ask(10, price), 9, "asked once it is closed again")
				s.err = errDown
				s.ask(100, price)
				assert.Zero(t, s.ask(1, price), "open again")
			})
		})
	}
}

// An answer that is no failure opens no circuit.
func TestAnswersAreNoFailures(t *testing.T) {
	for name, guard := range map[string]func(fetcher) fetcher{
		"gobreaker, before":   gobreakerBefore,
		"gobreaker, after":    gobreakerAfter,
		"failsafe-go, before": failsafeBefore,
		"failsafe-go, after":  failsafeAfter,
		"mercari, before":     mercariBefore,
		"mercari, after":      mercariAfter,
		"circuit, before":     fallingBack(circuitBefore),
		"circuit, after":      fallingBack(circuitAfter),
	} {
		t.Run(name, func(t *testing.T) {
			s := service{err: errNoPrice}
			assert.Equal(t, 100, s.ask(100, guard(s.fetch)))
		})
	}
}

// The circuit of hystrix-go learns of its calls in the background and keeps goroutines for ever, so it runs on real time.
func TestHystrixBefore(t *testing.T) {
	var s service
	price := hystrixBefore(s.fetch)
	p, err := price(t.Context(), "tea")
	require.NoError(t, err)
	assert.Equal(t, 7, p)
	s.err = errDown
	for s.ask(1, price) > 0 {
		require.Less(t, s.asked, 10_000, "never opens")
	}
	_, err = price(t.Context(), "tea")
	assert.ErrorContains(t, err, "circuit open")
}

func TestCircuitFallsBack(t *testing.T) {
	for name, guard := range map[string]func(fetcher) fetcher{
		"before": fallingBack(circuitBefore), "after": fallingBack(circuitAfter),
	} {
		s := service{err: errDown}
		price := guard(s.fetch)
		for range 30 {
			p, err := price(t.Context(), "tea")
			require.NoError(t, err, name)
			assert.Equal(t, fallback, p, name)
		}
		assert.Less(t, s.asked, 30, name)
	}
}
