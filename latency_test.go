package breaker

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCounterOf(t *testing.T) {
	for _, test := range []struct {
		latency time.Duration
		counter int
		bound   time.Duration
	}{
		{-time.Hour, 0, 1 * time.Microsecond},
		{0, 0, 1 * time.Microsecond},
		{999, 0, 1 * time.Microsecond},
		{1000, 1, 2 * time.Microsecond},
		{7999, 7, 8 * time.Microsecond},
		{8000, 8, 9 * time.Microsecond},
		{15 * time.Microsecond, 15, 16 * time.Microsecond},
		{16 * time.Microsecond, 16, 18 * time.Microsecond},
		{18 * time.Microsecond, 17, 20 * time.Microsecond},
		{10 * time.Millisecond, 89, 10240 * time.Microsecond},
		{longLatency - 1, counters - 1, longLatency},
		{longLatency, counters, longLatency + longLatency/8},
		{14 * time.Minute, 220, 13 << 26 * time.Microsecond},
		{1<<53*time.Microsecond - 1, lastCounter - 1, 1 << 53 * time.Microsecond},
		{1 << 53 * time.Microsecond, lastCounter, math.MaxInt64},
		{math.MaxInt64, lastCounter, math.MaxInt64},
	} {
		t.Run(test.latency.String(), func(t *testing.T) {
			assert.Equal(t, test.counter, counterOf(test.latency))
			assert.Equal(t, test.bound, upperBound(test.counter))
		})
	}
	assert.Equal(t, 208, counters)
	assert.Less(t, lastCounter, allCounters)
}

// lastCounter is the one of the longest duration.
const lastCounter = 408

// The bound of a counter is the first latency that the next one counts, so the counters leave no gap and do not overlap.
func TestCountersCoverEveryLatency(t *testing.T) {
	for c := range lastCounter {
		bound := upperBound(c)
		require.Equal(t, c, counterOf(bound-1), "counter %d", c)
		require.Equal(t, c+1, counterOf(bound), "counter %d", c)
	}
}

func TestCounterBoundIsNeverBelowAndAtMostAnEighthAbove(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 20_000 {
		latency := time.Duration(1) << random.IntN(62)
		latency += time.Duration(random.Int64N(int64(latency)))
		bound := upperBound(counterOf(latency))
		require.Greater(t, bound, latency)
		if latency < exactCounters*time.Microsecond {
			require.LessOrEqual(t, bound-latency, time.Microsecond, "%v", latency)
		} else {
			require.LessOrEqual(t, float64(bound), float64(latency)*1.125, "%v", latency)
		}
	}
}

func TestRankOf(t *testing.T) {
	for thousandths := uint64(1); thousandths <= 500; thousandths++ {
		q := float64(thousandths) / 1000
		for n := uint64(1); n <= 300; n++ {
			require.Equal(t, (thousandths*n+999)/1000, rankOf(q, n), "%v of %d", q, n)
		}
	}
	assert.Equal(t, uint64(1), rankOf(math.SmallestNonzeroFloat64, 20))
	assert.Equal(t, uint64(1), rankOf(1.0/3, 3))
	assert.Equal(t, uint64(2), rankOf(math.Nextafter(1.0/3, 1), 3), "though the product is exactly 1")
}

// latencyModel keeps every latency and sorts them when the quantile is due.
type latencyModel struct {
	quantile   float64
	minSamples int
	width      time.Duration
	quarter    time.Duration // number of the last one
	samples    []modelLatency
	refreshAt  int
	memo       time.Duration
}

type modelLatency struct{ at, latency time.Duration }

// measure returns the quantile of what is in the window at now.
func (m *latencyModel) measure(now time.Duration) time.Duration {
	var sorted []time.Duration
	for _, s := range m.samples {
		if s.at/m.width > now/m.width-quarters {
			sorted = append(sorted, s.latency)
		}
	}
	if len(sorted) < m.minSamples {
		return 0
	}
	slices.Sort(sorted)
	for i := range sorted {
		if float64(i+1)/float64(len(sorted)) >= m.quantile {
			return upperBound(counterOf(sorted[i]))
		}
	}
	return 0
}

// drop forgets what has left the window at now and measures, if a quarter has turned over.
func (m *latencyModel) drop(now time.Duration) {
	if now/m.width == m.quarter {
		return
	}
	m.quarter = now / m.width
	m.samples = slices.DeleteFunc(m.samples, func(s modelLatency) bool { return s.at/m.width <= m.quarter-quarters })
	m.remember(now)
}

