package breaker

import "time"

// What the outcome of a call does to the machine.

// settle records the outcome of an admitted call at now, judges, and reports whether it counted.
func (m *machine) settle(now time.Duration, t *ticket, o Outcome, latency time.Duration) (counted bool, change *transition) {
	crossed := t.land()
	if t.epoch != m.epoch {
		if t.epoch != unsampled {
			m.totals.Discarded++
		}
		return false, nil
	}
	m.totals.count(o)
	if t.slot != noSlot {
		m.release(t.slot)
	}
	if !o.isCall() {
		if o == givenUp && latency > m.slowLimitAt(now) {
			change = m.settleGivenUp(now, latency, crossed)
		}
		return true, change
	}
	failed := o == Transient
	slow := m.measure(now, failed, latency)
	switch m.state {
	case Closed:
		change = m.settleClosed(now, latency, failed, slow, crossed)
	case HalfOpen:
		change = m.settleProbe(now, failed, slow)
	case Recovering:
		change = m.settleRamp(now, latency, failed, slow, crossed)
	}
	return true, change
}

// land takes the call out of those in flight, if it is one, and reports whether it had crossed the slow threshold.
func (t *ticket) land() (crossed bool) {
	f := t.flights
	t.flights = nil
	return f != nil && f.end(t.start)
}

// settleClosed records a call of a closed circuit. One whose slowness has been judged already, while it was in flight, has crossed.
func (m *machine) settleClosed(now, latency time.Duration, failed, slow, crossed bool) *transition {
	g := m.gauges
	if g == nil {
		m.tally.add(failed, slow)
	} else {
		g.window.at(now).add(failed, slow && m.countsAsSlow(latency))
	}
	due := m.flights != nil && m.flights.isDue(now)
	if failed || slow || due {
		return m.judge(now, failed, slow, crossed)
	}
	m.streak = 0
	if g != nil {
		g.passed(now, crossed)
	}
	return nil
}

// countsAsSlow reports whether a slow call counts in the trip window, which is for what is judged by the ratio: every one, unless the
// test judges all but those above the constant.
func (m *machine) countsAsSlow(latency time.Duration) bool {
	return !m.rules.testsSlowness() || m.rules.SlowCallThreshold == 0 || latency > m.rules.SlowCallThreshold
}

// passed counts a call that was neither failed nor slow for the tests, unless it has crossed the threshold then in force.
func (g *gauges) passed(now time.Duration, crossed bool) {
	if g.failures.hasEvidence() {
		g.failures.pass(now, g.baseline)
	}
	if g.slowness.hasEvidence() && !crossed {
		g.slowness.pass(now, g.baseline)
	}
}

// settleGivenUp records a call that its caller gave up when it was slow already. How it would have ended nobody knows, so it
// enters no baseline and ends no streak; but slow it was. A probe that nobody waits for to the end has not succeeded.
func (m *machine) settleGivenUp(now, latency time.Duration, crossed bool) *transition {
	m.totals.Slow++
	switch m.state {
	case Closed:
		m.gauge().window.at(now).add(false, m.countsAsSlow(latency))
		return m.judgeSlow(now, crossed)
	case HalfOpen:
		return m.settleProbe(now, !m.rules.awaitsFastProbe(), true)
	default:
		return m.settleRampGivenUp(now, latency, crossed)
	}
}

// settleRampGivenUp is settleGivenUp while Recovering.
func (m *machine) settleRampGivenUp(now, latency time.Duration, crossed bool) *transition {
	p := m.period
	p.counts.Calls++
	p.counts.Slow++
	if m.rules.Recovery.Fraction > 0 {
		p.ramp.record(now, true)
		return nil
	}
	if !crossed && p.ramp.weigh(now, now-latency, true) {
		return m.open(now, ReasonRampFailed)
	}
	return m.judgeFlights(now)
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
	if slow {
		m.period.row = 0
	} else if !failed {
		m.period.row++
	}
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
	if rules.awaitsFastProbe() {
		slow, done = false, m.period.row >= rules.ProbeSuccesses
	}
	switch {
	case failed:
		return ReasonProbeFailed
	case slow && rules.Recovery.Fraction == 0:
		return ReasonProbeSlow
	case done:
		return ReasonProbesSucceeded
	default:
		return 0
	}
}

func (m *machine) settleRamp(now, latency time.Duration, failed, slow, crossed bool) *transition {
	p := m.period
	p.counts.add(failed, slow)
	if m.rules.Recovery.Fraction > 0 {
		if failed {
			return m.open(now, ReasonRampFailed)
		}
		p.ramp.record(now, slow)
		return nil
	}
	alarm := m.testFailure(now, failed)
	gone := !crossed && p.ramp.weigh(now, now-latency, failed || slow)
	if alarm || gone {
		return m.open(now, ReasonRampFailed)
	}
	return m.judgeFlights(now)
}

// measure feeds the baselines and reports whether the call was slow.
func (m *machine) measure(now time.Duration, failed bool, latency time.Duration) (slow bool) {
	g := m.gauge()
	if g != nil && g.latency != nil {
		l := g.latency
		if !failed && l.onlyCounts(now, latency) {
			l.count(latency)
		} else {
			m.remeasure(now, failed, latency)
		}
	}
	if slow = latency > m.slowLimit; slow {
		m.totals.Slow++
	}
	if g != nil && g.baseline != nil {
		g.baseline.at(now).add(failed, slow)
	}
	return slow
}

// remeasure feeds the latency baseline where that is more than to count, and may work the quantile out anew.
func (m *machine) remeasure(now time.Duration, failed bool, latency time.Duration) {
	l := m.gauges.latency
	if failed {
		l.advance(now)
	} else {
		l.add(now, latency)
	}
	limit := m.rules.slowLimit(l.memo)
	if limit == m.slowLimit {
		return
	}
	m.slowLimit = limit
	m.watch(now)
	if t := m.gauges.slowness; t != nil {
		t.expect(l.above(limit)) // what the baseline counted as slow was so by another threshold
	}
}
