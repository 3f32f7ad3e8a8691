package breaker

import (
	"math"
	"math/bits"
	"time"
)

// The histogram has the layout of HdrHistogram (http://hdrhistogram.org) with three significant bits, in whole microseconds:
// one counter per value below 8 µs, then eight per octave. The first half holds what is below 2^28 µs, about 268 s, which is
// nearly every call; the second holds the rest of what a duration can be, and is allocated with the first latency of that length.
const (
	exactCounters = 8                                                 // one per microsecond, and the number per octave above
	octaveBits    = 3                                                 // log2 of the counters per octave
	topBit        = 28                                                // the first value of the second half is 1 << topBit microseconds
	counters      = exactCounters + (topBit-octaveBits)*exactCounters // of each half
	allCounters   = 2 * counters
	longLatency   = 1 << topBit * time.Microsecond
)

// quarters is the number of rings in a latency baseline, each a quarter of its window.
const quarters = 4

// counterOf returns the counter for a latency; a negative one counts as zero.
func counterOf(latency time.Duration) int {
	v := uint64(max(0, latency) / time.Microsecond)
	if v < exactCounters {
		return int(v)
	}
	octave := bits.Len64(v) - 1 - octaveBits
	return exactCounters*octave + int(v>>octave)
}

// upperBound returns the exclusive upper bound of a counter: never below a latency counted in it, and at most 12.5 % above
// it from 8 µs on. For the last one it is the longest duration, which it counts too.
func upperBound(counter int) time.Duration {
	octave := max(0, counter/exactCounters-1)
	us := uint64(counter-exactCounters*octave+1) << octave
	if us > math.MaxInt64/uint64(time.Microsecond) {
		return math.MaxInt64
	}
	return time.Duration(us) * time.Microsecond
}

// latencies measures a quantile of latency over a sliding window: four histograms, each for a quarter of the window on a
// fixed grid of the breaker's time. The quantile is memoised, because a call can afford a comparison but no walk over 832
// counters or more; it is worked out anew when a quarter turns over, when there are enough samples for the first time, and whenever
// their number has doubled since, so that the first calls of a process do not decide for long what is normal.
//
// Why a low quantile of a long window: a threshold taken from the p99 of recent latency has one call in a hundred above it
// whatever happens, while the median moves only when half of the window is slow.
type latencies struct {
	quantile   float64
	tail       float64 // the second quantile; 0: none
	minSamples uint64
	width      time.Duration // of a quarter
	end        time.Duration // of the current quarter; 0 before the first sample
	slot       int           // of the current quarter
	samples    uint64        // in all four
	refreshAt  uint64        // the number of samples at which the memo is worked out anew
	memo       quantiles
	histograms *[quarters]histogram // nil before the first sample
	long       *[quarters]histogram // the second halves; nil before the first latency for which they are
}

type histogram [counters]uint32

// quantiles are the two that are measured; 0 while unknown.
type quantiles struct{ normal, tail time.Duration }

func newLatencies(quantile float64, window time.Duration, minSamples int) *latencies {
	n := uint64(minSamples)
	return &latencies{quantile: quantile, minSamples: n, refreshAt: n, width: max(1, window/quarters)}
}

// add counts one latency at now, whatever it is, and works the quantile out anew if it is due.
func (l *latencies) add(now, latency time.Duration) {
	due := l.due(now)
	if l.histograms == nil {
		l.histograms = new([quarters]histogram)
	}
	if now >= l.end {
		l.turn(now)
	}
	if latency < longLatency {
		l.count(latency)
	} else {
		l.countLong(latency)
	}
	if due {
		l.refresh()
	}
}

// count counts one latency where onlyCounts says that nothing else has to be done. It is small enough to be inlined: it
// runs for nearly every call.
func (l *latencies) count(latency time.Duration) {
	if c := &l.histograms[l.slot][counterOf(latency)]; *c < math.MaxUint32 {
		*c++
		l.samples++
	}
}

// countLong is count for latencies from longLatency on.
func (l *latencies) countLong(latency time.Duration) {
	if l.long == nil {
		l.long = new([quarters]histogram)
	}
	if c := &l.long[l.slot][counterOf(latency)-counters]; *c < math.MaxUint32 {
		*c++
		l.samples++
	}
}

