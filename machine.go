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
	raises    bool          // ConsecutiveFailures is derived
	opens     uint32        // in a row; saturates
	epoch     uint64        // starts at 0
	since     time.Duration // of the last change of state
	streak    uint32        // transient failures in a row while Closed; saturates
	tally     bucket        // of the calls while Closed, where there is no window
	random    float64       // in stock, in [0, 1): the jitter of the next break
	slowLimit time.Duration // the slow threshold in force
	gauges    *gauges       // nil: nothing is measured, or nothing has been yet
	flights   *flights      // calls in flight; nil: nobody asks, or there is no threshold
	period    *period       // from opening to closing; nil while Closed
	totals    Totals
}

// gauges are what shares of calls are judged by. They are made with the first call, so a breaker that is never used stays small.
type gauges struct {
	window   ring          // the trip window
	baseline *ring         // of failed and slow calls; nil: off
	failures *sequential   // the test on failures; nil: off
	slowness *sequential   // the test on slow calls; nil: off
	latency  *latencies    // the latency baseline; nil: off
	streakAt time.Duration // when the first of the failure streak landed

	incident    time.Duration // how long the last incident lasted; 0: there was none
	incidentEnd time.Duration
}

// period is what the machine keeps from the moment it opens, or is isolated, until it closes.
type period struct {
	openedAt time.Duration
	breakFor time.Duration // the break being served, or served last
	basis    BreakBasis    // of it
	first    time.Duration // the first break of this incident
	whyFirst BreakBasis    // of it
	incident time.Duration // when the circuit first opened in it
	usual    time.Duration // the normal latency when it was last known; 0: never
	counts   Counts        // of the half-open or recovering state
	row      int           // fast probes that succeeded in a row
	probes   probes        // in flight while HalfOpen
	ramp     ramp          // while Recovering
	inFlight int           // calls admitted since half-open and not ended, while Recovering
	admitted time.Duration // when the last of them was admitted
}

// ticket is the machine's side of a permit, small because every call carries one.
type ticket struct {
	epoch   uint64        // of the admission, or unsampled
	slot    uint32        // number of the probe; noSlot: admitted while Closed; rampSlot: admitted while Recovering
	start   time.Duration // when the call began, if latency is measured
	flights *flights      // that it is one of; nil: none
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
	m.watch(0)
	return m
}

// derives notes which numbers the settings as they were written leave to be measured.
func (m *machine) derives(written *Settings) {
	m.patience = written.ProbeTimeout == 0
	m.raises = written.ConsecutiveFailures == 0 && m.rules.testsFailures()
}

// gauge returns the gauges, made with the first call that is measured; nil where nothing is.
func (m *machine) gauge() *gauges {
	if m.gauges == nil && m.rules.judgesRatios() {
		m.gauges = newGauges(m.rules)
	}
	return m.gauges
}

func newGauges(s *Settings) *gauges {
	g := &gauges{window: newRing(s.Window)}
	if s.keepsBaseline() {
		r := newRing(s.baselineWindow())
		g.baseline = &r
	}
	if c := s.SlowCalls; s.measuresLatency() {
		g.latency = newLatencies(c.Quantile, c.Window, c.MinSamples)
		g.latency.tail = c.TailQuantile
	}
	if f := s.Failures; s.testsFailures() {
		g.failures = &sequential{rule: testRule{
			multiple: f.Multiple, floor: f.Floor, ratio: f.Floor, every: f.FalseAlarmEvery.Seconds(), samples: f.MinSamples,
			prior: priorFailures, share: failureShare,
		}}
	}
	if c := s.SlowCalls; s.testsSlowness() {
		g.slowness = &sequential{rule: testRule{
			multiple: slowMultiple, floor: s.SlowCallRatio, ratio: s.SlowCallRatio, every: c.FalseAlarmEvery.Seconds(),
			samples: s.Failures.MinSamples, prior: priorSlow, share: slowShare, slow: true,
		}}
	}
	return g
}

const (
	// Shares of bad calls that a dependency is taken to have before anything is known.
	priorFailures, priorSlow = 0.02, 0.05
	// Shares of what trips that the calls of one slice can add. Slow calls come in bursts of their own: a stall makes every call
	// that it meets slow.
	failureShare, slowShare = 0.5, 0.34
	// slowMultiple is how many times the normal share of slow calls is abnormal.
	slowMultiple = 5
)

// watch makes the flights fit the slow threshold.
func (m *machine) watch(now time.Duration) {
	switch {
	case !m.rules.seesOverdue() || m.slowLimit == noSlowLimit:
		m.flights = nil
	case m.flights == nil || !m.flights.fits(m.slowLimit):
		m.flights = newFlights(now, m.slowLimit)
	}
}

// hasStreak reports whether there is evidence that the next success ends, which must not go unrecorded then.
func (m *machine) hasStreak() bool { return m.streak > 0 }

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
	p := m.begin(now)
	var nominal time.Duration
	nominal, p.basis = m.nominalBreak(p, now)
	p.breakFor = m.rules.BreakJitter.spread(nominal, m.random)
	change.breakFor = p.breakFor
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

