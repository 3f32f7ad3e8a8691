// Package model restates what a breaker does, for tests: one straight line of code without a lock, a ring or a running sum. It
// keeps every outcome it accepted and works everything out anew from that list at each step, so it is slow and simple, and
// shares no arithmetic with what it checks.
package model

import (
	"slices"
	"time"

	"github.com/brownout-go/breaker"
)

// Reading is what a clock showed during one step: the time since the breaker was made.
type Reading struct {
	Raw time.Duration
	// After is what it shows once the observers of the step have taken their time.
	After time.Duration
	// Seen tells whether the breaker looked at all. One that needs no time reads no clock, and a clock that is later set back
	// makes the difference visible.
	Seen bool
}

// Model is the expected behaviour of one breaker, driven by one caller that never waits for admission.
type Model struct {
	settings breaker.Settings
	birth    time.Time

	now    time.Duration // as seen last; never goes back
	behind time.Duration // how far the clock has been set back since birth
	seen   bool          // whether this step read the clock

	state    breaker.State
	reason   breaker.Reason // of the last change
	since    time.Duration  // of the last change
	openedAt time.Duration
	end      time.Duration // of the break
	served   time.Duration // the break itself
	opens    int           // in a row
	opening  breaker.Reason
	cause    error
	credit   float64
	epoch    int // entries into Open and Isolated
	period   int // changes of state and resets: what outcomes and probes belong to

	outcomes []outcome
	landings []landing // on ramps by evidence alone
	permits  []*Permit // in flight
	memo     memo
	limit    time.Duration // the slow threshold that the last call left; 0: none
	watch    *watch        // of the calls in flight; nil: nobody looks
	failing  test
	slowing  test
	totals   breaker.Totals

	basis        breaker.BreakBasis // of the break
	first        time.Duration      // the first break of the incident
	firstBasis   breaker.BreakBasis
	firstOpened  time.Duration // when the incident began
	lastIncident time.Duration // how long the one before lasted
	lastEnd      time.Duration

	stock            float64       // the number that the next break is jittered by
	usual            time.Duration // the normal latency when it was last known as the circuit opened, in this open period
	unwrittenTimeout bool          // ProbeTimeout is a default, which follows the normal latency
	unwrittenStreak  bool          // ConsecutiveFailures is a default, which the sequential test may raise

	// Events are the changes of state so far.
	Events []breaker.StateChange
	// Reports name the callbacks that failed so far.
	Reports []string
	// Unread lists what was decided in a step that needed the time and did not read the clock.
	Unread []string
}

// outcome is one accepted success or failure.
type outcome struct {
	at      time.Duration
	period  int
	failed  bool
	slow    bool
	judged  bool // by the ratio of slow calls, which are all of them or those above the constant threshold
	latency time.Duration
	gaveUp  bool // it enters no baseline and ends no streak
}

// Permit is one admission.
type Permit struct {
	Probe     bool
	epoch     int
	period    int
	admitted  time.Duration
	start     time.Duration
	ended     bool
	crossed   bool // the slow threshold, in flight
	unsampled bool // refused by a breaker that only observes
}

// Refusal is what a refused caller is told.
type Refusal struct {
	State  breaker.State
	Reason breaker.Reason
	Cause  error
	epoch  int
}

// Report ends a permit.
type Report struct {
	Outcome  breaker.Outcome
	Via      string // what named the outcome: Record or Mark
	Measured bool   // by the caller: Latency holds
	Latency  time.Duration
	Err      error
	GaveUp   bool // the caller did, so the outcome says nothing of how the call would have ended
}

// New returns the model of a breaker with valid settings, made when its clock showed birth.
func New(s breaker.Settings, birth time.Time) *Model {
	m := &Model{settings: s.WithDefaults(), birth: birth, unwrittenStreak: s.ConsecutiveFailures == 0,
		unwrittenTimeout: s.ProbeTimeout == 0}
	m.failing, m.slowing = testOfFailures(m.settings), testOfSlowness(m.settings)
	m.limit = m.settings.SlowCallThreshold
	m.watchAnew()
	m.draw()
	return m
}

// See lets time pass. A reading up to a second behind the last is noise and reads as the last; one further behind means that
// the clock was set back, and time goes on from where it was.
func (m *Model) See(r Reading) {
	m.seen = r.Seen
	if r.Seen {
		m.read(r.Raw)
	}
}

// read turns what a clock showed into the time.
func (m *Model) read(raw time.Duration) time.Duration {
	at := raw + m.behind
	if at < m.now-time.Second {
		m.behind += m.now - at
	}
	m.now = max(m.now, at)
	return m.now
}

func (m *Model) needsTime(what string) {
	if !m.seen {
		m.Unread = append(m.Unread, what)
	}
}

// Admit asks for admission and returns a permit or a refusal; a breaker that only observes gives a permit for either. Observers of
// what changes do the rest meanwhile: the call begins when they are done.
func (m *Model) Admit(r Reading, meanwhile func()) (*Permit, *Refusal) {
	refusal := m.offer(r)
	if refusal != nil {
		m.totals.Rejected++
		if !m.settings.ObserveOnly {
			meanwhile()
			return nil, refusal
		}
	}
	p := &Permit{
		Probe:     refusal == nil && m.state == breaker.HalfOpen,
		epoch:     m.epoch,
		period:    m.period,
		admitted:  m.now,
		unsampled: refusal != nil,
	}
	m.permits = append(m.permits, p)
	meanwhile()
	if m.judgesSlowness() && !p.unsampled {
		p.start = m.read(r.After)
		m.watchCall(p)
	}
	return p, nil
}

