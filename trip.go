package breaker

import (
	"math"
	"time"
)

// The trip rules of the machine: when a call that has just been recorded, or is still in flight, opens the circuit.

// verdicts are what the tests say of the calls just recorded.
type verdicts struct{ failures, slowness, overdue bool }

// judge opens the circuit if a call that failed or was slow, or those in flight, complete the evidence. A fast success completes none:
// when it ends only those in flight are judged.
func (m *machine) judge(now time.Duration, failed, slow, crossed bool) *transition {
	switch {
	case !failed:
		m.streak = 0
	case m.streak == 0:
		m.streak = 1
		if m.gauges != nil {
			m.gauges.streakAt = now
		}
	case m.streak < math.MaxUint32:
		m.streak++
	}
	a := verdicts{failures: m.testFailure(now, failed)}
	if !crossed {
		a.slowness = m.testSlowness(now, slow)
	}
	a.overdue = m.testFlights(now)
	if !failed && !slow {
		return m.openIf(now, m.overdueReason(now, a.overdue))
	}
	return m.openIf(now, m.trip(now, a))
}

// judgeSlow opens the circuit if a call that was given up, slow already, completes the evidence.
func (m *machine) judgeSlow(now time.Duration, crossed bool) *transition {
	a := verdicts{slowness: !crossed && m.testSlowness(now, true)}
	a.overdue = m.testFlights(now)
	return m.openIf(now, m.trip(now, a))
}

// judgeFlights opens the circuit if the calls in flight complete the evidence.
func (m *machine) judgeFlights(now time.Duration) *transition {
	if m.flights == nil || !m.flights.isDue(now) {
		return nil
	}
	switch m.state {
	case Closed:
		return m.openIf(now, m.overdueReason(now, m.testFlights(now)))
	case Recovering:
		if m.flights.judge(now, m.slowLimit) > 0 && m.rules.Recovery.Fraction == 0 &&
			m.period.ramp.weigh(now, now-m.slowLimit, true) {
			return m.open(now, ReasonRampFailed)
		}
	}
	return nil
}

// testFailure counts a call for the test on failures, and reports whether that raises the alarm.
func (m *machine) testFailure(now time.Duration, failed bool) (alarm bool) {
	return m.gauges != nil && m.gauges.failures.count(now, failed, m.gauges.baseline)
}

// testSlowness counts a call for the test on slow calls, and reports whether that raises the alarm.
func (m *machine) testSlowness(now time.Duration, slow bool) (alarm bool) {
	return m.gauges != nil && m.gauges.slowness.count(now, slow, m.gauges.baseline)
}

// testFlights counts, if that is due, the calls in flight that have crossed the threshold for the test on slow calls.
func (m *machine) testFlights(now time.Duration) (alarm bool) {
	if m.flights == nil || !m.flights.isDue(now) {
		return false
	}
	calls := m.flights.judge(now, m.slowLimit)
	if g := m.gauge(); calls > 0 && g.slowness != nil {
		return g.slowness.fail(now, calls, g.baseline)
	}
	return false
}

// openIf opens the circuit for a reason, if there is one.
func (m *machine) openIf(now time.Duration, reason Reason) *transition {
	if reason == 0 {
		return nil
	}
	return m.open(now, reason)
}

// trip returns the first condition that is met at now, 0 if none is.
func (m *machine) trip(now time.Duration, a verdicts) Reason {
	if m.streakTrips(now) {
		return ReasonConsecutiveFailures
	}
	if m.gauges == nil {
		return 0
	}
	w := m.gauges.window.read(now)
	enough := w.Calls >= m.rules.MinCalls
	if enough && m.rules.FailureRatio > 0 && w.FailureRatio() >= m.rules.FailureRatio {
		return ReasonFailureRatio
	}
	relative, ok := m.relativeRatio(now)
	if a.failures || enough && ok && w.Failures >= 2 && w.FailureRatio() >= relative {
		return ReasonRelativeFailures
	}
	if a.slowness || enough && m.rules.judgesSlowRatio() && w.SlowRatio() >= m.rules.SlowCallRatio {
		return ReasonSlowCalls
	}
	return m.overdueReason(now, a.overdue)
}

// leastSpan is how long a failure streak lasts at the least where its limit is derived: failures that end together are one event.
const leastSpan = slice

// streakTrips reports whether the failures in a row open the circuit at now.
func (m *machine) streakTrips(now time.Duration) bool {
	limit := m.rules.ConsecutiveFailures
	if limit == Disabled {
		return false
	}
	if m.raises && m.gauges != nil {
		if now-m.gauges.streakAt < leastSpan {
			return false
		}
		limit = m.gauges.failures.streak(limit)
	}
	return uint64(m.streak) >= uint64(limit)
}

// relativeRatio returns the ratio that trips relative to the measured failure rate; false while that is unknown, and where a
// sequential test stands in for it.
func (m *machine) relativeRatio(now time.Duration) (float64, bool) {
	if m.rules.testsFailures() {
		return 0, false
	}
	rate, ok := m.normalFailureRate(now)
	f := &m.rules.Failures
	return min(1, max(f.Floor, rate*f.Multiple)), ok
}

// normalFailureRate returns the measured failure rate at now; false while there are too few samples.
func (m *machine) normalFailureRate(now time.Duration) (rate float64, ok bool) {
	c, ok := m.normalCounts(now)
	return c.FailureRatio(), ok && m.rules.measuresFailures()
}

// normalSlowRate returns the measured share of slow calls at now; false while there are too few samples.
func (m *machine) normalSlowRate(now time.Duration) (rate float64, ok bool) {
	c, ok := m.normalCounts(now)
	return c.SlowRatio(), ok && m.rules.testsSlowness()
}

// normalCounts returns the calls of the baseline at now, and whether they are enough to tell a rate by.
func (m *machine) normalCounts(now time.Duration) (c Counts, ok bool) {
	if m.gauges == nil || m.gauges.baseline == nil {
		return c, false
	}
	c = m.gauges.baseline.read(now)
	return c, c.Calls >= m.rules.Failures.MinSamples
}

// overdueReason returns the reason why calls in flight open the circuit at now; 0 if they do not. Without a test they count beside
// the slow calls of the trip window.
func (m *machine) overdueReason(now time.Duration, alarm bool) Reason {
	if alarm {
		return ReasonOverdueCalls
	}
	if m.flights == nil || m.rules.testsSlowness() {
		return 0
	}
	overdue := clampInt(uint64(m.flights.overdue()))
	w := m.gauge().window.read(now)
	if calls := w.Calls + overdue; overdue > 0 && calls >= m.rules.MinCalls &&
		ratio(w.Slow+overdue, calls) >= m.rules.SlowCallRatio {
		return ReasonOverdueCalls
	}
	return 0
}
