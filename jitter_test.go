package breaker

import (
	"fmt"
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const longest = time.Duration(math.MaxInt64)

// grownModel is the formula in numbers that cannot overflow.
func grownModel(first, limit time.Duration, n int) time.Duration {
	d := new(big.Int).Lsh(big.NewInt(int64(first)), uint(n-1))
	if d.Cmp(big.NewInt(int64(limit))) > 0 {
		return limit
	}
	return time.Duration(d.Int64())
}

func TestGrownBreakSaturates(t *testing.T) {
	for _, first := range []time.Duration{1, time.Millisecond, 15 * time.Second, longest / 2, longest/2 + 1, longest} {
		for _, limit := range []time.Duration{first, min(first, longest-1) + 1, 2 * time.Minute, longest - 1, longest} {
			if limit < first {
				continue
			}
			for _, n := range []int{1, 2, 3, 32, 33, 62, 63, 64, 65, 1000} {
				require.Equal(t, grownModel(first, limit, n), grown(first, limit, n), "%v up to %v, open %d", first, limit, n)
			}
			require.Equal(t, limit, grown(first, limit, math.MaxInt32), "%v up to %v", first, limit)
		}
	}
}

func TestGrownBreakByHand(t *testing.T) {
	want := []time.Duration{15, 30, 60, 120, 120}
	for i, seconds := range want {
		assert.Equal(t, seconds*time.Second, grown(15*time.Second, 2*time.Minute, i+1), "open %d", i+1)
	}
}

func TestJitterSpread(t *testing.T) {
	almostOne := math.Nextafter(1, 0)
	for _, test := range []struct {
		jitter Jitter
		d      time.Duration
		r      float64
		want   time.Duration
	}{
		{JitterNone, time.Minute, 0, time.Minute},
		{JitterNone, time.Minute, almostOne, time.Minute},
		{JitterEqual, time.Minute, 0, 30 * time.Second},
		{JitterEqual, time.Minute, 0.5, 45 * time.Second},
		{JitterEqual, 3, 0, 1},
		{JitterFull, time.Minute, 0, 1},
		{JitterFull, time.Minute, 0.25, 15 * time.Second},
		{JitterFull, 1, almostOne, 1},
		{JitterNone, longest, 0.5, longest},
		{JitterEqual, longest, 0, 1 << 62},
		{JitterFull, longest, 0.5, 1 << 62},
	} {
		t.Run(fmt.Sprint(test.jitter, test.d, test.r), func(t *testing.T) {
			assert.Equal(t, test.want, test.jitter.spread(test.d, test.r))
		})
	}
}

// Whatever the number, the break stays within the bounds that the jitter promises.
func TestJitterStaysWithinItsBounds(t *testing.T) {
	for _, d := range []time.Duration{1, 2, 3, time.Second, 2 * time.Minute, 1<<53 + 1, longest - 1, longest} {
		for _, r := range []float64{0, math.SmallestNonzeroFloat64, 0.1, 0.5, 0.999, math.Nextafter(1, 0)} {
			equal, full := JitterEqual.spread(d, r), JitterFull.spread(d, r)
			assert.GreaterOrEqual(t, equal, d/2, "equal: %d, %v", d, r)
			assert.LessOrEqual(t, equal, d, "equal: %d, %v", d, r)
			assert.GreaterOrEqual(t, full, time.Duration(1), "full: %d, %v", d, r)
			assert.LessOrEqual(t, full, d, "full: %d, %v", d, r)
		}
	}
}

func TestDurationsSaturate(t *testing.T) {
	assert.Equal(t, 3*time.Second, scaled(float64(2*time.Second), 1.5))
	assert.Equal(t, longest, scaled(math.MaxInt64, 1))
	assert.Equal(t, longest, scaled(math.MaxFloat64, 2))
	assert.Equal(t, longest, scaled(1, math.Inf(1)))

	assert.Equal(t, 3*time.Second, later(time.Second, 2*time.Second))
	assert.Equal(t, longest, later(longest-1, 1))
	assert.Equal(t, longest, later(longest, 1))
	assert.Equal(t, longest, later(1, longest))
	assert.Equal(t, -time.Second, later(-time.Second, 0))
}

// report makes a call and tells how it ended.
func report(t *testing.T, b *Breaker, o Outcome, latency time.Duration) {
	t.Helper()
	p, err := b.TryAcquire(t.Context())
	require.NoError(t, err)
	p.RecordLatency(o, latency)
}

// A slow success that opens the circuit has its break jittered like any other, and only one that does makes another number be
// drawn. Whether it is slow may depend on a threshold that this very call works out anew.
func TestBreakOfASlowSuccessIsJittered(t *testing.T) {
	constant := func(s *Settings) { s.SlowCallThreshold, s.SlowCalls.Off = time.Second, true }
	measured := func(s *Settings) { s.SlowCalls = SlowCalls{MinSamples: 10, Multiple: 2} }
	for _, test := range []struct {
		name string
		with func(*Settings)
		fast time.Duration // of the calls before, which are not slow
		slow time.Duration
		want int // numbers drawn
	}{
		{"constant", constant, time.Second, time.Second + 1, 2},
		{"measured", measured, 10 * time.Millisecond, time.Minute, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, drawn := new(handClock), 0
			s := only(func(s *Settings) {
				s.MinCalls, s.SlowCallRatio, s.BreakDuration, s.BreakJitter, s.Clock = 11, 0.09, 8*time.Second, JitterEqual, c
				s.Random = func() float64 { drawn++; return 0.5 }
			})
			test.with(&s)
			b := MustNewClassic(s)
			for range 10 {
				report(t, b, Success, test.fast)
			}
			require.Equal(t, 1, drawn, "when it was made")
			report(t, b, Success, test.slow)
			wait, ok := b.RetryAfter()
			require.True(t, ok)
			assert.Equal(t, 6*time.Second, wait)
			assert.Equal(t, test.want, drawn)
		})
	}
}

