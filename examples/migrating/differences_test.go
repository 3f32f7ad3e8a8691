package migrating

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cep21/circuit/v4"
	"github.com/cep21/circuit/v4/closers/hystrix"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	mercari "github.com/mercari/go-circuitbreaker"
	"github.com/sony/gobreaker/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
)

// What docs/migrating.md says that the others do and this one does not.

func TestGobreakerStaysHalfOpenAfterAGoexit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cb := gobreaker.NewCircuitBreaker[int](gobreaker.Settings{
			ReadyToTrip: func(gobreaker.Counts) bool { return true },
			Timeout:     time.Second,
		})
		_, _ = cb.Execute(func() (int, error) { return 0, errDown })
		time.Sleep(2 * time.Second)
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = cb.Execute(func() (int, error) { runtime.Goexit(); return 0, nil })
		}()
		<-done
		time.Sleep(time.Hour)
		_, err := cb.Execute(func() (int, error) { return 7, nil })
		assert.ErrorIs(t, err, gobreaker.ErrTooManyRequests)
	})
}

// ours opens a breaker of this package and lets its break pass.
func ours(t *testing.T) *breaker.Breaker {
	b := breaker.MustNew(breaker.Settings{ConsecutiveFailures: 1, Recovery: breaker.Recovery{Off: true}})
	_ = b.Execute(t.Context(), func(context.Context) error { return errDown })
	time.Sleep(time.Minute)
	require.Equal(t, breaker.HalfOpen, b.State())
	return b
}

func TestOursOutlivesAGoexit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ours(t)
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = b.Execute(t.Context(), func(context.Context) error { runtime.Goexit(); return nil })
		}()
		<-done
		assert.NoError(t, b.Execute(t.Context(), func(context.Context) error { return nil }))
	})
}

func TestFailsafeLetsAnOldCallCloseTheCircuit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cb := circuitbreaker.NewBuilder[int]().WithDelay(time.Second).WithSuccessThreshold(1).Build()
		require.True(t, cb.TryAcquirePermit()) // while closed
		cb.RecordFailure()
		time.Sleep(time.Second)
		require.True(t, cb.TryAcquirePermit()) // the probe
		cb.RecordSuccess()                     // of the old call
		assert.True(t, cb.IsClosed())
	})
}

func TestOursDiscardsAnOldCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.MustNew(breaker.Settings{ConsecutiveFailures: 1, ProbeSuccesses: 1, Recovery: breaker.Recovery{Off: true}})
		old, err := b.TryAcquire(t.Context())
		require.NoError(t, err)
		_ = b.Execute(t.Context(), func(context.Context) error { return errDown })
		time.Sleep(time.Minute)
		probe, err := b.TryAcquire(t.Context())
		require.NoError(t, err)
		assert.False(t, old.Record(breaker.Success), "counted")
		assert.Equal(t, breaker.HalfOpen, b.State())
		assert.True(t, probe.Record(breaker.Success))
		assert.Equal(t, breaker.Closed, b.State())
	})
}

func TestFailsafeRoundsTheRate(t *testing.T) {
	cb := circuitbreaker.NewBuilder[int]().WithFailureRateThreshold(0.5, 200, time.Minute).Build()
	for range 101 {
		cb.RecordSuccess()
	}
	for range 99 {
		cb.RecordFailure()
	}
	assert.True(t, cb.IsOpen(), "at 99 of 200")
}

func TestMercariAdmitsEverythingHalfOpen(t *testing.T) {
	cb := mercari.New(mercari.WithCounterResetInterval(-1))
	cb.SetState(mercari.StateHalfOpen)
	for range 1000 {
		require.True(t, cb.Ready())
	}
}

func TestOursAdmitsOneProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ours(t)
		_, err := b.TryAcquire(t.Context())
		require.NoError(t, err)
		for range 1000 {
			_, err = b.TryAcquire(t.Context())
			require.ErrorIs(t, err, breaker.ErrRejected)
		}
	})
}

func TestCircuitDoesNotCountADeadlineOfTheCaller(t *testing.T) {
	trips := hystrix.Factory{ConfigureOpener: hystrix.ConfigureOpener{RequestVolumeThreshold: 1}}
	c := circuit.NewCircuitFromConfig("prices", trips.Configure("prices"))
	ctx, cancel := context.WithTimeout(t.Context(), -1)
	defer cancel()
	for range 100 {
		_ = c.Run(ctx, func(ctx context.Context) error { return ctx.Err() })
	}
	assert.False(t, c.IsOpen())
}

func TestOursCountsADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.MustNew(breaker.Settings{ConsecutiveFailures: 1, Recovery: breaker.Recovery{Off: true}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_ = b.Execute(ctx, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		assert.Equal(t, breaker.Open, b.State())
	})
}

func TestCircuitLetsAnOldCallCloseTheCircuit(t *testing.T) {
	trips := hystrix.Factory{ConfigureOpener: hystrix.ConfigureOpener{RequestVolumeThreshold: 1, ErrorThresholdPercentage: 1}}
	c := circuit.NewCircuitFromConfig("prices", trips.Configure("prices"))
	require.NoError(t, c.Run(t.Context(), func(ctx context.Context) error {
		_ = c.Run(ctx, func(context.Context) error { return errDown })
		require.True(t, c.IsOpen())
		return nil
	}))
	assert.False(t, c.IsOpen(), "although the sleep window has not passed")
}