func (m *latencyModel) remember(now time.Duration) {
	m.memo, m.refreshAt = m.measure(now), m.minSamples
	if len(m.samples) >= m.minSamples {
		m.refreshAt = 2 * len(m.samples)
	}
}

func (m *latencyModel) add(now, latency time.Duration) {
	turned := now/m.width != m.quarter
	m.drop(now)
	m.samples = append(m.samples, modelLatency{now, latency})
	if turned || len(m.samples) == m.refreshAt {
		m.remember(now)
	}
}

func (m *latencyModel) read(now time.Duration) time.Duration {
	if now/m.width == m.quarter {
		return m.memo
	}
	return m.measure(now)
}

// addLatency counts a latency as the machine does.
func addLatency(l *latencies, now, latency time.Duration) {
	if l.onlyCounts(now, latency) {
		l.count(latency)
	} else {
		l.add(now, latency)
	}
}

func TestLatenciesAgainstModel(t *testing.T) {
	for _, quantile := range []float64{0.01, 0.1, 0.3, 0.5} {
		for _, minSamples := range []int{1, 20} {
			t.Run(fmt.Sprint(quantile, minSamples), func(t *testing.T) {
				driveLatencies(t, quantile, minSamples)
			})
		}
	}
}

func driveLatencies(t *testing.T, quantile float64, minSamples int) {
	const window = 4*time.Second + 3 // not a multiple of four
	random := rand.New(rand.NewPCG(7, uint64(minSamples)))
	l := newLatencies(quantile, window, minSamples)
	m := latencyModel{quantile: quantile, minSamples: minSamples, width: l.width, quarter: -1, refreshAt: minSamples}
	var now time.Duration
	for step := range 2_000 {
		now += []time.Duration{0, 1, l.width / 40, l.width, 4 * l.width, 100 * l.width}[pick(random, 900, 80, 80, 2, 1, 1)]
		latency := time.Duration(random.ExpFloat64() * float64(10*time.Millisecond))
		if random.IntN(4) == 0 {
			latency = longLatency + time.Duration(random.Int64N(math.MaxInt64>>random.IntN(24)-int64(longLatency)))
		}
		if random.IntN(10) == 0 {
			m.drop(now)
			l.advance(now)
		} else {
			m.add(now, latency)
			addLatency(l, now, latency)
		}
		require.Equal(t, m.memo, l.memo.normal, "step %d", step)
		require.Len(t, m.samples, int(l.samples), "step %d", step)
		later := now + time.Duration(random.IntN(6))*l.width
		require.Equal(t, m.read(later), l.read(later).normal, "step %d, %v later", step, later-now)
	}
}

// pick returns an index with a probability in proportion to its weight.
func pick(random *rand.Rand, weights ...int) int {
	sum := 0
	for _, w := range weights {
		sum += w
	}
	n := random.IntN(sum)
	for i, w := range weights {
		if n -= w; n < 0 {
			return i
		}
	}
	return 0
}

func TestLatenciesAnswerFromTheMinimumOfSamplesOn(t *testing.T) {
	l := newLatencies(0.5, 5*time.Minute, 20)
	assert.Nil(t, l.histograms, "nothing is paid for before the first sample")
	assert.Zero(t, l.read(0).normal)
	l.advance(time.Hour) // there is nothing to drop
	for range 19 {
		addLatency(l, 0, 10*time.Millisecond)
	}
	assert.Zero(t, l.read(0).normal)
	addLatency(l, 0, 10*time.Millisecond)
	assert.Equal(t, 10240*time.Microsecond, l.read(0).normal)
}

// A failure feeds no latency, but it is judged by a quantile of the quarter that has begun.
func TestLatenciesTurnExactlyAtTheEndOfAQuarter(t *testing.T) {
	l := newLatencies(0.5, 4*time.Minute, 1)
	addLatency(l, 0, 10*time.Millisecond)
	l.advance(time.Minute - 1)
	assert.Equal(t, time.Minute, l.end)
	l.advance(time.Minute)
	assert.Equal(t, 2*time.Minute, l.end)
}

func TestLatenciesForgetAfterTheirWindow(t *testing.T) {
	l := newLatencies(0.5, 4*time.Minute, 1)
	addLatency(l, 59*time.Second, 10*time.Millisecond)
	assert.Equal(t, 10240*time.Microsecond, l.read(4*time.Minute-1).normal)
	assert.Zero(t, l.read(4*time.Minute).normal)
	assert.Equal(t, 10240*time.Microsecond, l.memo.normal, "a read changes nothing")
	l.advance(4 * time.Minute)
	assert.Zero(t, l.memo.normal)
}