// The threshold of a baseline that turns over with the call itself decides, in both directions.
func TestBreakOfASuccessThatMovesTheThreshold(t *testing.T) {
	c, drawn := new(handClock), 0
	b := MustNewClassic(only(func(s *Settings) {
		s.MinCalls, s.SlowCallRatio, s.BreakDuration, s.BreakJitter, s.Clock = 1, 0.5, 8*time.Second, JitterEqual, c
		s.SlowCalls = SlowCalls{MinSamples: 10, Multiple: 2}
		s.Random = func() float64 { drawn++; return 0.5 }
	}))
	for range 9 {
		report(t, b, Success, 10*time.Millisecond)
	}
	c.advance(31 * time.Second) // the trip window is empty, the baseline is not
	report(t, b, Success, time.Second)
	require.Equal(t, Open, b.State(), "the tenth sample makes the threshold that it exceeds")
	wait, _ := b.RetryAfter()
	assert.Equal(t, 6*time.Second, wait)
	assert.Equal(t, 2, drawn)
}

// Where slowness cannot open the circuit no number is drawn: not for a success exactly at a threshold that it works out itself,
// and not for a slow probe or a slow call of a ramp.
func TestSlowSuccessThatCannotOpenDrawsNothing(t *testing.T) {
	c, drawn := new(handClock), 0
	b := MustNewClassic(only(func(s *Settings) {
		s.ConsecutiveFailures, s.ProbeSuccesses, s.BreakJitter, s.Clock = 1, 1, JitterEqual, c
		s.SlowCalls = SlowCalls{MinSamples: 10, Multiple: 2}
		s.Recovery = Recovery{Fraction: 1}
		s.Random = func() float64 { drawn++; return 0.5 }
	}))
	for range 9 {
		report(t, b, Success, 10*time.Millisecond)
	}
	report(t, b, Success, 2*10240*time.Microsecond)
	require.Equal(t, 1, drawn, "when it was made")
	report(t, b, Transient, 0)
	require.Equal(t, 2, drawn)
	c.advance(time.Minute)
	report(t, b, Success, time.Minute)
	require.Equal(t, Recovering, b.State())
	for range 20 { // the credit of one call
		if p, err := b.TryAcquire(t.Context()); err == nil {
			p.RecordLatency(Success, time.Minute)
		}
	}
	assert.Equal(t, uint64(2), b.Snapshot().Totals.Slow)
	assert.Equal(t, 2, drawn)
}

// The number of opens in a row saturates where every platform can still hold it.
func TestOpensSaturate(t *testing.T) {
	c := new(handClock)
	b := MustNewClassic(brittle(c))
	b.machine.opens = 1<<31 - 2
	for range 3 {
		trip(t, b)
		c.advance(2 * time.Minute)
	}
	assert.Equal(t, uint32(1<<31-1), b.machine.opens)
}

// An admission opens the circuit for calls that are overdue. That fast calls have left the window since the last recording, so
// that the slow ones alone would do, is for the next recording to judge.
func TestAdmissionOpensForOverdueCallsAlone(t *testing.T) {
	c := new(handClock)
	b := MustNew(seeingOverdue(only(func(s *Settings) {
		s.SlowCallThreshold, s.MinCalls, s.Window, s.Clock = time.Second, 10, 10*time.Second, c
	})))
	for range 11 {
		report(t, b, Success, 0)
	}
	c.advance(5 * time.Second)
	for range 10 {
		report(t, b, Success, 2*time.Second)
	}
	c.advance(5500 * time.Millisecond)
	require.Equal(t, 1.0, b.Snapshot().Counts.SlowRatio())
	p, err := b.TryAcquire(t.Context())
	require.NoError(t, err)
	p.RecordLatency(Success, 2*time.Second)
	assert.Equal(t, ReasonSlowCalls, b.Snapshot().Reason)
}

// Nor does one that comes too late: the circuit has opened since its admission.
func TestLateSlowSuccessDrawsNothing(t *testing.T) {
	var c handClock
	draws := 0
	s := brittle(&c)
	s.SlowCallThreshold, s.MinCalls = time.Second, 1
	s.BreakJitter, s.Random = JitterFull, func() float64 { draws++; return 0.5 }
	b := MustNewClassic(s)
	late, err := b.TryAcquire(t.Context())
	require.NoError(t, err)
	trip(t, b)
	b.Reset()
	before := draws
	require.False(t, late.RecordLatency(Success, 2*time.Second))
	assert.Equal(t, before, draws)
}
