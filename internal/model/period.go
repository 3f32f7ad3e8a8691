package model

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/brownout-go/breaker"
)

// judgeClosed applies the trip conditions in their order. A fast success never trips.
func (m *Model) judgeClosed(failed, slow bool, err error) {
	if !failed && !slow {
		return
	}
	if reason := m.tripped(failed); reason != 0 {
		m.open(reason, err)
	}
}

func (m *Model) tripped(failed bool) breaker.Reason {
	s, c := m.settings, m.counts()
	limit, relative := m.relativeRatio()
	enough := c.Calls >= s.MinCalls
	switch streak := m.streakLimit(); {
	case streak > 0 && c.ConsecutiveFailures >= streak:
		return breaker.ReasonConsecutiveFailures
	case enough && s.FailureRatio > 0 && c.FailureRatio() >= s.FailureRatio:
		return breaker.ReasonFailureRatio
	case failed && m.alarmed(), enough && relative && c.Failures >= 2 && c.FailureRatio() >= limit:
		return breaker.ReasonRelativeFailures
	default:
		return m.slowTrip(c)
	}
}

// roomForProbe counts the probes of this period: those in flight against their limit, and in a cohort those that counted too.
func (m *Model) roomForProbe() bool {
	if n := m.settings.ProbeCohort; n > 0 {
		return m.tally().Calls+len(m.inFlight()) < n
	}
	return len(m.inFlight()) < m.settings.HalfOpenProbes
}

func (m *Model) inFlight() []*Permit {
	var flying []*Permit
	for _, p := range m.permits {
		if p.Probe && p.period == m.period {
			flying = append(flying, p)
		}
	}
	return flying
}

func (m *Model) lostProbe() bool {
	for _, p := range m.inFlight() {
		if m.settings.ProbeTimeout != breaker.Disabled && m.now-p.admitted >= m.probeTimeout() {
			return true
		}
	}
	return false
}

// probeTimeout is ten times the usual latency where it is not written and that is more.
func (m *Model) probeTimeout() time.Duration {
	written := m.settings.ProbeTimeout
	if !m.unwrittenTimeout || float64(m.usual)*10 <= float64(written) {
		return written
	}
	if float64(m.usual)*10 >= math.MaxInt64 {
		return math.MaxInt64
	}
	return 10 * m.usual
}

// judgeProbe takes a probe's outcome for its own verdict, or for a share of its cohort's.
func (m *Model) judgeProbe(failed, slow bool, err error) {
	s, t := m.settings, m.tally()
	slowCounts := s.Recovery.Fraction == 0
	enough := t.Calls-t.Failures >= s.ProbeSuccesses
	if n := s.ProbeCohort; n > 0 {
		failed = t.Failures > 0
		if s.FailureRatio > 0 {
			failed = float64(t.Failures)/float64(n) >= s.FailureRatio
		}
		slow = float64(t.Slow)/float64(n) >= s.SlowCallRatio
		enough = t.Calls >= n
	}
	switch {
	case failed:
		m.open(breaker.ReasonProbeFailed, err)
	case slow && slowCounts:
		m.open(breaker.ReasonProbeSlow, err)
	case enough && slowCounts:
		m.change(breaker.Closed, breaker.ReasonProbesSucceeded, nil)
	case enough:
		m.change(breaker.Recovering, breaker.ReasonProbesSucceeded, nil)
	}
}

// judgeRamp opens on a failure. What was slow or fast is read from the list when the fraction is asked for.
func (m *Model) judgeRamp(failed bool, err error) {
	if failed {
		m.open(breaker.ReasonRampFailed, err)
	}
}

// offerRamp admits by credit: each offer adds the admitted fraction, and each whole credit admits one call.
func (m *Model) offerRamp() *Refusal {
	fraction := m.fraction()
	if fraction >= 1 {
		m.change(breaker.Closed, breaker.ReasonRampCompleted, nil)
		return nil
	}
	m.credit += fraction
	if m.credit < 1 {
		return m.refuse()
	}
	m.credit--
	return nil
}

// fraction is what a ramp admits now: the lower of what the clock and the evidence allow.
func (m *Model) fraction() float64 { return min(m.ramp(m.now), m.evidence()) }

func (m *Model) rampLength() time.Duration {
	r := m.settings.Recovery
	length := r.Fraction * float64(m.served)
	if length >= float64(r.Max) {
		return r.Max
	}
	return max(r.Min, time.Duration(length))
}

