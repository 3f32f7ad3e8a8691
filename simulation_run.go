package breaker

import (
	"context"
	"math/rand/v2"
	"time"
)

// client is one process of the fleet: a breaker, its load, and what chance has in store for its calls.
type client struct {
	breaker *Breaker
	arrives float64 // nanoseconds; a sum of whole ones would lose the fractions of a dense load
	// Each kind of number has a source of its own and every offered call takes one from each. A refusal would otherwise shift
	// the numbers of all calls behind it.
	gaps, latencies, failures *rand.Rand

	state State  // as it read after the last event
	opens uint64 // as counted by the breaker, when it was last asked
}

// flight is an admitted call that has not ended.
type flight struct {
	permit *Permit
	fate   fate
	second int // index in the timeline of the second it was offered in
}

// simulator is one run of a simulation.
type simulator struct {
	Simulation
	clock      virtualClock
	agenda     agenda
	dependency *modelled
	clients    []client
	result     Report
	disturbed  []bool // by second: a call offered in it was refused, or failed for another reason than FailureRate
	probes     slidingSecond
}

func newSimulator(s Simulation, build func(Settings) (*Breaker, error)) (*simulator, error) {
	m := &simulator{
		Simulation: s,
		dependency: newModelled(s.Dependency, s.Timeout),
		clients:    make([]client, s.Breakers),
	}
	m.result.Settings = s.Settings.WithDefaults()
	// The sources are seeded one after the other, so that the first n clients of a fleet of any size are the same.
	seeds := rand.NewPCG(s.Seed, 0)
	for i := range m.clients {
		if err := m.join(&m.clients[i], seeds, build); err != nil {
			return nil, err
		}
	}
	m.beginSecond(0)
	return m, nil
}

// join makes one client ready for its first call.
func (m *simulator) join(c *client, seeds *rand.PCG, build func(Settings) (*Breaker, error)) (err error) {
	source := func() *rand.Rand { return rand.New(rand.NewPCG(seeds.Uint64(), seeds.Uint64())) }
	c.gaps, c.latencies, c.failures = source(), source(), source()
	settings := m.Settings
	settings.Clock = &m.clock
	settings.Random = source().Float64
	if c.breaker, err = build(settings); err == nil {
		m.schedule(c)
	}
	return err
}

// play takes one event after the other until no call is left in flight.
func (m *simulator) play(ctx context.Context) error {
	for len(m.agenda.heap) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		e := m.agenda.pop()
		m.clock.now = e.at
		switch e.kind {
		case secondEnds:
			m.endSecond()
		case callEnds:
			m.end(e.client, e.flight)
		case callArrives:
			m.offer(e.client)
			m.schedule(e.client)
		}
	}
	return nil
}

// schedule pushes the next call of a client, if it falls into the run.
func (m *simulator) schedule(c *client) {
	c.arrives += c.gaps.ExpFloat64() * float64(time.Second) / m.Load.PerSecond
	if c.arrives < float64(m.Duration) {
		m.agenda.push(simEvent{at: time.Duration(c.arrives), kind: callArrives, client: c})
	}
}

// offer asks a client's breaker to admit its next call.
func (m *simulator) offer(c *client) {
	d := draw{latency: c.latencies.NormFloat64(), failure: c.failures.Float64()}
	second := len(m.result.Timeline) - 1
	s := &m.result.Timeline[second]
	s.Offered++
	// The calls are independent of the context of Run: its end must not look like a refusal.
	permit, err := c.breaker.TryAcquire(context.Background())
	if err != nil {
		s.Rejected++
		m.disturbed[second] = true
	} else {
		s.Admitted++
		m.admit(c, flight{permit, m.dependency.start(m.clock.now, d), second})
	}
	m.observe(c)
}

func (m *simulator) admit(c *client, f flight) {
	if f.permit.IsProbe() {
		m.probes.add(m.clock.now)
	}
	m.agenda.push(simEvent{at: m.clock.now + f.fate.takes, kind: callEnds, client: c, flight: f})
}

