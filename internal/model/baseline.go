package model

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/brownout-go/breaker"
)

func (m *Model) ratios() bool {
	return m.settings.FailureRatio > 0 || !m.settings.Failures.Off || m.judgesSlowness()
}

func (m *Model) judgesSlowness() bool {
	return m.settings.SlowCallThreshold > 0 || !m.settings.SlowCalls.Off
}

// liveFrom is the start of the oldest bucket that a window of n buckets keeps: the current one and those before it. Buckets lie
// on one grid from the breaker's birth.
func (m *Model) liveFrom(window time.Duration, n int64) time.Duration {
	return time.Duration(bucket(m.now, window, n)-n+1) * width(window, n)
}

func bucket(at, window time.Duration, n int64) int64 { return int64(at / width(window, n)) }

func width(window time.Duration, n int64) time.Duration { return max(1, window/time.Duration(n)) }

// tally counts the outcomes of the current period, however old.
func (m *Model) tally() breaker.Counts {
	var c breaker.Counts
	for _, o := range m.outcomes {
		if o.period == m.period {
			c = counted(c, o)
		}
	}
	return c
}

func counted(c breaker.Counts, o outcome) breaker.Counts {
	c.Calls++
	if o.slow {
		c.Slow++
	}
	if o.gaveUp && !o.failed {
		return c
	}
	if o.failed {
		c.Failures++
		c.ConsecutiveFailures++
	} else {
		c.ConsecutiveFailures = 0
	}
	return c
}

// counts are what a decision is taken on: the trip window of a closed circuit, which forgets what is old and exists only for a
// trip on ratios, and else the tally of the period. A streak has no age.
func (m *Model) counts() breaker.Counts {
	tally := m.tally()
	if m.state != breaker.Closed {
		return tally
	}
	if !m.ratios() {
		return tally
	}
	window, from := breaker.Counts{}, m.liveFrom(m.settings.Window, 10)
	for _, o := range m.outcomes {
		if o.period == m.period && o.at >= from {
			o.slow = o.judged
			window = counted(window, o)
		}
	}
	window.ConsecutiveFailures = tally.ConsecutiveFailures
	return window
}

// rates are the dependency's own shares of failed and of slow calls, of every state, once there are enough samples.
func (m *Model) rates() (c breaker.Counts, ok bool) {
	c, _ = m.without(0)
	return c, c.Calls >= m.settings.Failures.MinSamples
}

func (m *Model) failureRate() (float64, bool) {
	c, ok := m.rates()
	return c.FailureRatio(), ok && !m.settings.Failures.Off
}

func (m *Model) slowRate() (float64, bool) {
	c, ok := m.rates()
	return c.SlowRatio(), ok && m.slowing.on
}

// baselineWindow is what both shares are measured over; 0: neither is.
func (m *Model) baselineWindow() time.Duration {
	switch {
	case !m.settings.Failures.Off:
		return m.settings.Failures.Window
	case m.slowing.on:
		return m.settings.SlowCalls.Window
	default:
		return 0
	}
}

// without counts the baseline without so many of its last buckets, and returns the time that the others cover.
func (m *Model) without(last int64) (c breaker.Counts, covered time.Duration) {
	window := m.baselineWindow()
	if window == 0 {
		return c, 0
	}
	current := bucket(m.now, window, 10)
	oldest, newest := max(0, current-9), current-last
	for _, o := range m.outcomes {
		if at := bucket(o.at, window, 10); oldest <= at && at <= newest && !o.gaveUp {
			c = counted(c, o)
		}
	}
	w := width(window, 10)
	return c, min(m.now, time.Duration(newest+1)*w) - time.Duration(oldest)*w
}

// relativeRatio is the failure ratio that trips by comparison with the dependency's own rate, unless the sequential test
// stands in its place.
func (m *Model) relativeRatio() (float64, bool) {
	if m.failing.on {
		return 0, false
	}
	rate, ok := m.failureRate()
	return min(1, max(m.settings.Failures.Floor, rate*m.settings.Failures.Multiple)), ok
}

// memo is what the latency quantiles were when they were worked out last, for the quarter of the window in which that was.
type memo struct {
	value   time.Duration
	tail    time.Duration // 0: not asked for
	samples int           // 0: there is no answer in this quarter yet
	quarter int64
}

// memorise works the quantile out anew with the call just listed: when a quarter has turned over since the one before, when
// it completes the least number of samples, and when it doubles the number that the answer rests on.
func (m *Model) memorise() {
	c := m.settings.SlowCalls
	samples := m.latencies()
	quarter := bucket(m.now, c.Window, 4)
	if quarter != m.memo.quarter || m.memo.samples == 0 || len(samples) >= 2*m.memo.samples {
		m.memo = answerOf(samples, c, quarter)
	}
}

func answerOf(samples []time.Duration, c breaker.SlowCalls, quarter int64) memo {
	if c.Off || len(samples) < c.MinSamples {
		return memo{quarter: quarter}
	}
	answer := memo{value: quantile(samples, c.Quantile), samples: len(samples), quarter: quarter}
	if c.TailQuantile > 0 {
		answer.tail = quantile(samples, c.TailQuantile)
	}
	return answer
}

// measured is what is memoised, or once its quarter is over what the samples left say.
func (m *Model) measured() memo {
	c := m.settings.SlowCalls
	if quarter := bucket(m.now, c.Window, 4); quarter != m.memo.quarter {
		return answerOf(m.latencies(), c, quarter)
	}
	return m.memo
}

func (m *Model) latencies() []time.Duration {
	samples, from := make([]time.Duration, 0, len(m.outcomes)), m.liveFrom(m.settings.SlowCalls.Window, 4)
	for _, o := range m.outcomes {
		if !o.failed && !o.gaveUp && o.at >= from {
			samples = append(samples, o.latency)
		}
	}
	return samples
}

// quantile is the exclusive upper bound of the histogram counter in which the sample of rank ceil(q·n) falls. The rank is the
// least whose quotient meets q, for a product is rounded: 0.14 × 50 is more than 7.
func quantile(samples []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(samples))
	rank := 1
	for float64(rank)/float64(len(sorted)) < q {
		rank++
	}
	return upperBound(sorted[rank-1])
}

// upperBound rounds up to the next multiple of an eighth of the octave that a latency lies in, in whole microseconds. It is the
// longest duration where that multiple is beyond it.
func upperBound(latency time.Duration) time.Duration {
	us := uint64(latency / time.Microsecond)
	width := uint64(1)
	if octave := bits.Len64(us); octave > 4 {
		width <<= octave - 4
	}
	bound := (us/width + 1) * width
	if bound > math.MaxInt64/uint64(time.Microsecond) {
		return math.MaxInt64
	}
	return time.Duration(bound) * time.Microsecond
}

// slowThreshold is the lower of the constant and the measured threshold, 0 if there is neither. A product beyond what a duration
// holds is none: nothing can take longer.
func (m *Model) slowThreshold() time.Duration {
	constant, normal := m.settings.SlowCallThreshold, m.measured()
	if normal.samples == 0 {
		return constant
	}
	product := m.settings.SlowCalls.Multiple * float64(normal.value)
	if product >= math.MaxInt64 || normal.tail == math.MaxInt64 {
		return constant
	}
	threshold := max(time.Duration(product), normal.tail, m.settings.SlowCalls.Floor)
	if constant == 0 {
		return threshold
	}
	return min(constant, threshold)
}
