package model

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/brownout-go/breaker"
)

// alarms are what the sequential tests say of the calls just recorded.
type alarms struct{ failures, slowness, overdue bool }

// judgeClosed applies the trip conditions in their order. A fast success never trips by itself, but calls in flight may be due to be
// looked at when it ends.
func (m *Model) judgeClosed(failed, slow, crossed bool, err error) {
	a := alarms{failures: m.tell(&m.failing, failed)}
	if !crossed {
		a.slowness = m.tell(&m.slowing, slow)
	}
	due := m.lookDue()
	a.overdue = m.lookAtFlights()
	var reason breaker.Reason
	if failed || slow {
		reason = m.tripped(a)
	} else if due {
		reason = m.overdueTrip(a.overdue)
	}
	if reason != 0 {
		m.open(reason, err)
	}
}

func (m *Model) tripped(a alarms) breaker.Reason {
	s, c := m.settings, m.counts()
	limit, relative := m.relativeRatio()
	enough := c.Calls >= s.MinCalls
	switch streak := m.streakLimit(); {
	case streak > 0 && c.ConsecutiveFailures >= streak:
		return breaker.ReasonConsecutiveFailures
	case enough && s.FailureRatio > 0 && c.FailureRatio() >= s.FailureRatio:
		return breaker.ReasonFailureRatio
	case a.failures, enough && relative && c.Failures >= 2 && c.FailureRatio() >= limit:
		return breaker.ReasonRelativeFailures
	case a.slowness, enough && m.slowRatioTrips() && c.SlowRatio() >= s.SlowCallRatio:
		return breaker.ReasonSlowCalls
	default:
		return m.overdueTrip(a.overdue)
	}
}

// slowRatioTrips reports whether the plain ratio of slow calls trips: without the test, and of a constant threshold.
func (m *Model) slowRatioTrips() bool { return !m.slowing.on || m.settings.SlowCallThreshold > 0 }

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

// probeTimeout is ten times the usual latency, and a second at the least, where it is not written and that is known.
func (m *Model) probeTimeout() time.Duration {
	if !m.unwrittenTimeout || m.usual == 0 {
		return m.settings.ProbeTimeout
	}
	return max(probeTakes, times(m.usual, probeLatencies))
}

// times is a multiple of a duration, or the end of time.
func times(d time.Duration, n float64) time.Duration {
	if float64(d)*n >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(float64(d) * n)
}

// awaitsFast reports whether slow probes prove nothing.
func (m *Model) awaitsFast() bool {
	return m.slowing.on && m.settings.ProbeCohort == 0 && m.settings.Recovery.Fraction == 0
}

// judgeProbe takes a probe's outcome for its own verdict, or for a share of its cohort's.
func (m *Model) judgeProbe(failed, slow bool, err error) {
	s, t := m.settings, m.tally()
	slow = slow && s.Recovery.Fraction == 0
	enough := t.Calls-t.Failures >= s.ProbeSuccesses
	if m.awaitsFast() {
		slow, enough = false, m.fastRow() >= s.ProbeSuccesses
	}
	if n := s.ProbeCohort; n > 0 {
		failed = t.Failures > 0
		if s.FailureRatio > 0 {
			failed = float64(t.Failures)/float64(n) >= s.FailureRatio
		}
		slow = s.Recovery.Fraction == 0 && float64(t.Slow)/float64(n) >= s.SlowCallRatio
		enough = t.Calls >= n
	}
	switch {
	case failed:
		m.open(breaker.ReasonProbeFailed, err)
	case slow:
		m.open(breaker.ReasonProbeSlow, err)
	case enough && s.Recovery.Off:
		m.change(breaker.Closed, breaker.ReasonProbesSucceeded, nil)
	case enough:
		m.change(breaker.Recovering, breaker.ReasonProbesSucceeded, nil)
	}
}

// fastRow is how many probes in a row were fast successes.
func (m *Model) fastRow() int {
	row := 0
	for _, o := range slices.Backward(m.outcomes) {
		if o.period != m.period || o.slow || o.failed {
			break
		}
		row++
	}
	return row
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

// fraction is what a ramp admits now: the lower of what the clock and the evidence allow, or what the evidence alone does.
func (m *Model) fraction() float64 {
	if m.settings.Recovery.Fraction == 0 {
		return m.climb().fraction(m.now)
	}
	return min(m.ramp(m.now), m.evidence())
}

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
			evidence, row = max(initial, rampStep, min(m.ramp(o.at), evidence)/2), 0
			continue
		}
		if row++; row == m.settings.ProbeSuccesses {
			evidence, row = min(1, evidence+max(initial, rampStep)), 0
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
	m.served, m.basis, event.Break = answer, breaker.BreakDynamic, answer
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

// nominal is the break that begins now, before jitter: a written one doubles, a measured one follows traffic and incident.
func (m *Model) nominal() time.Duration {
	if m.settings.BreakDuration == 0 {
		return m.measuredBreak()
	}
	m.basis = breaker.BreakWritten
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
		m.watch = nil
		m.watchAnew()
		m.openedAt, m.opening, m.cause = m.now, reason, err
	case breaker.Closed:
		if m.opens > 0 {
			m.lastIncident, m.lastEnd = m.now-m.firstOpened, m.now
		}
		m.opens, m.opening, m.cause = 0, 0, nil
	}
	m.Events = append(m.Events, event)
}
