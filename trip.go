package breaker

import (
	"math"
	"time"
)

// The trip rules of the machine: what a call that has ended is measured by, and when it opens the circuit.

// measure feeds the baselines and reports whether the call was slow.
func (m *machine) measure(now time.Duration, failed bool, latency time.Duration) (slow bool) {
	if l := m.latency; l != nil {
		if !failed && l.onlyCounts(now, latency) {
			l.count(latency)
		} else {
			m.remeasure(now, failed, latency)
		}
	}
	if m.failures != nil {
		m.failures.at(now).add(failed, false)
	}
	if slow = latency > m.slowLimit; slow {
		m.totals.Slow++
	}
	return slow
}

// remeasure feeds the latency baseline where that is more than to count, and may work the quantile out anew.
func (m *machine) remeasure(now time.Duration, failed bool, latency time.Duration) {
	if failed {
		m.latency.advance(now)
	} else {
		m.latency.add(now, latency)
	}
	m.slowLimit = m.rules.slowLimit(m.latency.memo)
}

// maybeSlow reports whether slowTrips is worth asking.
func (m *machine) maybeSlow(now, latency time.Duration) bool {
	return latency > m.slowLimit || m.latency != nil && m.latency.due(now)
}

// slowTrips reports whether a success of this latency would be slow at now, and slowness can open the circuit.
func (m *machine) slowTrips(now time.Duration, t *ticket, latency time.Duration) bool {
	return m.slowAfter(now, latency) && t.epoch == m.epoch &&
		(m.state == Closed || m.state == HalfOpen && !m.rules.ramps())
}

// slowAfter reports whether a success of this latency would be slow once it has entered the baseline, at now.
func (m *machine) slowAfter(now, latency time.Duration) bool {
	if m.latency == nil || !m.latency.due(now) {
		return latency > m.slowLimit
	}
	return latency > m.rules.slowLimit(m.latency.with(now, latency))
}

// judge opens the circuit if the call that has just been recorded completes the evidence. One that was neither failed nor slow
// never does.
func (m *machine) judge(now time.Duration, failed, slow bool, r float64) *transition {
	switch {
	case !failed:
		m.streak = 0
	case m.streak < math.MaxInt:
		m.streak++
	}
	alarm := m.test != nil && m.test.record(now, failed, m.failures)
	if !failed && !slow {
		return nil
	}
	if reason := m.trip(now, alarm); reason != 0 {
		return m.open(now, reason, r)
	}
	return nil
}

// trip returns the first condition that is met at now, 0 if none is.
func (m *machine) trip(now time.Duration, alarm bool) Reason {
	if limit := m.streakLimit(); limit != Disabled && m.streak >= limit {
		return ReasonConsecutiveFailures
	}
	if m.window == nil {
		return 0
	}
	w := m.window.read(now)
	enough := w.Calls >= m.rules.MinCalls
	if enough && m.rules.FailureRatio > 0 && w.FailureRatio() >= m.rules.FailureRatio {
		return ReasonFailureRatio
	}
	relative, ok := m.relativeRatio(now)
	if alarm || enough && ok && w.Failures >= 2 && w.FailureRatio() >= relative {
		return ReasonRelativeFailures
	}
	return m.slowReason(now, w)
}

// streakLimit returns how many failures in a row open the circuit, or Disabled.
func (m *machine) streakLimit() int {
	if m.test != nil && m.test.raisesStreak() {
		return max(m.rules.ConsecutiveFailures, m.test.streak)
	}
	return m.rules.ConsecutiveFailures
}

// relativeRatio returns the ratio that trips relative to the measured failure rate; false while that is unknown, and where a
// sequential test stands in for it.
func (m *machine) relativeRatio(now time.Duration) (float64, bool) {
	if m.test != nil {
		return 0, false
	}
	rate, ok := m.normalFailureRate(now)
	f := &m.rules.Failures
	return min(1, max(f.Floor, rate*f.Multiple)), ok
}

// normalFailureRate returns the measured failure rate at now; false while there are too few samples.
func (m *machine) normalFailureRate(now time.Duration) (rate float64, ok bool) {
	if m.failures == nil {
		return 0, false
	}
	c := m.failures.read(now)
	return c.FailureRatio(), c.Calls >= m.rules.Failures.MinSamples
}

// slowReason returns the reason why slow calls open the circuit at now, those in flight included; 0 if they do not.
func (m *machine) slowReason(now time.Duration, w Counts) Reason {
	if w.Calls >= m.rules.MinCalls && w.SlowRatio() >= m.rules.SlowCallRatio {
		return ReasonSlowCalls
	}
	overdue := m.overdue(now)
	if calls := w.Calls + overdue; overdue > 0 && calls >= m.rules.MinCalls &&
		ratio(w.Slow+overdue, calls) >= m.rules.SlowCallRatio {
		return ReasonOverdueCalls
	}
	return 0
}

// overdueTrips reports whether the calls in flight are due to be judged at now and open the circuit.
func (m *machine) overdueTrips(now time.Duration) bool {
	return m.flights.isDue(now) && m.overdue(now) > 0 && m.slowReason(now, m.window.read(now)) != 0
}

// overdue returns how many calls have been in flight at now for longer than the slow threshold.
func (m *machine) overdue(now time.Duration) int {
	if m.flights == nil {
		return 0
	}
	return m.flights.overdue(now, m.slowLimitAt(now))
}
