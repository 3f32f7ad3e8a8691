package breaker

import (
	"math"
	"time"
)

// machine is the state machine of a breaker as plain data: no lock, no clock, no user code. Three operations move it, each by
// at most one transition: admit, settle and the control pair isolate and reset. Times are since the breaker was made, passed
// through at first, so that they never go back.
//
// The epoch counts how often the machine has entered Open or Isolated. A ticket remembers the epoch of its admission; an
// outcome of an earlier epoch changes nothing but a counter.
type machine struct {
	rules     *Settings // valid, with defaults; only its numbers are read
	state     State
	reason    Reason        // of the last change of state
	opens     uint32        // in a row; saturates
	epoch     uint64        // starts at 0
	last      time.Duration // the last time seen
	lag       time.Duration // what is added to a clock that was set back
	since     time.Duration // of the last change of state
	streak    int           // transient failures in a row while Closed; saturates
	slowLimit time.Duration // the slow threshold in force
	window    *ring         // the trip window; nil: no ratio is judged
	failures  *ring         // the failure baseline; nil: off
	latency   *latencies    // the latency baseline; nil: off
	test      *sequential   // of failures; nil: off
	flights   *flights      // calls in flight; nil: nobody asks how long
	period    *period       // from opening to closing; nil while Closed
	totals    Totals
}

// period is what the machine keeps from the moment it opens, or is isolated, until it closes.
type period struct {
	openedAt time.Duration
	breakFor time.Duration // the break being served, or served last
	counts   Counts        // of the half-open or recovering state
	probes   probes        // in flight while HalfOpen
	ramp     ramp          // while Recovering
	inFlight int           // calls admitted since half-open and not ended, while Recovering
	admitted time.Duration // when the last of them was admitted
}

// ticket is the machine's side of a permit, small because every call carries one.
type ticket struct {
	epoch uint64 // of the admission, or unsampled
	slot  uint32 // number of the probe; noSlot: admitted while Closed; rampSlot: admitted while Recovering
	start uint32 // bucket of the flights
}

// unsampled is the epoch of a call admitted by a dry run that would have refused it: nothing of it is recorded.
const unsampled = math.MaxUint64

// transition is one change of state.
type transition struct {
	from, to State
	reason   Reason
	at       time.Duration
	breakFor time.Duration // when to is Open
	opens    int           // when to is Open
	counts   Counts
}

// caller is who asks for admission.
type caller uint8

const (
	passing  caller = iota // goes away when it is not admitted
	arriving               // nobody waits, and it will wait when it is not admitted
	first                  // the first of those who wait, asking again
	behind                 // others wait before it
)

func newMachine(rules *Settings) machine {
	m := machine{rules: rules, slowLimit: rules.slowLimit(quantiles{})}
	if rules.judgesRatios() {
		m.window = newRing(rules.Window)
	}
	if rules.measuresFailures() {
		m.failures = newRing(rules.Failures.Window)
	}
	if c := rules.SlowCalls; rules.measuresLatency() {
		m.latency = newLatencies(c.Quantile, c.Window, c.MinSamples)
		m.latency.tail = c.TailQuantile
	}
	if rules.testsSequentially() {
		m.test = newSequential(rules.Failures)
	}
	if rules.seesOverdue() {
		m.flights = newFlights(rules.Window)
	}
	return m
}

// endOfTime is where time stops, some 73 years after the breaker was made. No sum below overflows before it.
const endOfTime = time.Duration(1) << 61

// setBack is how far a reading of the clock may lie behind the last one and still be a late reading; one that is further
// behind means that the clock was set back.
const setBack = time.Second

// at turns a reading of the clock into the machine's time, which never goes back.
func (m *machine) at(reading time.Duration) time.Duration {
	now := m.read(reading)
	if behind := m.last - now; behind > setBack {
		m.lag += behind
	}
	m.last = max(m.last, now)
	return m.last
}

// advance is at for a reading that is ahead of the last, as nearly all are.
func (m *machine) advance(reading time.Duration) (now time.Duration, ok bool) {
	if now = reading + m.lag; now < m.last || now > endOfTime {
		return 0, false
	}
	m.last = now
	return now, true
}

// isSetBack reports whether a reading lies so far behind the last that the clock must have been set back.
func (m *machine) isSetBack(reading time.Duration) bool { return m.last-m.read(reading) > setBack }

func (m *machine) read(reading time.Duration) time.Duration {
	return min(later(max(reading, -endOfTime), m.lag), endOfTime)
}

// breakEnd returns when the break being served ends.
func (m *machine) breakEnd() time.Duration { return later(m.period.openedAt, m.period.breakFor) }

