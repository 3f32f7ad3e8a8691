package entry

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/brownout-go/breaker"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// judges are the entries that go by how calls end.
func judges() (judges []Entry) {
	for _, e := range Field() {
		if _, isBulkhead := e.New(1).(*bulkhead); !isBulkhead && e.Kind != Absent {
			judges = append(judges, e)
		}
	}
	return judges
}

// bubble runs f with a guard of the entry on fake time, and ends what the guard has started.
func bubble(t *testing.T, e Entry, f func(t *testing.T, g Guard)) {
	t.Run(e.Name(), func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(40 * 365 * 24 * time.Hour) // go-zero takes a time before its process for none
			g := e.New(1)
			f(t, g)
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			if c, ok := g.(interface{ Close() }); ok {
				c.Close()
			}
		})
	})
}

// calls makes n calls 10 ms apart, which end with err, and returns how many were refused.
func calls(g Guard, n int, err error) (refused int) {
	for range n {
		ran := false
		_ = g.Call(context.Background(), func(context.Context) error {
			ran = true
			return err
		})
		if !ran {
			refused++
		}
		time.Sleep(10 * time.Millisecond)
	}
	return refused
}

func TestEntries_open_on_failures_and_refuse(t *testing.T) {
	for _, e := range judges() {
		bubble(t, e, func(t *testing.T, g Guard) {
			require.Equal(t, Closed, g.State())
			assert.Positive(t, calls(g, 200, errBench), "refused")
			assert.Equal(t, Open, g.State())
		})
	}
}

func TestEntries_refuse_nothing_in_health(t *testing.T) {
	for _, e := range judges() {
		bubble(t, e, func(t *testing.T, g Guard) {
			assert.Zero(t, calls(g, 1000, nil), "refused")
			assert.Equal(t, Closed, g.State())
		})
	}
}

func TestEntries_come_back(t *testing.T) {
	for _, e := range judges() {
		bubble(t, e, func(t *testing.T, g Guard) {
			calls(g, 200, errBench)
			calls(g, 5*6000, nil)
			assert.Equal(t, Closed, g.State())
			assert.Zero(t, calls(g, 100, nil), "refused")
		})
	}
}

func TestEntries_pass_the_error_of_the_call_on(t *testing.T) {
	for _, e := range judges() {
		bubble(t, e, func(t *testing.T, g Guard) {
			err := g.Call(context.Background(), fail)
			assert.ErrorIs(t, err, errBench)
		})
	}
}

func TestTuned_entries_ignore_callers_that_cancel(t *testing.T) {
	for _, e := range judges() {
		if e.Config != tuned {
			continue
		}
		bubble(t, e, func(t *testing.T, g Guard) {
			ctx, cancel := context.WithCancel(context.Background())
			for range 200 {
				inner, stop := context.WithCancel(ctx)
				_ = g.Call(inner, func(ctx context.Context) error {
					stop()
					return ctx.Err()
				})
				time.Sleep(10 * time.Millisecond)
			}
			cancel()
			assert.Equal(t, Closed, g.State())
		})
	}
}

func TestBulkhead_refuses_one_call_too_many(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bulkhead{limit: 2}
		for range 2 {
			go func() {
				_ = b.Call(context.Background(), func(context.Context) error {
					time.Sleep(time.Second)
					return nil
				})
			}()
		}
		synctest.Wait()
		require.ErrorIs(t, b.Call(context.Background(), succeed), errFull)
		assert.Equal(t, Open, b.State())
		time.Sleep(time.Second)
		synctest.Wait()
		assert.NoError(t, b.Call(context.Background(), succeed))
	})
}

func TestSlowIsFailed_opens_on_slow_successes(t *testing.T) {
	rule := Field()[len(Field())-2]
	require.Equal(t, "slow is failed", rule.Config)
	for _, test := range []struct {
		took time.Duration
		want State
	}{{500 * time.Millisecond, Closed}, {501 * time.Millisecond, Open}} {
		bubble(t, rule, func(t *testing.T, g Guard) {
			for range 6 {
				err := g.Call(context.Background(), func(context.Context) error {
					time.Sleep(test.took)
					return nil
				})
				require.NoError(t, err)
			}
			assert.Equal(t, test.want, g.State())
		})
	}
}

func TestBench_loops_do_what_they_say(t *testing.T) {
	for _, e := range Field() {
		if e.Bench == nil {
			continue
		}
		t.Run(e.Name(), func(t *testing.T) {
			b := e.Bench()
			for _, loop := range []func(int){b.Success, b.Refused, b.HalfOpen} {
				if loop != nil {
					loop(100)
				}
			}
			made := b.New()
			require.NotNil(t, made)
			b.Warm(made)
		})
	}
}

// The loop that times refusals opened its breaker by five failures within a microsecond. Zero settings take those for one
// event and stay closed, so that the cost of a success was shown as that of a refusal.
func TestRegression_RefusalsAreTimedOnABreakerThatIsOpen(t *testing.T) {
	for _, s := range []breaker.Settings{{}, breaker.Classic(), ConsecutiveOnly()} {
		synctest.Test(t, func(t *testing.T) {
			b := tripped(withBreak(s, time.Hour))
			assert.Equal(t, breaker.Open, b.State())
			require.ErrorIs(t, b.Execute(context.Background(), succeed), breaker.ErrRejected)
		})
		synctest.Test(t, func(t *testing.T) {
			b := tripped(withBreak(s, 1))
			for range 2 {
				time.Sleep(time.Second)
				err := b.Execute(context.Background(), func(ctx context.Context) error {
					assert.Equal(t, breaker.HalfOpen, b.State())
					require.ErrorIs(t, b.Execute(ctx, succeed), breaker.ErrRejected)
					return errBench
				})
				require.ErrorIs(t, err, errBench, "the next round is half-open too")
			}
		})
	}
}
