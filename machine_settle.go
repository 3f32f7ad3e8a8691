package breaker

import "time"

// What the outcome of a call does to the machine.

// settle records the outcome of an admitted call at now, judges, and reports whether it counted.
func (m *machine) settle(now time.Duration, t *ticket, o Outcome, latency time.Duration) (counted bool, change *transition) {
	if t.epoch != m.epoch {
		if t.epoch != unsampled {
			m.totals.Discarded++
		}
		return false, nil
	}
	m.totals.count(o)
	if m.flights != nil {
		m.flights.end(t.start)
	}
	if t.slot != noSlot {
		m.release(t.slot)
	}
	if !o.isCall() {
		if o == givenUp && latency > m.slowLimitAt(now) {
			change = m.settleGivenUp(now)
		}
		return true, change
	}
	failed := o == Transient
	slow := m.measure(now, failed, latency)
	switch m.state {
	case Closed:
		m.tallyAt(now).add(failed, slow)
		if failed || slow || m.test != nil {
			change = m.judge(now, failed, slow)
		} else {
			m.streak = 0
		}
	case HalfOpen:
		change = m.settleProbe(now, failed, slow)
	case Recovering:
		change = m.settleRamp(now, failed, slow)
	}
	return true, change
}

// settleGivenUp records a call that its caller gave up when it was slow already. How it would have ended nobody knows, so it
// enters no baseline and ends no streak; but slow it was. A probe that nobody waits for to the end has not succeeded.
func (m *machine) settleGivenUp(now time.Duration) (change *transition) {
	m.totals.Slow++
	switch m.state {
	case Closed:
		m.tallyAt(now).add(false, true)
		if reason := m.trip(now, false); reason != 0 {
			change = m.open(now, reason)
		}
	case HalfOpen:
		change = m.settleProbe(now, true, true)
	case Recovering:
		change = m.settleRamp(now, false, true)
	}
	return change
}

// tallyAt returns what counts the calls of a closed circuit at now: a bucket of the trip window, where there is one.
func (m *machine) tallyAt(now time.Duration) *bucket {
	if m.window == nil {
		return &m.tally
	}
	return m.window.at(now)
}

// release gives back what a call admitted outside Closed holds, if its half-open or recovering state is still on.
func (m *machine) release(slot uint32) {
	switch m.state {
	case HalfOpen:
		m.period.probes.end(slot)
	case Recovering:
		m.period.inFlight--
	}
}

// offerAnew counts the end of a call as an offer of the first of those who wait.
func (m *machine) offerAnew(now time.Duration) {
	if m.state == Recovering {
		m.period.ramp.accrue(now)
	}
}

func (m *machine) settleProbe(now time.Duration, failed, slow bool) *transition {
	c := &m.period.counts
	c.add(failed, slow)
	reason := m.judgeProbes(*c)
	switch {
	case reason == 0:
		return nil
	case reason != ReasonProbesSucceeded:
		return m.open(now, reason)
	case m.rules.ramps():
		return m.recover(now)
	default:
		return m.close(now, ReasonProbesSucceeded)
	}
}

// judgeProbes returns what the probes so far decide, 0 if nothing yet.
func (m *machine) judgeProbes(c Counts) Reason {
	rules := m.rules
	failed, slow, done := c.Failures > 0, c.Slow > 0, c.Calls-c.Failures >= rules.ProbeSuccesses
	if n := rules.ProbeCohort; n > 0 {
		failed = failed && ratio(c.Failures, n) >= rules.FailureRatio
		slow = slow && ratio(c.Slow, n) >= rules.SlowCallRatio
		done = c.Calls >= n
	}
	switch {
	case failed:
		return ReasonProbeFailed
	case slow && !rules.ramps():
		return ReasonProbeSlow
	case done:
		return ReasonProbesSucceeded
	default:
		return 0
	}
}

func (m *machine) settleRamp(now time.Duration, failed, slow bool) *transition {
	m.period.counts.add(failed, slow)
	if failed {
		return m.open(now, ReasonRampFailed)
	}
	m.period.ramp.record(now, slow)
	return nil
}

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
