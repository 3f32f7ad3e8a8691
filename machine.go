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
	patience  bool          // ProbeTimeout is derived
	opens     uint32        // in a row; saturates
	epoch     uint64        // starts at 0
	since     time.Duration // of the last change of state
	streak    uint32        // transient failures in a row while Closed; saturates
	tally     bucket        // of the calls while Closed, where there is no window
	random    float64       // in stock, in [0, 1): the jitter of the next break
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
	usual    time.Duration // the normal latency when it was last known; 0: never
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

// derives notes which numbers the settings as they were written leave to be measured.
func (m *machine) derives(written *Settings) {
	m.patience = written.ProbeTimeout == 0
	if m.test != nil {
		m.test.raises = written.ConsecutiveFailures == 0
	}
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

// open begins a break: the grown and jittered one.
func (m *machine) open(now time.Duration, reason Reason) *transition {
	if m.opens < math.MaxInt32 {
		m.opens++
	}
	m.totals.Opens++
	change := m.enter(now, Open, reason)
	change.opens = int(m.opens)
	change.breakFor = m.rules.BreakJitter.spread(grown(m.rules.BreakDuration, m.rules.MaxBreakDuration, change.opens), m.random)
	m.begin(now, change.breakFor)
	return change
}

// retryAfter returns how long the break being served still lasts at now; false if none is.
func (m *machine) retryAfter(now time.Duration) (time.Duration, bool) {
	if m.stateAt(now) != Open {
		return 0, false
	}
	return m.breakEnd() - now, true
}

// retryAfterIn is retryAfter for the break that began with an epoch.
func (m *machine) retryAfterIn(now time.Duration, epoch uint64) (time.Duration, bool) {
	if m.epoch != epoch {
		return 0, false
	}
	return m.retryAfter(now)
}

// begin starts a new epoch and the period that goes with it.
func (m *machine) begin(now, breakFor time.Duration) {
	m.epoch++
	if m.flights != nil {
		m.flights.clear()
	}
	p := &period{openedAt: now, breakFor: breakFor, usual: m.normalLatency(now)}
	if p.usual == 0 && m.period != nil {
		p.usual = m.period.usual
	}
	m.period = p
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
	m.tally = bucket{}
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
	} else {
		c = Counts{Calls: clampInt(uint64(m.tally.calls)), Failures: clampInt(uint64(m.tally.failures)), Slow: clampInt(uint64(m.tally.slow))}
	}
	c.ConsecutiveFailures = clampInt(uint64(m.streak))
	return c
}

// normalLatency returns the measured latency at now, 0 while there are too few samples.
func (m *machine) normalLatency(now time.Duration) time.Duration {
	if m.latency == nil {
		return 0
	}
	return m.latency.read(now).normal
}

// slowLimitAt returns the slow threshold in force at now.
func (m *machine) slowLimitAt(now time.Duration) time.Duration {
	if m.latency == nil {
		return m.slowLimit
	}
	return m.rules.slowLimit(m.latency.read(now))
}