// ramp is the fraction that the clock alone allows at a time.
func (m *Model) ramp(at time.Duration) float64 {
	initial, length := m.settings.Recovery.Initial, m.rampLength()
	elapsed := at - m.since
	if elapsed >= length {
		return 1
	}
	return initial + (1-initial)*float64(elapsed)/float64(length)
}

// evidence replays the outcomes of the ramp so far.
func (m *Model) evidence() float64 {
	initial, evidence, row := m.settings.Recovery.Initial, 1.0, 0
	for _, o := range m.outcomes {
		if o.period != m.period {
			continue
		}
		if o.slow {
			evidence, row = max(initial, 1.0/1024, min(m.ramp(o.at), evidence)/2), 0
			continue
		}
		if row++; row == m.settings.ProbeSuccesses {
			evidence, row = min(1, evidence+max(initial, 1.0/1024)), 0
		}
	}
	return evidence
}

// ErrSuperseded is what a BreakDurationFunc returns to the model when on the breaker it ended, while it was asked, the open
// period that it was asked about: the answer comes too late.
var ErrSuperseded = errors.New("model: the open period is over")

// open begins a break: doubled for each open in a row before it, capped, jittered, and replaced by what BreakDurationFunc says.
func (m *Model) open(reason breaker.Reason, err error) {
	m.opens++
	m.totals.Opens++
	m.served = m.jittered(m.nominal())
	m.end = m.after(m.served)
	m.noteUsual()
	m.change(breaker.Open, reason, err)
	m.draw()
	ask := m.settings.BreakDurationFunc
	if ask == nil {
		return
	}
	event := &m.Events[len(m.Events)-1]
	answer, failure := ask(context.Background(), *event)
	superseded := errors.Is(failure, ErrSuperseded)
	if answer <= 0 || failure != nil && !superseded {
		m.Reports = append(m.Reports, "BreakDurationFunc")
		return
	}
	if superseded {
		return
	}
	m.served, event.Break = answer, answer
	m.end = m.after(answer)
}

// noteUsual keeps the normal latency of the time when the circuit opened, for as long as that is not known anew.
func (m *Model) noteUsual() {
	normal := m.measured().value
	if normal > 0 || m.state == breaker.Closed {
		m.usual = normal
	}
}

// draw puts a number in stock.
func (m *Model) draw() {
	if m.settings.Random != nil && m.settings.BreakJitter != breaker.JitterNone {
		m.stock = m.settings.Random()
	}
}

// after is the time d from now, or the end of time.
func (m *Model) after(d time.Duration) time.Duration {
	if d > math.MaxInt64-m.now {
		return math.MaxInt64
	}
	return m.now + d
}

func (m *Model) nominal() time.Duration {
	d := float64(m.settings.BreakDuration)
	for range m.opens - 1 {
		d *= 2
	}
	if d >= float64(m.settings.MaxBreakDuration) {
		return m.settings.MaxBreakDuration
	}
	return time.Duration(d)
}

func (m *Model) jittered(d time.Duration) time.Duration {
	if m.settings.BreakJitter == breaker.JitterNone {
		return d
	}
	r := m.stock
	if !(r >= 0) {
		r = 0
	}
	r = min(r, math.Nextafter(1, 0))
	served := (1 + r) * (float64(d) / 2)
	if m.settings.BreakJitter == breaker.JitterFull {
		served = r * float64(d)
	}
	if served >= float64(d) {
		return d
	}
	return max(1, time.Duration(served))
}

// change moves to a state and tells of it. Every change begins a period of its own: window, streak, probes and ramp start anew.
func (m *Model) change(to breaker.State, reason breaker.Reason, err error) {
	m.needsTime(reason.String())
	event := breaker.StateChange{Name: m.settings.Name, From: m.state, To: to, Reason: reason,
		At: m.birth.Add(m.now), Counts: m.counts(), Err: err}
	m.state, m.reason, m.since = to, reason, m.now
	m.period++
	m.credit = 0
	switch to {
	case breaker.Open:
		event.Break, event.Opens = m.served, m.opens
		fallthrough
	case breaker.Isolated:
		m.epoch++
		m.openedAt, m.opening, m.cause = m.now, reason, err
	case breaker.Closed:
		m.opens, m.opening, m.cause = 0, 0, nil
	}
	m.Events = append(m.Events, event)
}
