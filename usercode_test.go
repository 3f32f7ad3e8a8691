package breaker_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
)

// askingClock reads the breaker whenever it is read itself, as a clock with metrics might.
type askingClock struct {
	breaker.Clock
	asked   *breaker.Breaker
	reading bool
}

func (c *askingClock) Since(t time.Time) time.Duration {
	if c.asked != nil && !c.reading {
		c.reading = true
		defer func() { c.reading = false }()
		c.asked.Snapshot()
	}
	return c.Clock.Since(t)
}

// User code never runs under a lock of the breaker, so all of it may use the breaker. A peer hangs for ever.
func TestUserCodeMayUseTheBreaker(t *testing.T) {
	fake := drive(t, breaker.Settings{}).clock
	c := &askingClock{Clock: fake}
	calls := map[string]int{}
	var b *breaker.Breaker
	use := func(name string) {
		calls[name]++
		b.Snapshot()
		p, err := b.TryAcquire(t.Context())
		if err == nil {
			p.Release()
		}
	}
	b = breaker.MustNewClassic(breaker.Settings{
		ConsecutiveFailures: 2, Clock: c, SlowCallThreshold: time.Second,
		Classify:      func(error) breaker.Outcome { use("Classify"); return transient },
		Random:        func() float64 { use("Random"); return 0.5 },
		OnStateChange: func(context.Context, breaker.StateChange) { use("OnStateChange") },
	})
	c.asked = b
	for range 2 {
		_ = b.Execute(t.Context(), func(context.Context) error { use("fn"); return errDown })
	}
	fake.Add(firstBreak)
	require.NoError(t, b.Execute(t.Context(), func(context.Context) error { use("fn"); return nil }))
	for _, name := range []string{"Classify", "Random", "OnStateChange", "fn"} {
		assert.Positive(t, calls[name], name)
	}
}

// Whatever Random gives, the break stays within what the jitter promises; a number that is none is replaced.
func TestRandomThatIsOutOfRange(t *testing.T) {
	for name, test := range map[string]struct {
		random        func() float64
		lowest, limit time.Duration
		fault         any
	}{
		"below":     {func() float64 { return -1 }, firstBreak / 2, firstBreak / 2, nil},
		"zero":      {func() float64 { return 0 }, firstBreak / 2, firstBreak / 2, nil},
		"one":       {func() float64 { return 1 }, firstBreak - 1, firstBreak, nil},
		"infinite":  {func() float64 { return math.Inf(1) }, firstBreak - 1, firstBreak, nil},
		"no number": {math.NaN, firstBreak / 2, firstBreak, nil},
		"not given": {nil, firstBreak / 2, firstBreak, nil},
		"a panic":   {func() float64 { panic("no entropy") }, firstBreak / 2, firstBreak, "no entropy"},
	} {
		t.Run(name, func(t *testing.T) {
			var heard faults
			b := breaker.MustNewClassic(breaker.Settings{
				ConsecutiveFailures: 1, Random: test.random, OnCallbackError: heard.hear, Clock: drive(t, breaker.Settings{}).clock,
			})
			require.Equal(t, errDown, b.Execute(t.Context(), func(context.Context) error { return errDown }))
			wait, ok := b.RetryAfter()
			require.True(t, ok)
			assert.GreaterOrEqual(t, wait, test.lowest)
			assert.LessOrEqual(t, wait, test.limit)
			if test.fault == nil {
				assert.Empty(t, heard)
				return
			}
			require.Len(t, heard, 2, "when the breaker was made, and after the open")
			for _, fault := range heard {
				assert.Equal(t, "Random", fault.Callback)
				assert.Equal(t, test.fault, fault.Panic)
			}
		})
	}
}

// Random is asked for a number to keep in stock when the breaker is made, and for the next one after each open, and for nothing else.
func TestRandomIsAskedOnceForEachBreak(t *testing.T) {
	const slow = 2 * time.Second
	for _, test := range []struct {
		name string
		call func(*driven)
		want int
	}{
		{"a fast success", func(d *driven) { d.report(success) }, 1},
		{"a neutral outcome", func(d *driven) { d.permit().RecordLatency(breaker.Throttled, slow) }, 1},
		{"a failure", func(d *driven) { d.report(transient) }, 1},
		{"a slow success", func(d *driven) { d.permit().RecordLatency(success, slow) }, 1},
		{"a slow probe", func(d *driven) { d.halfOpen().RecordLatency(success, slow) }, 3},
		{"a fast probe", func(d *driven) { d.halfOpen().Record(success) }, 2},
		{"a lost probe", func(d *driven) { d.halfOpen(); d.clock.Add(time.Hour); d.refused() }, 3},
		{"a refusal", func(d *driven) { d.trip(); d.refused() }, 2},
		{"a late slow success", func(d *driven) { p := d.permit(); d.trip(); p.RecordLatency(success, slow) }, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			asked := 0
			d := drive(t, breaker.Settings{
				SlowCallThreshold: time.Second, BreakJitter: breaker.JitterFull,
				Random: func() float64 { asked++; return 0.75 },
			})
			test.call(d)
			assert.Equal(t, test.want, asked)
			if d.State() == breaker.Open {
				assert.InDelta(t, 0.75, float64(d.last().Break)/float64(firstBreak<<(d.last().Opens-1)), 1e-9)
			}
		})
	}
}

// Without jitter there is nothing to draw.
func TestRandomIsNotAskedWithoutJitter(t *testing.T) {
	d := drive(t, breaker.Settings{
		BreakJitter: breaker.JitterNone, Random: func() float64 { t.Error("asked"); return 0 }, SlowCallThreshold: time.Second,
	})
	d.halfOpen().RecordLatency(success, 2*time.Second)
	assert.Equal(t, breaker.ReasonProbeSlow, d.last().Reason)
}
