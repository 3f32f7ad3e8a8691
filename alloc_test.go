package breaker_test

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
)

// The bounds of section 16 of the specification. None of these may allocate.
func TestNothingAllocates(t *testing.T) {
	ctx := t.Context()
	run := func(context.Context) error { return nil }
	get := func(context.Context) (int, error) { return 7, nil }
	for name, s := range map[string]settings{"adaptive": {}, "consecutive": onlyConsecutive(), "ramp": ramped} {
		b := breaker.MustNewClassic(s)
		_ = b.Execute(ctx, run) // the first success makes the histogram
		for call, f := range map[string]func(){
			"Breaker.Execute": func() { _ = b.Execute(ctx, run) },
			"Execute":         func() { _, _ = breaker.Execute(ctx, b, get) },
			"Acquire": func() {
				p, _ := b.Acquire(ctx)
				defer p.Release()
				p.Done(ctx, nil)
			},
			"TryAcquire": func() {
				p, _ := b.TryAcquire(ctx)
				p.Record(success)
			},
			"State":    func() { b.State() },
			"OpenedAt": func() { b.OpenedAt() },
		} {
			assert.Zero(t, testing.AllocsPerRun(100, f), "%s: %s", name, call)
		}
	}
}

// An outcome is found in an error without allocating.
func TestErrorsDoNotAllocate(t *testing.T) {
	b := breaker.MustNewClassic(settings{Classify: func(error) breaker.Outcome { return breaker.Permanent }})
	for name, err := range map[string]error{
		"plain": errDown, "wrapped": fmt.Errorf("orders: %w", errDown), "marked": breaker.Mark(errDown, breaker.Throttled),
		"refused": breaker.ErrRejected,
	} {
		run := func(context.Context) error { return err }
		assert.Zero(t, testing.AllocsPerRun(100, func() { _ = b.Execute(t.Context(), run) }), name)
	}
}

// A refusal costs no allocation in any state, however long its period lasts.
func TestRefusalsDoNotAllocate(t *testing.T) {
	ctx := t.Context()
	run := func(context.Context) error { return nil }
	for _, state := range everyState[1:] {
		d := drive(t, settings{Recovery: breaker.Recovery{Fraction: 1, Initial: 1e-9, Max: time.Hour}})
		d.refuseIn(state)
		d.refused()
		before := d.Snapshot().Totals.Rejected
		assert.Zero(t, testing.AllocsPerRun(100, func() { _ = d.Execute(ctx, run) }), "Execute while %v", state)
		assert.Zero(t, testing.AllocsPerRun(100, func() { _, _ = d.TryAcquire(ctx) }), "TryAcquire while %v", state)
		assert.Equal(t, before+202, d.Snapshot().Totals.Rejected, "all of them were refused")
	}
}

// With the default clock, which cannot be set back, an open breaker refuses without its lock.
func TestRefusalOnTheDefaultClock(t *testing.T) {
	ctx := t.Context()
	b := breaker.MustNewClassic(settings{ConsecutiveFailures: 1, BreakDuration: time.Hour, BreakJitter: breaker.JitterNone})
	_ = b.Execute(ctx, func(context.Context) error { return errDown })
	var rejected *breaker.RejectedError
	_, err := b.TryAcquire(ctx)
	require.ErrorAs(t, err, &rejected)
	assert.Equal(t, breaker.Open, rejected.State)
	assert.Equal(t, errDown, rejected.Cause)
	wait, ok := rejected.RetryAfter()
	assert.True(t, ok)
	assert.InDelta(t, time.Hour, wait, float64(time.Minute))
	assert.Zero(t, testing.AllocsPerRun(100, func() { _ = b.Execute(ctx, func(context.Context) error { return nil }) }))
	assert.Equal(t, uint64(102), b.Snapshot().Totals.Rejected)

	b.Isolate()
	_, err = b.TryAcquire(ctx)
	require.ErrorAs(t, err, &rejected)
	assert.Equal(t, breaker.Isolated, rejected.State)
	b.Reset()
	require.NoError(t, b.Execute(ctx, func(context.Context) error { return nil }))
}

// bytesOf returns what one of many breakers takes on the heap. Whatever else allocates meanwhile can only add to it, so the
// least of several measurements is the one to trust.
func bytesOf(t *testing.T, s settings, use func(*breaker.Breaker)) uint64 {
	t.Helper()
	const many = 128
	least := uint64(math.MaxUint64)
	for range 5 {
		breakers := make([]*breaker.Breaker, many)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for i := range breakers {
			breakers[i] = breaker.MustNewClassic(s)
			use(breakers[i])
		}
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(breakers)
		least = min(least, (after.TotalAlloc-before.TotalAlloc)/many)
	}
	return least
}

func TestMemoryOfABreaker(t *testing.T) {
	unused := func(*breaker.Breaker) {}
	used := func(b *breaker.Breaker) {
		for range 40 {
			_ = b.Execute(context.Background(), func(context.Context) error { return nil })
		}
	}
	for _, test := range []struct {
		name     string
		settings settings
		use      func(*breaker.Breaker)
		limit    uint64
	}{
		{"default, before its first sample", settings{}, unused, 1 << 10},
		{"default, with samples", settings{}, used, 4<<10 + 512},
		{"default, with latencies above 268 s as well", settings{}, func(b *breaker.Breaker) {
			used(b)
			p, _ := b.TryAcquire(context.Background())
			p.RecordLatency(success, math.MaxInt64)
		}, 8 << 10},
		{"consecutive alone", onlyConsecutive(), used, 640},
	} {
		got := bytesOf(t, test.settings, test.use)
		t.Logf("%s: %d bytes", test.name, got)
		assert.LessOrEqual(t, got, test.limit, test.name)
	}
}
