package breaker

import "time"

// What the machine shows of itself. Nothing here changes it.

// snapshot returns what the machine knows of itself at now.
func (m *machine) snapshot(now time.Duration) Snapshot {
	s := Snapshot{
		State: m.stateAt(now), Reason: m.reason,
		NormalLatency: m.normalLatency(now), TripRatio: m.tripRatio(now), Totals: m.totals,
	}
	if limit := m.slowLimitAt(now); limit != noSlowLimit {
		s.SlowThreshold = limit
	}
	s.Evidence, s.SlowEvidence = m.evidence(now)
	if rate, ok := m.normalSlowRate(now); ok {
		s.NormalSlowRate = &rate
	}
	if m.period != nil && s.State != Closed && s.State != Isolated {
		s.Break, s.BreakBasis = m.period.breakFor, m.period.basis
	}
	if rate, ok := m.normalFailureRate(now); ok {
		s.NormalFailureRate = &rate
	}
	switch {
	case m.state == Closed:
		s.Counts, s.AdmittedFraction = m.counts(now), 1
	case s.State == Recovering:
		s.AdmittedFraction, s.Counts = m.period.ramp.fraction(now), m.counts(now)
	case m.state == Recovering: // to the end
		s.AdmittedFraction = 1
	case m.state == HalfOpen:
		s.Counts = m.counts(now)
		s.ProbesInFlight = len(m.period.probes.flying)
		s.ProbeSuccesses = m.period.counts.Calls - m.period.counts.Failures
	}
	return s
}

// evidence returns how near the tests on failures and on slow calls are to what trips; 0 where there is no test.
func (m *machine) evidence(now time.Duration) (failures, slowness float64) {
	g := m.gauges
	if g == nil {
		return 0, 0
	}
	if g.failures != nil {
		failures = g.failures.evidence(now, g.baseline)
	}
	if g.slowness != nil {
		slowness = g.slowness.evidence(now, g.baseline)
	}
	return failures, slowness
}

// sinceAt returns when the state that the next call would find began.
func (m *machine) sinceAt(now time.Duration) time.Duration {
	if m.state == Open && m.stateAt(now) == HalfOpen {
		return m.breakEnd()
	}
	return m.since
}

// tripRatio returns the failure ratio that opens the circuit at now, the lower of those in force; 0 if there is none.
func (m *machine) tripRatio(now time.Duration) float64 {
	relative, ok := m.relativeRatio(now)
	switch {
	case !ok:
		return m.rules.FailureRatio
	case m.rules.FailureRatio > 0:
		return min(relative, m.rules.FailureRatio)
	default:
		return relative
	}
}