// A quarter ends with its last nanosecond: what it leaves behind is forgotten at the very moment the next begins.
func TestLatenciesForgetAtTheTurnOfAQuarter(t *testing.T) {
	l := newLatencies(0.5, 4*time.Minute, 1)
	addLatency(l, 59*time.Second, 10*time.Millisecond)
	addLatency(l, 3*time.Minute, 100*time.Millisecond)
	assert.Equal(t, 10240*time.Microsecond, l.read(4*time.Minute-1).normal)
	assert.Equal(t, 106496*time.Microsecond, l.read(4*time.Minute).normal)
}

// Were the quantile only worked out when a quarter turns over, the first twenty calls of a process, which fill caches and
// open connections, would decide for over a minute what is normal.
func TestLatenciesDoNotLetTheFirstCallsDecide(t *testing.T) {
	l := newLatencies(0.5, 5*time.Minute, 20)
	for range 20 {
		addLatency(l, 0, 100*time.Millisecond)
	}
	slow := upperBound(counterOf(100 * time.Millisecond))
	for n := 20; n < 40; n++ {
		assert.Equal(t, slow, l.read(time.Second).normal, "after %d calls", n)
		addLatency(l, time.Second, 10*time.Millisecond)
	}
	assert.Equal(t, 10240*time.Microsecond, l.read(time.Second).normal, "once the number of calls has doubled")
}

func TestLatenciesSaturate(t *testing.T) {
	l := newLatencies(0.5, 4*time.Second, 1)
	addLatency(l, 0, time.Millisecond)
	c := &l.histograms[0][counterOf(time.Millisecond)]
	*c = math.MaxUint32
	l.count(time.Millisecond)
	assert.Equal(t, uint32(math.MaxUint32), *c)
	assert.Equal(t, uint64(1), l.samples, "what is not in the histogram is no sample")
	for q := range l.histograms {
		l.histograms[q][0] = math.MaxUint32
	}
	l.end = quarters * l.width
	assert.Equal(t, uint64(5*math.MaxUint32), l.total(quarters-1))

	addLatency(l, l.end-1, time.Hour)
	samples := l.samples
	c = &l.long[l.slot][counterOf(time.Hour)-counters]
	assert.Equal(t, uint32(1), *c)
	*c = math.MaxUint32
	l.countLong(time.Hour)
	assert.Equal(t, uint32(math.MaxUint32), *c)
	assert.Equal(t, samples, l.samples)
}

// Calls that take 14 minutes, as those of a batch job do, all succeeded and opened a default breaker: the histogram ended at 268 s,
// so three times that was slow. Where three times the normal latency is more than a duration holds, nothing is slow.
func TestRegression_LongCallsThatSucceedDoNotOpen(t *testing.T) {
	for _, test := range []struct{ latency, normal, limit time.Duration }{
		{14 * time.Minute, 13 << 26 * time.Microsecond, 39 << 26 * time.Microsecond},
		{30 * 24 * time.Hour, 5 << 39 * time.Microsecond, 15 << 39 * time.Microsecond},
		{100 * 365 * 24 * time.Hour, 3 << 50 * time.Microsecond, noSlowLimit},
		{math.MaxInt64, math.MaxInt64, noSlowLimit},
	} {
		t.Run(test.latency.String(), func(t *testing.T) {
			s := Classic().WithDefaults()
			m := newMachine(&s)
			for range 50 {
				ticket, ok, _ := m.admit(0, passing)
				require.True(t, ok)
				_, change := m.settle(0, &ticket, Success, test.latency)
				require.Nil(t, change)
			}
			assert.Zero(t, m.totals.Slow)
			assert.Equal(t, test.normal, m.normalLatency(0))
			assert.Equal(t, test.limit, m.slowLimit)
		})
	}
}

// The second half of the histogram costs nothing where no call is so long, and forgets as the first does.
func TestLatenciesKeepLongOnesApart(t *testing.T) {
	l := newLatencies(0.5, 4*time.Minute, 3)
	addLatency(l, 0, longLatency-1)
	assert.Nil(t, l.long)
	addLatency(l, 0, longLatency)
	addLatency(l, 0, longLatency)
	assert.Equal(t, uint64(3), l.samples)
	assert.Equal(t, longLatency+longLatency/8, l.read(0).normal)
	l.advance(4 * time.Minute)
	assert.Zero(t, l.samples)
	assert.Zero(t, l.read(4*time.Minute).normal)
}