// stateAt returns the state that the next call would find.
func (m *machine) stateAt(now time.Duration) State {
	switch {
	case m.state == Open && now >= m.breakEnd():
		return HalfOpen
	case m.state == Recovering && m.period.ramp.fraction(now) == 1:
		return Closed
	default:
		return m.state
	}
}

// admit asks for admission at now. The number r in [0, 1) is used only if opensAt(now).
func (m *machine) admit(now time.Duration, who caller, r float64) (t ticket, ok bool, change *transition) {
	switch m.stateAt(now) {
	case Closed:
		if m.state == Recovering {
			change = m.close(now, ReasonRampCompleted)
		} else if m.flights != nil && m.flights.isDue(now) {
			if m.overdueTrips(now) {
				return t, false, m.open(now, ReasonOverdueCalls, r)
			}
			m.flights.judged(now)
		}
		return m.ticket(now, noSlot), true, change
	case Recovering:
		if !m.admitRamp(now, who) {
			return t, false, nil
		}
		m.period.inFlight++
		m.period.admitted = now
		return m.ticket(now, rampSlot), true, nil
	case HalfOpen:
		return m.admitProbe(now, who, r)
	default:
		return t, false, nil
	}
}

// admitRamp spends ramp credit. Every call that arrives adds to the credit; the first of those who wait also goes when
// nothing is in flight, so that a ramp with nobody but waiting callers goes on.
func (m *machine) admitRamp(now time.Duration, who caller) bool {
	p := m.period
	if who != first {
		p.ramp.accrue(now)
	}
	if who == behind {
		return false
	}
	if p.ramp.spend() {
		return true
	}
	return who != passing && (p.inFlight == 0 || now >= m.timeoutOf(p.admitted)) && p.ramp.lend()
}

// admitProbe asks for a probe at now, of a machine that is half-open or whose break has elapsed.
func (m *machine) admitProbe(now time.Duration, who caller, r float64) (t ticket, ok bool, change *transition) {
	if m.reopensAt(now) {
		return t, false, m.open(now, ReasonProbeTimeout, r)
	}
	if who == behind || m.state == HalfOpen && !m.hasProbeSlot() {
		return t, false, nil
	}
	if m.state == Open {
		change = m.enter(now, HalfOpen, ReasonBreakElapsed)
	}
	return m.ticket(now, m.period.probes.admit(now)), true, change
}

// ticket begins a call at now.
func (m *machine) ticket(now time.Duration, slot uint32) ticket {
	t := ticket{epoch: m.epoch, slot: slot}
	if m.flights != nil {
		t.start = m.flights.begin(now)
	}
	return t
}

// opensAt reports whether a call that asks for admission at now opens the circuit.
func (m *machine) opensAt(now time.Duration) bool {
	return m.reopensAt(now) || m.state == Closed && m.flights != nil && m.overdueTrips(now)
}

func (m *machine) hasProbeSlot() bool {
	p, inFlight := m.period, len(m.period.probes.flying)
	if cohort := m.rules.ProbeCohort; cohort > 0 {
		return p.counts.Calls+inFlight < cohort
	}
	return inFlight < m.rules.HalfOpenProbes
}

// reopensAt reports whether a call that asks for admission at now finds the probes lost.
func (m *machine) reopensAt(now time.Duration) bool {
	if m.state != HalfOpen {
		return false
	}
	oldest, ok := m.period.probes.oldest()
	return ok && now >= m.timeoutOf(oldest)
}

// timeoutOf returns when a call admitted at since is as old as the probe time-out.
func (m *machine) timeoutOf(since time.Duration) time.Duration {
	if m.rules.ProbeTimeout == Disabled {
		return math.MaxInt64
	}
	return later(since, m.rules.ProbeTimeout)
}

// nextAsk returns when the first of those who wait should ask again, if nothing else happens before; false if time alone
// changes nothing for it. That may have been before now: time has gone on since it asked.
func (m *machine) nextAsk(now time.Duration) (at time.Duration, ok bool) {
	switch m.state {
	case Open:
		return m.breakEnd(), true
	case HalfOpen:
		oldest, ok := m.period.probes.oldest()
		return m.timeoutOf(oldest), ok
	case Recovering:
		r := &m.period.ramp
		at = m.timeoutOf(m.period.admitted)
		if end := later(r.start, r.length); end > now || m.stateAt(now) == Closed {
			at = min(at, end)
		}
		return at, true
	default:
		return 0, false
	}
}

