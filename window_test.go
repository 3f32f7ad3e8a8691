package breaker

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ringModel is what a ring must add up to: it keeps every call and counts those whose bucket is one of the last ten.
type ringModel struct {
	width time.Duration
	calls []modelCall
}

type modelCall struct {
	at           time.Duration
	failed, slow bool
}

func (m *ringModel) add(at time.Duration, failed, slow bool) {
	m.calls = append(m.calls, modelCall{at, failed, slow})
}

func (m *ringModel) read(now time.Duration) (c Counts) {
	for _, call := range m.calls {
		if call.at/m.width > now/m.width-buckets {
			c.add(call.failed, call.slow)
		}
	}
	c.ConsecutiveFailures = 0
	return c
}

// Gaps are in buckets; a gap of any length must clear exactly what has left the window.
func TestRingAgainstModel(t *testing.T) {
	for _, window := range []time.Duration{time.Millisecond, time.Millisecond + 7, 30 * time.Second} {
		t.Run(window.String(), func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, uint64(window)))
			r := newRing(window)
			model := ringModel{width: r.width}
			var now time.Duration
			for step := range 5_000 {
				gap := []time.Duration{0, 0, 0, 1, 2, 9, 10, 11, 10_000}[random.IntN(9)]
				now += gap*r.width + time.Duration(random.Int64N(int64(r.width)))
				failed, slow := random.IntN(2) == 0, random.IntN(3) == 0
				r.at(now).add(failed, slow)
				model.add(now, failed, slow)

				later := now + time.Duration(random.Int64N(12))*r.width
				written := r
				require.Equal(t, model.read(now), r.read(now), "step %d, at once", step)
				require.Equal(t, model.read(later), r.read(later), "step %d, %v later", step, later-now)
				require.Equal(t, written, r, "step %d: a read wrote", step)
				if gap == 10_000 {
					model.calls = model.calls[len(model.calls)-1:]
				}
			}
		})
	}
}

func TestRingCountsACallForTheWindow(t *testing.T) {
	const window = 10 * time.Second
	for _, test := range []struct {
		name      string
		at, until time.Duration
	}{
		{"at the start of a bucket", 3 * time.Second, 13 * time.Second},
		{"in a bucket", 3500 * time.Millisecond, 13 * time.Second},
		{"at the end of a bucket", 4*time.Second - 1, 13 * time.Second},
		{"in the first bucket", 0, 10 * time.Second},
		{"after years", 5e6 * time.Second, 5e6*time.Second + 10*time.Second},
		{"before time stops", endOfTime / time.Second * time.Second, endOfTime/time.Second*time.Second + window},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRing(window)
			r.at(test.at).add(true, true)
			one := Counts{Calls: 1, Failures: 1, Slow: 1}
			assert.Equal(t, one, r.read(test.at))
			assert.Equal(t, one, r.read(test.until-1))
			assert.Zero(t, r.read(test.until))
			assert.LessOrEqual(t, test.until-test.at, window, "nothing older than the window is counted")
		})
	}
}

func TestRingClearsExactlyWhatAGapLeavesBehind(t *testing.T) {
	for _, test := range []struct {
		gap  int
		want int // of the calls in ten full buckets, one each, and of the call after the gap
	}{
		{0, 11}, {1, 10}, {2, 9}, {9, 2}, {10, 1}, {11, 1}, {10_000, 1},
	} {
		t.Run(fmt.Sprint(test.gap), func(t *testing.T) {
			r := newRing(buckets * time.Second)
			for i := range time.Duration(buckets) {
				r.at(i*time.Second).add(false, false)
			}
			now := time.Duration(buckets-1+test.gap) * time.Second
			assert.Equal(t, test.want-1, r.read(now).Calls, "read before the write")
			r.at(now).add(false, false)
			assert.Equal(t, test.want, r.read(now).Calls)
		})
	}
}

func TestRingStartsAndClearsEmpty(t *testing.T) {
	r := newRing(time.Second)
	assert.Zero(t, r.read(0))
	assert.Zero(t, r.read(time.Hour))
	r.at(time.Hour).add(true, false)
	r.clear()
	assert.Equal(t, newRing(time.Second), r)
	r.at(0).add(false, true)
	assert.Equal(t, Counts{Calls: 1, Slow: 1}, r.read(0))
}

// A bucket that is full stays as it is: a counter that wrapped would turn an outage into health.
func TestRingSaturates(t *testing.T) {
	r := newRing(time.Second)
	b := r.at(0)
	*b = bucket{calls: math.MaxUint32 - 1, failures: math.MaxUint32 - 1, slow: 7}
	r.at(0).add(true, true)
	full := bucket{calls: math.MaxUint32, failures: math.MaxUint32, slow: 8}
	require.Equal(t, full, *b)
	r.at(0).add(true, true)
	r.at(0).add(false, false)
	assert.Equal(t, full, *b)

	for i := range r.buckets {
		r.buckets[i] = full
	}
	r.end = buckets * r.width
	want := uint64(buckets * math.MaxUint32)
	assert.Equal(t, clampInt(want), r.read(r.end-1).Calls, "the sum of ten full buckets")
}

func TestClampInt(t *testing.T) {
	assert.Equal(t, math.MaxInt, clampInt(math.MaxUint64))
	assert.Equal(t, math.MaxInt, clampInt(math.MaxInt))
	assert.Equal(t, math.MaxInt-1, clampInt(math.MaxInt-1))
	assert.Zero(t, clampInt(0))
}