// nominalBreak returns the break that begins now, before jitter.
func (m *machine) nominalBreak(p *period, now time.Duration) (time.Duration, BreakBasis) {
	r := m.rules
	switch {
	case r.BreakDuration > 0:
		return grown(r.BreakDuration, r.MaxBreakDuration, int(m.opens)), BreakWritten
	case m.opens == 1:
		p.incident = now
		p.first, p.whyFirst = firstBreak(m.rate(now), m.incidentBefore(now), r.MaxBreakDuration)
		return p.first, p.whyFirst
	default:
		if d := furtherBreak(now - p.incident); d > p.first {
			return min(d, r.MaxBreakDuration), BreakIncident
		}
		return p.first, p.whyFirst
	}
}

// incidentBefore returns how long the incident before lasted, 0 if that is long ago or there was none.
func (m *machine) incidentBefore(now time.Duration) time.Duration {
	if m.gauges == nil || now-m.gauges.incidentEnd > remembered {
		return 0
	}
	return m.gauges.incident
}

// rate returns the normal rate of calls a second, 0 where it is not measured. The bucket of now, in which an incident may already
// have changed it, is left out where the others tell enough.
func (m *machine) rate(now time.Duration) float64 {
	if m.gauges == nil || m.gauges.baseline == nil {
		return 0
	}
	const enough = 20
	c, covered := m.gauges.baseline.readLagged(now, 1)
	if c.Calls < enough {
		c, covered = m.gauges.baseline.readLagged(now, 0)
	}
	return float64(c.Calls) / max(covered, time.Second).Seconds()
}

// begin starts a new epoch and the period that goes with it, of the same incident as the period before.
func (m *machine) begin(now time.Duration) *period {
	m.epoch++
	if m.flights != nil {
		m.flights = newFlights(now, m.slowLimit)
	}
	p := &period{openedAt: now, usual: m.normalLatency(now)}
	if before := m.period; before != nil {
		p.first, p.whyFirst, p.incident, p.basis = before.first, before.whyFirst, before.incident, before.basis
		if p.usual == 0 {
			p.usual = before.usual
		}
	}
	m.period = p
	return p
}

// redirect replaces the break of the open that began in epoch, if it is still being served at now.
func (m *machine) redirect(now time.Duration, epoch uint64, breakFor time.Duration) bool {
	if m.epoch != epoch || m.stateAt(now) != Open {
		return false
	}
	m.period.breakFor, m.period.basis = breakFor, BreakDynamic
	return true
}

func (m *machine) recover(now time.Duration) *transition {
	change := m.enter(now, Recovering, ReasonProbesSucceeded)
	p := m.period
	p.inFlight, p.admitted = len(p.probes.flying), now
	p.probes = probes{}
	p.ramp = newRamp(m.rules.Recovery, m.rules.ProbeSuccesses, now, p.breakFor, p.usual)
	return change
}

// close ends the period; the next break is a first break again.
func (m *machine) close(now time.Duration, reason Reason) *transition {
	change := m.enter(now, Closed, reason)
	if g := m.gauge(); g != nil && m.opens > 0 {
		g.incident, g.incidentEnd = now-m.period.incident, now
	}
	m.period, m.opens = nil, 0
	return change
}

// isolate enters Isolated; nil if that is the state already.
func (m *machine) isolate(now time.Duration) *transition {
	if m.state == Isolated {
		return nil
	}
	change := m.enter(now, Isolated, ReasonIsolated)
	m.begin(now)
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
	if g := m.gauges; g != nil {
		g.window.clear()
		g.clearTests()
	}
	if m.period != nil {
		m.period.counts, m.period.row = Counts{}, 0
	}
}

// clearTests forgets the evidence of both tests.
func (g *gauges) clearTests() {
	if g.failures != nil {
		g.failures.clear()
	}
	if g.slowness != nil {
		g.slowness.clear()
	}
}

// counts returns the evidence of the present state: the trip window while Closed, otherwise the tally of the state.
func (m *machine) counts(now time.Duration) (c Counts) {
	if m.state != Closed {
		return m.period.counts
	}
	if m.gauges != nil {
		c = m.gauges.window.read(now)
	} else {
		c = Counts{Calls: clampInt(uint64(m.tally.calls)), Failures: clampInt(uint64(m.tally.failures)), Slow: clampInt(uint64(m.tally.slow))}
	}
	c.ConsecutiveFailures = clampInt(uint64(m.streak))
	return c
}

// normalLatency returns the measured latency at now, 0 while there are too few samples.
func (m *machine) normalLatency(now time.Duration) time.Duration {
	if m.gauges == nil || m.gauges.latency == nil {
		return 0
	}
	return m.gauges.latency.read(now).normal
}

// slowLimitAt returns the slow threshold in force at now.
func (m *machine) slowLimitAt(now time.Duration) time.Duration {
	if m.gauges == nil || m.gauges.latency == nil {
		return m.slowLimit
	}
	return m.rules.slowLimit(m.gauges.latency.read(now))
}
