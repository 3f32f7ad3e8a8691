package model

import (
	"math"
	"time"

	"github.com/brownout-go/breaker"
)

// landing is a call that ended, or became overdue, on a ramp by evidence alone.
type landing struct {
	at     time.Duration
	began  time.Duration
	period int
	bad    bool
}

// climb is such a ramp: the fraction doubles from the last cut on.
type climb struct {
	least      float64
	reached    float64 // at the last cut
	cutAt      time.Duration
	doubling   time.Duration
	slowest    time.Duration
	cuts       int // in a row at the initial fraction
	calls, bad int // that began after the last cut
	leastCalls int // of those, the ones at the initial fraction, in all
	leastBad   int
}

func (c *climb) fraction(at time.Duration) float64 {
	return min(1, c.reached*math.Exp2(float64(at-c.cutAt)/float64(c.doubling)))
}

// climb replays what landed in this period.
func (m *Model) climb() *climb {
	least := max(m.settings.Recovery.Initial, rampStep)
	doubling := max(rampDoubles, times(m.usual, rampLatency))
	c := &climb{least: least, reached: least, cutAt: m.since, doubling: doubling, slowest: max(rampSlowest, doubling)}
	for _, l := range m.landings {
		if l.period == m.period {
			c.land(l)
		}
	}
	return c
}

// land counts a call if it began after the last cut. A bad one cuts unless the share of bad calls is that of the initial fraction.
func (c *climb) land(l landing) {
	if !l.bad {
		c.cuts = 0
	}
	if l.began < c.cutAt {
		return
	}
	fraction := c.fraction(l.at)
	initial := fraction <= rampStart*c.least
	c.count(l.bad, initial)
	if !l.bad || float64(c.bad) < 1+rampBears*c.borne()*float64(c.calls) {
		return
	}
	c.cuts++
	if !initial {
		c.cuts = 0
	}
	c.calls, c.bad = 0, 0
	c.reached, c.cutAt, c.doubling = max(c.least, rampCut*fraction), l.at, min(c.slowest, times(c.doubling, 2))
}

func (c *climb) count(bad, initial bool) {
	one := 0
	if bad {
		one = 1
	}
	c.calls++
	c.bad += one
	if initial {
		c.leastCalls++
		c.leastBad += one
	}
}

func (c *climb) borne() float64 {
	if 2*c.leastBad >= c.leastCalls {
		return 0
	}
	return float64(c.leastBad) / float64(c.leastCalls)
}

// land enters a call into the list, and reports whether the ramp is over.
func (m *Model) land(began time.Duration, bad bool) bool {
	m.landings = append(m.landings, landing{m.now, began, m.period, bad})
	return m.climb().cuts >= rampLastCut
}

// judgeRamp judges the call listed last. By the clock a failure opens, and what was slow or fast is read from the list when the
// fraction is asked for. By evidence alone the test on failures opens, or the ramp itself; a call that was told of in flight is not
// told of again for being slow.
func (m *Model) judgeRamp(crossed bool, err error) {
	o := m.outcomes[len(m.outcomes)-1]
	if m.settings.Recovery.Fraction > 0 {
		if o.failed {
			m.open(breaker.ReasonRampFailed, err)
		}
		return
	}
	alarm := !o.gaveUp && m.tell(&m.failing, o.failed)
	over := !crossed && m.land(m.now-o.latency, o.failed || o.slow)
	if alarm || over || m.rampOverdue() {
		m.open(breaker.ReasonRampFailed, err)
	}
}

// measuredBreak is the first break, by the traffic and by how long the incident before lasted, or a further one, by how long this
// one has lasted.
func (m *Model) measuredBreak() time.Duration {
	most := m.settings.MaxBreakDuration
	if m.opens == 1 {
		m.firstOpened = m.now
		m.first, m.firstBasis = m.firstBreak()
		m.first, m.basis = min(m.first, most), m.firstBasis
		return m.first
	}
	if d := times(m.now-m.firstOpened, breakShare); d > m.first {
		m.basis = breaker.BreakIncident
		return min(d, most)
	}
	m.basis = m.firstBasis
	return m.first
}

func (m *Model) firstBreak() (time.Duration, breaker.BreakBasis) {
	d := mostFirst
	if rate := m.rate(); rate > 0 {
		d = max(leastFirst, min(mostFirst, times(time.Second, 1/(probeShare*rate))))
	}
	forgotten := !m.ratios() || m.now-m.lastEnd > remembered || m.lastIncident == 0
	if again := max(leastAgain, times(m.lastIncident, breakShare)); !forgotten && again < d {
		return again, breaker.BreakIncident
	}
	return d, breaker.BreakTraffic
}

// rate is the normal rate of calls a second, without the present bucket where the others tell enough; 0 where it is not measured.
func (m *Model) rate() float64 {
	c, covered := m.without(1)
	if c.Calls < breakRateCalls {
		c, covered = m.without(0)
	}
	return float64(c.Calls) / max(covered, breakRateOver).Seconds()
}
