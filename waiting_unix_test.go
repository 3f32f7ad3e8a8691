//go:build unix

package breaker

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Ten thousand callers wait for an outage of some seconds of the real clock. They must cost next to no processor time, nobody
// may be lost, and no more than the two probes may go at once until the circuit closes.
func TestWaiting_TenThousand(t *testing.T) {
	if testing.Short() {
		t.Skip("takes an outage of five real seconds")
	}
	const callers, outage = 10_000, 5 * time.Second
	s := brittle(nil)
	s.BreakDuration, s.HalfOpenProbes, s.ProbeSuccesses = outage, 2, 4
	s.Recovery = Recovery{Fraction: 0.2}
	b := MustNewClassic(s)
	trip(t, b)
	goroutines := runtime.NumGoroutine()
	var probing, most, served atomic.Int64
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			p, err := b.Acquire(context.Background())
			if err != nil {
				return
			}
			if p.IsProbe() {
				most.Store(max(most.Load(), probing.Add(1))) // racy only if it is about to fail
				<-time.After(20 * time.Millisecond)
				probing.Add(-1)
			}
			served.Add(1)
			p.Record(Success)
		})
	}
	for b.Snapshot().Waiting < callers {
		<-time.After(time.Millisecond)
	}
	requireIdle(t, b)
	require.Equal(t, callers, b.Snapshot().Waiting)
	all.Wait()
	assert.Equal(t, int64(callers), served.Load())
	assert.LessOrEqual(t, most.Load(), int64(2))
	assert.Zero(t, b.Snapshot().Waiting)
	assert.Eventually(t, func() bool { return runtime.NumGoroutine() <= goroutines+1 }, time.Second, time.Millisecond,
		"goroutines are left, beside the one that asks this")
}

// requireIdle requires that the process uses next to no processor time until shortly before a break ends.
func requireIdle(t *testing.T, b *Breaker) {
	start, used := time.Now(), userTime(t)
	left, _ := b.RetryAfter()
	<-time.After(left - 100*time.Millisecond)
	used, wait := userTime(t)-used, time.Since(start)
	t.Logf("%v of user time in %v: %.3f %%", used, wait, 100*used.Seconds()/wait.Seconds())
	require.Less(t, used, wait/100)
}

// userTime returns the processor time that the process has used.
func userTime(t *testing.T) time.Duration {
	var usage syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano())
}