// end reports an admitted call to its breaker.
func (m *simulator) end(c *client, f flight) {
	m.dependency.end(m.clock.now)
	m.result.latencies.add(f.fate.takes)
	s := &m.result.Timeline[f.second]
	if f.fate.failed {
		s.Failed++
		f.permit.Record(Transient)
	} else {
		s.Succeeded++
		f.permit.Record(Success)
	}
	m.disturbed[f.second] = m.disturbed[f.second] || f.fate.extra
	m.observe(c)
}

// observe finds out whether the event that has just happened opened the client's breaker. One event makes at most one change
// of state, so a breaker that reads closed has not opened, and one that was open and still is has not opened anew. In
// between the breaker's own count decides: a ramp that has come to its end reads closed and may still re-open, and a break
// of no length reads half-open at once.
func (m *simulator) observe(c *client) {
	before := c.state
	c.state = c.breaker.State()
	if c.state == Closed {
		m.weigh(c.breaker.evidence())
	}
	if c.state == Closed || c.state == Open && before == Open {
		return
	}
	snapshot := c.breaker.Snapshot()
	if snapshot.Totals.Opens > c.opens {
		c.opens = snapshot.Totals.Opens
		m.opened(snapshot.Reason)
	}
}

// weigh keeps the most evidence of this second.
func (m *simulator) weigh(failures, slowness float64) {
	s := &m.result.Timeline[len(m.result.Timeline)-1]
	s.Evidence, s.SlowEvidence = max(s.Evidence, failures), max(s.SlowEvidence, slowness)
}

func (m *simulator) opened(why Reason) {
	r := &m.result
	r.Opens++
	m.weighOpening(why)
	if first, ok := m.firstIncident(); ok && !r.Opened && m.clock.now >= first {
		r.Opened = true
		r.TimeToOpen = m.clock.now - first
	}
	if !why.reopens() && !m.excused() {
		r.FalseOpens++
	}
}

// weighOpening notes that a test tripped: opening took its evidence away.
func (m *simulator) weighOpening(why Reason) {
	s := &m.result.Settings
	switch {
	case why == ReasonRelativeFailures && s.testsFailures():
		m.weigh(1, 0)
	case (why == ReasonSlowCalls || why == ReasonOverdueCalls) && s.testsSlowness():
		m.weigh(0, 1)
	}
}

// reopens reports whether the reason is one of a circuit that had not closed yet.
func (r Reason) reopens() bool {
	switch r {
	case ReasonProbeFailed, ReasonProbeSlow, ReasonProbeTimeout, ReasonRampFailed:
		return true
	default:
		return false
	}
}

// excused reports whether the dependency gave cause to open a circuit now: the evidence of a trip reaches back by its
// window, and by the time that the calls in it took.
func (m *simulator) excused() bool {
	now, reach := m.clock.now, later(m.result.Settings.Window, m.Timeout)
	for _, i := range m.Dependency.Incidents {
		if i.After <= now && now <= later(i.end(), reach) {
			return true
		}
	}
	return m.dependency.strainedWithin(now, reach)
}

// beginSecond adds a sample to the timeline and schedules its end.
func (m *simulator) beginSecond(at time.Duration) {
	m.result.Timeline = append(m.result.Timeline, Sample{At: at})
	m.disturbed = append(m.disturbed, false)
	m.agenda.push(simEvent{at: min(at+time.Second, m.Duration), kind: secondEnds})
}

// endSecond looks at the fleet as it is now.
func (m *simulator) endSecond() {
	s := &m.result.Timeline[len(m.result.Timeline)-1]
	var fraction float64
	for i := range m.clients {
		snapshot := m.clients[i].breaker.Snapshot()
		s.State = max(s.State, snapshot.State)
		fraction += snapshot.AdmittedFraction
	}
	s.AdmittedFraction = fraction / float64(len(m.clients))
	s.Capacity = m.dependency.capacityAt(m.clock.now)
	if m.OnSample != nil {
		m.OnSample(*s)
	}
	if m.clock.now < m.Duration {
		m.beginSecond(m.clock.now)
	}
}