// offer makes the changes that a call asking for admission brings about, and returns why it is refused. A closed breaker
// notes the start of the call and nothing else, unless it looks for overdue calls: that reading joins the timeline with the
// outcome.
func (m *Model) offer(r Reading) *Refusal {
	if m.state == breaker.Closed {
		return m.offerClosed(r)
	}
	m.See(r)
	switch m.state {
	case breaker.Open:
		if m.now < m.end {
			return m.refuse()
		}
		m.change(breaker.HalfOpen, breaker.ReasonBreakElapsed, nil)
	case breaker.HalfOpen:
		if m.lostProbe() {
			m.open(breaker.ReasonProbeTimeout, nil)
			return m.refuse()
		}
		if !m.roomForProbe() {
			return m.refuse()
		}
	case breaker.Recovering:
		if m.rampOverdue() {
			m.open(breaker.ReasonRampFailed, nil)
			return m.refuse()
		}
		return m.offerRamp()
	case breaker.Isolated:
		return m.refuse()
	}
	return nil
}

func (m *Model) refuse() *Refusal {
	return &Refusal{State: m.state, Reason: m.opening, Cause: m.cause, epoch: m.epoch}
}

// End ends a permit and reports whether its outcome counted.
func (m *Model) End(p *Permit, rep Report, r Reading) bool {
	if p.ended {
		return false
	}
	p.ended = true
	m.permits = slices.DeleteFunc(m.permits, func(q *Permit) bool { return q == p })
	m.unwatchCall(p)
	m.See(r)
	o := rep.Outcome
	if o > breaker.Ignored {
		m.Reports = append(m.Reports, rep.Via)
		o = breaker.Ignored
	}
	if p.unsampled {
		return false
	}
	if p.epoch != m.epoch {
		m.totals.Discarded++
		return false
	}
	latency := m.now - p.start
	if rep.Measured {
		latency = rep.Latency
	}
	m.accept(o, p.crossed, max(0, latency), rep.Err)
	if threshold := m.slowThreshold(); rep.GaveUp && threshold > 0 && latency > threshold {
		m.giveUp(p.crossed, latency)
	}
	return true
}

// giveUp enters a call that was slow already when its caller gave it up. A probe of which nobody knows how it would have ended has
// failed, unless a slow one proves nothing.
func (m *Model) giveUp(crossed bool, latency time.Duration) {
	m.needsTime("a call given up")
	m.totals.Slow++
	lost := m.state == breaker.HalfOpen && !m.awaitsFast()
	m.outcomes = append(m.outcomes, outcome{at: m.now, period: m.period, slow: true, judged: m.judgedByRatio(latency), failed: lost,
		latency: latency, gaveUp: true})
	switch m.state {
	case breaker.Closed:
		alarms := alarms{slowness: !crossed && m.tell(&m.slowing, true)}
		alarms.overdue = m.lookAtFlights()
		if reason := m.tripped(alarms); reason != 0 {
			m.open(reason, nil)
		}
	case breaker.HalfOpen:
		m.judgeProbe(lost, true, nil)
	case breaker.Recovering:
		m.judgeRamp(crossed, nil)
	}
}

func (m *Model) accept(o breaker.Outcome, crossed bool, latency time.Duration, err error) {
	switch o {
	case breaker.Success:
		m.totals.Successes++
	case breaker.Transient:
		m.totals.Transient++
	case breaker.Throttled:
		m.totals.Throttled++
	case breaker.Permanent:
		m.totals.Permanent++
	default:
		m.totals.Ignored++
	}
	if o == breaker.Success || o == breaker.Transient {
		m.record(o == breaker.Transient, crossed, latency, err)
	}
}

// record enters a call into the list and then judges it, so that it is part of the evidence it completes.
func (m *Model) record(failed, crossed bool, latency time.Duration, err error) {
	if m.ratios() || m.state != breaker.Closed {
		m.needsTime("an outcome")
	}
	m.outcomes = append(m.outcomes, outcome{at: m.now, period: m.period, failed: failed, latency: latency})
	m.memorise()
	if limit := m.slowThreshold(); limit != m.limit {
		m.limit = limit
		m.slowing.numbers.until, m.slowing.known = 0, m.shareAbove(limit)
	}
	m.watchAnew()
	slow := m.limit > 0 && latency > m.limit
	last := &m.outcomes[len(m.outcomes)-1]
	last.slow, last.judged = slow, slow && m.judgedByRatio(latency)
	if slow {
		m.totals.Slow++
	}
	switch m.state {
	case breaker.Closed:
		m.judgeClosed(failed, slow, crossed, err)
	case breaker.HalfOpen:
		m.judgeProbe(failed, slow, err)
	case breaker.Recovering:
		m.judgeRamp(crossed, err)
	}
}

// judgedByRatio reports whether a slow call counts in the trip window: the test judges what is above the measured threshold alone.
func (m *Model) judgedByRatio(latency time.Duration) bool {
	constant := m.settings.SlowCallThreshold
	return !m.slowing.on || constant == 0 || latency > constant
}

// Isolate refuses everything until Reset.
func (m *Model) Isolate(r Reading) {
	m.See(r)
	if m.state == breaker.Isolated {
		return
	}
	m.change(breaker.Isolated, breaker.ReasonIsolated, nil)
}

// Reset closes the circuit. A closed one forgets its window and streak and tells nobody.
func (m *Model) Reset(r Reading) {
	m.See(r)
	if m.state == breaker.Closed {
		m.period++
		return
	}
	m.change(breaker.Closed, breaker.ReasonReset, nil)
}
