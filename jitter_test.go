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
