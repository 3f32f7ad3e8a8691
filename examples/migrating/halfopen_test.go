package migrating

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/sony/gobreaker/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
)

// What docs/migrating.md says about half-open.

// probing is a half-open circuit of either package: admit asks for a call, which end ends.
type probing struct {
	admit func() (end func(ok bool), admitted bool)
	state func() string
}

func probingGobreaker(t *testing.T, maxRequests uint32) probing {
	cb := gobreaker.NewTwoStepCircuitBreaker[int](gobreaker.Settings{
		MaxRequests: maxRequests,
		ReadyToTrip: func(gobreaker.Counts) bool { return true },
	})
	done, err := cb.Allow()
	require.NoError(t, err)
	done(errDown)
	time.Sleep(time.Minute + 1)
	return probing{
		admit: func() (func(bool), bool) {
			done, err := cb.Allow()
			return func(ok bool) { done(outcome(ok)) }, err == nil
		},
		state: func() string { return cb.State().String() },
	}
}

func outcome(ok bool) error {
	if ok {
		return nil
	}
	return errDown
}

func probingCohort(t *testing.T, size int) probing {
	b := breaker.MustNew(breaker.Settings{ConsecutiveFailures: 1, ProbeCohort: size, Recovery: breaker.Recovery{Off: true}})
	_ = b.Execute(t.Context(), func(context.Context) error { return errDown })
	time.Sleep(time.Minute)
	return probing{
		admit: func() (func(bool), bool) {
			permit, err := b.TryAcquire(t.Context())
			return func(ok bool) { permit.Done(t.Context(), outcome(ok)) }, err == nil
		},
		state: func() string { return b.State().String() },
	}
}

// Gobreaker's MaxRequests and ProbeCohort admit, close and re-open alike, whatever becomes of the calls and in whatever order
// they come and end: every history of six steps, each of which asks for a call or ends the oldest one well or badly.
func TestMaxRequestsIsProbeCohort(t *testing.T) {
	const steps, choices = 6, 3
	for size := 1; size <= 3; size++ {
		for history := range choices * choices * choices * choices * choices * choices {
			synctest.Test(t, func(t *testing.T) {
				theirs, ours := probingGobreaker(t, uint32(size)), probingCohort(t, size)
				var ends [][2]func(bool)
				for step, rest := 0, history; step < steps && ours.state() == "half-open"; step, rest = step+1, rest/choices {
					if choice := rest % choices; choice == 0 {
						theirEnd, theyAdmit := theirs.admit()
						ourEnd, weAdmit := ours.admit()
						require.Equal(t, theyAdmit, weAdmit, "size %d, history %d, step %d", size, history, step)
						if weAdmit {
							ends = append(ends, [2]func(bool){theirEnd, ourEnd})
						}
					} else if len(ends) > 0 {
						ends[0][0](choice == 1)
						ends[0][1](choice == 1)
						ends = ends[1:]
					}
					require.Equal(t, theirs.state(), ours.state(), "size %d, history %d, step %d", size, history, step)
				}
			})
		}
	}
}

// Without a success threshold failsafe-go judges half-open by what opens it: the first success closes a circuit that opens on
// five failures in a row, after four failures as well.
func TestFailsafeClosesOnTheFirstSuccessOfMany(t *testing.T) {
	cb := circuitbreaker.NewBuilder[int]().WithFailureThreshold(5).Build()
	cb.HalfOpen()
	for range 5 {
		require.True(t, cb.TryAcquirePermit())
	}
	assert.False(t, cb.TryAcquirePermit())
	for range 4 {
		cb.RecordFailure()
		require.True(t, cb.IsHalfOpen())
	}
	cb.RecordSuccess()
	assert.True(t, cb.IsClosed())
}

// Its failure threshold of n of m gives the verdict of a cohort of m that is judged by a ratio of n/m.
func TestFailsafeRatioIsACohort(t *testing.T) {
	const calls = 4
	for failures := 1; failures <= calls; failures++ {
		for history := range 1 << calls {
			synctest.Test(t, func(t *testing.T) {
				cb := circuitbreaker.NewBuilder[int]().WithFailureThresholdRatio(uint(failures), calls).Build()
				cb.HalfOpen()
				b := breaker.MustNew(breaker.Settings{
					ConsecutiveFailures: 1, ProbeCohort: calls, FailureRatio: float64(failures) / calls,
					Recovery: breaker.Recovery{Off: true},
				})
				_ = b.Execute(t.Context(), func(context.Context) error { return errDown })
				time.Sleep(time.Minute)
				for call := range calls {
					ok := history>>call&1 == 0
					if cb.IsHalfOpen() {
						record := map[bool]func(){true: cb.RecordSuccess, false: cb.RecordFailure}[ok]
						record()
					}
					if b.State() == breaker.HalfOpen {
						_ = b.Execute(t.Context(), func(context.Context) error { return outcome(ok) })
					}
				}
				require.NotEqual(t, breaker.HalfOpen, b.State())
				assert.Equal(t, cb.IsOpen(), b.State() == breaker.Open, "%d of %d, history %b", failures, calls, history)
			})
		}
	}
}
