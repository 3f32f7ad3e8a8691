package breaker

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// inUse returns the bytes in use once everything has been collected that nobody holds. What a first collection frees may be all
// that kept something else, such as a context that runs a function when it ends.
func inUse() int64 {
	var stats runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// useUp does with a breaker what leaves most behind: it opens, is waited for in vain, is observed, and forgets a probe.
func useUp(t *testing.T, b *Breaker) {
	_ = b.Execute(t.Context(), func(context.Context) error { return errDown })
	ctx, cancel := context.WithCancel(context.Background())
	var waits sync.WaitGroup
	waits.Go(func() { _, _ = b.Acquire(ctx) })
	for b.Snapshot().Waiting == 0 {
		runtime.Gosched()
	}
	cancel()
	waits.Wait()
	b.Reset()
	for range 40 {
		_ = b.Execute(context.Background(), func(context.Context) error { return nil })
	}
	_ = b.Execute(context.Background(), func(context.Context) error { return errDown })
	_, _ = b.TryAcquire(context.Background())
}

// A breaker needs no closing: nothing is left of ten thousand that were made, used and dropped, though a monitor knows them.
func TestNothingIsLeftOfDroppedBreakers(t *testing.T) {
	m := new(Monitor)
	m.Subscribe(func(context.Context, StateChange) {})
	make1000 := func() (alive []*Breaker) {
		for range 1000 {
			b := MustNew(Settings{
				ConsecutiveFailures: 1, BreakDuration: time.Hour, MaxBreakDuration: time.Hour, Monitor: m,
			})
			useUp(t, b)
			alive = append(alive, b)
		}
		return alive
	}
	before, goroutines := inUse(), runtime.NumGoroutine()
	alive := make1000()
	cost := inUse() - before
	require.Greater(t, cost, int64(1<<20), "else this test would see nothing")
	runtime.KeepAlive(alive)
	for range 9 {
		make1000()
	}
	left := inUse() - before
	t.Logf("1000 breakers hold %d KiB; %d KiB are left of 10000", cost>>10, left>>10)
	assert.Less(t, left, cost/4)
	assert.Empty(t, m.Breakers())
	requireGoroutines(t, goroutines)
	runtime.KeepAlive(m)
}