// settle records the outcome of an admitted call at now, judges, and reports whether it counted. The number r in [0, 1) is used
// only if the outcome is Transient or slowTrips says so.
func (m *machine) settle(now time.Duration, t *ticket, o Outcome, latency time.Duration, r float64) (counted bool, change *transition) {
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
		return true, nil
	}
	failed := o == Transient
	slow := m.measure(now, failed, latency)
	switch m.state {
	case Closed:
		if m.window != nil {
			m.window.at(now).add(failed, slow)
		}
		if failed || slow || m.test != nil {
			change = m.judge(now, failed, slow, r)
		} else {
			m.streak = 0
		}
	case HalfOpen:
		change = m.settleProbe(now, failed, slow, r)
	case Recovering:
		change = m.settleRamp(now, failed, slow, r)
	}
	return true, change
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

func (m *machine) settleProbe(now time.Duration, failed, slow bool, r float64) *transition {
	c := &m.period.counts
	c.add(failed, slow)
	reason := m.judgeProbes(*c)
	switch {
	case reason == 0:
		return nil
	case reason != ReasonProbesSucceeded:
		return m.open(now, reason, r)
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

func (m *machine) settleRamp(now time.Duration, failed, slow bool, r float64) *transition {
	m.period.counts.add(failed, slow)
	if failed {
		return m.open(now, ReasonRampFailed, r)
	}
	m.period.ramp.record(now, slow)
	return nil
}

// open begins a break: the grown and jittered one.
func (m *machine) open(now time.Duration, reason Reason, r float64) *transition {
	if m.opens < math.MaxInt32 {
		m.opens++
	}
	m.totals.Opens++
	change := m.enter(now, Open, reason)
	change.opens = int(m.opens)
	change.breakFor = m.rules.BreakJitter.spread(grown(m.rules.BreakDuration, m.rules.MaxBreakDuration, change.opens), r)
	m.begin(now, change.breakFor)
	return change
}

// begin starts a new epoch and the period that goes with it.
func (m *machine) begin(now, breakFor time.Duration) {
	m.epoch++
	if m.flights != nil {
		m.flights.clear()
	}
	m.period = &period{openedAt: now, breakFor: breakFor}
}

// redirect replaces the break of the open that began in epoch, if it is still being served at now.
func (m *machine) redirect(now time.Duration, epoch uint64, breakFor time.Duration) bool {
	if m.epoch != epoch || m.stateAt(now) != Open {
		return false
	}
	m.period.breakFor = breakFor
	return true
}

func (m *machine) recover(now time.Duration) *transition {
	change := m.enter(now, Recovering, ReasonProbesSucceeded)
	p := m.period
	p.inFlight, p.admitted = len(p.probes.flying), now
	p.probes = probes{}
	p.ramp = newRamp(m.rules.Recovery, m.rules.ProbeSuccesses, now, p.breakFor)
	return change
}

// close ends the period; the next break is a first break again.
func (m *machine) close(now time.Duration, reason Reason) *transition {
	change := m.enter(now, Closed, reason)
	m.period, m.opens = nil, 0
	return change
}

// isolate enters Isolated; nil if that is the state already.
func (m *machine) isolate(now time.Duration) *transition {
	if m.state == Isolated {
		return nil
	}
	change := m.enter(now, Isolated, ReasonIsolated)
	m.begin(now, 0)
	return change
}

// reset enters Closed with no evidence and no growth; nil if Closed is the state already.
func (m *machine) reset(now time.Duration) *transition {
	if m.state == Closed {
		m.forget()
		return nil
	}
	return m.close(now, ReasonReset)
}

// enter changes the state and clears the evidence: it was for the decision just made.
func (m *machine) enter(now time.Duration, to State, reason Reason) *transition {
	change := &transition{from: m.state, to: to, reason: reason, at: now, counts: m.counts(now)}
	m.state, m.reason, m.since = to, reason, now
	m.forget()
	return change
}

// forget clears the evidence. The baselines stay: they measure the dependency, and decay by themselves.
func (m *machine) forget() {
	m.streak = 0
	if m.window != nil {
		m.window.clear()
	}
	if m.test != nil {
		m.test.clear()
	}
	if m.period != nil {
		m.period.counts = Counts{}
	}
}

// counts returns the evidence of the present state: the trip window while Closed, otherwise the tally of the state.
func (m *machine) counts(now time.Duration) (c Counts) {
	if m.state != Closed {
		return m.period.counts
	}
	if m.window != nil {
		c = m.window.read(now)
	}
	c.ConsecutiveFailures = m.streak
	return c
}

// add counts one call.
func (c *Counts) add(failed, slow bool) {
	c.Calls++
	if failed {
		c.Failures++
		c.ConsecutiveFailures++
	} else {
		c.ConsecutiveFailures = 0
	}
	if slow {
		c.Slow++
	}
}