// advance drops what has left the window at now.
func (l *latencies) advance(now time.Duration) {
	if now >= l.end && l.histograms != nil {
		l.turn(now)
		l.refresh()
	}
}

// turn makes the quarter of now the current one and drops those that have left the window.
func (l *latencies) turn(now time.Duration) {
	number := int64(now / l.width)
	for n := max(l.current(), number-quarters) + 1; n <= number; n++ {
		l.histograms[n%quarters] = histogram{}
		if l.long != nil {
			l.long[n%quarters] = histogram{}
		}
	}
	l.slot = int(number % quarters)
	l.end = time.Duration(number+1) * l.width
	l.samples = l.total(number)
}

// current returns the number of the current quarter, -1 before the first.
func (l *latencies) current() int64 { return int64(l.end/l.width) - 1 }

// refresh memoises the quantile of what is in the histograms.
func (l *latencies) refresh() {
	l.memo = l.quantilesAt(l.current(), l.samples)
	l.refreshAt = l.minSamples
	if l.samples >= l.minSamples {
		l.refreshAt = 2 * l.samples
	}
}

// due reports whether the quantile is worked out anew with the next latency, at now.
func (l *latencies) due(now time.Duration) bool { return now >= l.end || l.samples+1 >= l.refreshAt }

// onlyCounts reports whether all there is to do with a latency at now is to count it.
func (l *latencies) onlyCounts(now, latency time.Duration) bool {
	return latency < longLatency && !l.due(now)
}

// read returns the quantiles that a call at now is judged by, changing nothing.
func (l *latencies) read(now time.Duration) quantiles {
	if now < l.end {
		return l.memo
	}
	number := int64(now / l.width)
	return l.quantilesAt(number, l.total(number))
}

// total returns the samples in the window when the current quarter is number.
func (l *latencies) total(number int64) (n uint64) {
	for counter := range allCounters {
		n += l.sum(number, counter)
	}
	return n
}

// quantilesAt returns the bounds of the counters that hold the ranks ceil(quantile × samples), in one pass, when the current
// quarter is number; 0 below the minimum of samples.
func (l *latencies) quantilesAt(number int64, samples uint64) (q quantiles) {
	if samples < l.minSamples {
		return q
	}
	rank, tailRank := rankOf(l.quantile, samples), uint64(0)
	if l.tail > 0 {
		tailRank = rankOf(l.tail, samples)
	}
	var seen uint64
	for i := 0; seen < max(rank, tailRank) && i < allCounters; i++ {
		before := seen
		seen += l.sum(number, i)
		if before < rank && rank <= seen {
			q.normal = upperBound(i)
		}
		if before < tailRank && tailRank <= seen {
			q.tail = upperBound(i)
		}
	}
	return q
}

// above returns the share of the samples in the histograms that are longer than a limit, by more than the width of a counter.
func (l *latencies) above(limit time.Duration) float64 {
	if l.samples == 0 {
		return 0
	}
	var n uint64
	for i := counterOf(limit) + 1; i < allCounters; i++ {
		n += l.sum(l.current(), i)
	}
	return float64(n) / float64(l.samples)
}

// sum returns one counter over the window when the current quarter is number.
func (l *latencies) sum(number int64, counter int) (n uint64) {
	half := l.histograms
	if counter >= counters {
		half, counter = l.long, counter-counters
	}
	if half == nil {
		return 0
	}
	for q := max(0, number-quarters+1); q <= l.current(); q++ {
		n += uint64(half[q%quarters][counter])
	}
	return n
}

// rankOf returns ceil(q × n), the smallest rank r with r/n ≥ q. The product alone can be rounded past a whole number either way.
func rankOf(q float64, n uint64) uint64 {
	rank := uint64(math.Ceil(q * float64(n)))
	if rank > 1 && float64(rank-1)/float64(n) >= q {
		rank--
	} else if float64(rank)/float64(n) < q {
		rank++
	}
	return max(1, rank)
}
