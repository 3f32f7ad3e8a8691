package model

import (
	"time"

	"github.com/brownout-go/breaker"
)

// Actual returns the state that the next change leaves, whatever readers are told.
func (m *Model) Actual() breaker.State { return m.state }

// Snapshot returns what a reader finds at the time seen last: an open circuit whose break is over reads half-open, and a ramp
// that admits everything reads closed.
func (m *Model) Snapshot() breaker.Snapshot {
	state, since := m.asRead()
	s := breaker.Snapshot{
		Name: m.settings.Name, State: state, Reason: m.reason, Since: m.birth.Add(since), Totals: m.totals,
		SlowThreshold: m.slowThreshold(), TripRatio: m.tripRatio(),
	}
	switch state {
	case breaker.Closed:
		s.AdmittedFraction = 1
		if m.state == breaker.Closed {
			s.Counts = m.counts()
		}
	case breaker.Recovering:
		s.AdmittedFraction, s.Counts = m.fraction(), m.counts()
	}
	if state != breaker.Closed {
		s.OpenedAt = m.birth.Add(m.openedAt)
	}
	s.RetryAfter, _ = m.RetryAfter()
	if m.state == breaker.HalfOpen {
		s.Counts = m.counts()
		s.ProbesInFlight = len(m.inFlight())
		s.ProbeSuccesses = m.tally().Calls - m.tally().Failures
	}
	s.NormalLatency = m.measured().value
	s.Evidence, s.SlowEvidence = m.shareOf(&m.failing), m.shareOf(&m.slowing)
	if rate, ok := m.failureRate(); ok {
		s.NormalFailureRate = &rate
	}
	if rate, ok := m.slowRate(); ok {
		s.NormalSlowRate = &rate
	}
	if state != breaker.Closed && state != breaker.Isolated {
		s.Break, s.BreakBasis = m.served, m.basis
	}
	return s
}

// asRead returns the state as read and since when. The reason stays that of the last change that was made.
func (m *Model) asRead() (breaker.State, time.Duration) {
	switch {
	case m.state == breaker.Open && m.now >= m.end:
		return breaker.HalfOpen, m.end
	case m.state == breaker.Recovering && m.fraction() >= 1:
		return breaker.Closed, m.since
	default:
		return m.state, m.since
	}
}

// tripRatio is the lower of the failure ratios in force, 0 if there is none.
func (m *Model) tripRatio() float64 {
	constant := m.settings.FailureRatio
	relative, ok := m.relativeRatio()
	switch {
	case !ok:
		return constant
	case constant == 0:
		return relative
	default:
		return min(constant, relative)
	}
}

// RetryAfter returns the rest of the break.
func (m *Model) RetryAfter() (time.Duration, bool) {
	if m.state != breaker.Open || m.now >= m.end {
		return 0, false
	}
	return m.end - m.now, true
}

// RetryAfterOf returns what an earlier refusal says of the break now: nothing once that open period is over.
func (m *Model) RetryAfterOf(r *Refusal) (time.Duration, bool) {
	if r.State != breaker.Open || r.epoch != m.epoch {
		return 0, false
	}
	return m.RetryAfter()
}
