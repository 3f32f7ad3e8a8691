package breaker

import (
	"math"
	"slices"
	"time"
)

const (
	z99         = 2.3263478740408408 // the standard normal quantile of 0.99
	overload    = 3                  // a call fails beyond so many times the capacity
	warmupTick  = 100 * time.Millisecond
	coldPart    = 20 // a cold dependency has 1/20 of its capacity, and an overloaded tick costs another 1/20
	idleSlowest = 4  // an idle dependency warms up a quarter as fast
)

// modelled is a dependency at work. Its time moves with the calls that start and end.
type modelled struct {
	Dependency
	timeout time.Duration
	sigma   float64 // of the logarithm of healthy latency

	phases []phase // at least one, the first from 0
	phase  int     // the current one

	inFlight int
	capacity float64       // 0: unlimited
	admitted int           // in the current tick
	tickEnds time.Duration // the largest duration without warm-up
	outage   bool          // seen in the current tick

	everStrained bool
	strainedAt   time.Duration // when capacity was last exceeded or not full
}

// draw is what chance has in store for one call.
type draw struct {
	latency float64 // standard normal
	failure float64 // in [0, 1)
}

// fate is how a call will end.
type fate struct {
	takes  time.Duration
	failed bool
	extra  bool // failed for another reason than Dependency.FailureRate
}

func newModelled(d Dependency, timeout time.Duration) *modelled {
	m := &modelled{
		Dependency: d,
		timeout:    timeout,
		phases:     phasesOf(d.Incidents, d.FailureRate),
		capacity:   float64(d.Capacity),
		tickEnds:   math.MaxInt64,
	}
	if d.P99 > 0 {
		m.sigma = math.Log(float64(d.P99)/float64(d.P50)) / z99
	}
	if d.Warmup > 0 {
		m.tickEnds = warmupTick
		m.enter(0)
	}
	return m
}

// start lets one call in and tells how it will end.
func (m *modelled) start(now time.Duration, d draw) fate {
	m.advance(now)
	m.inFlight++
	m.admitted++
	load := m.load()
	p := &m.phases[m.phase]
	switch {
	case d.failure < m.FailureRate:
		return fate{takes: min(m.P50, m.timeout), failed: true}
	case d.failure < p.failing || load > overload:
		return fate{takes: min(m.P50, m.timeout), failed: true, extra: true}
	}
	takes := float64(m.P50) * math.Exp(m.sigma*d.latency) * p.slower * max(1, load)
	if takes > float64(m.timeout) {
		return fate{takes: m.timeout, failed: true, extra: true}
	}
	return fate{takes: time.Duration(takes)}
}

// end lets one call out. What it strained was strained until now: an excess of calls ends with a call.
func (m *modelled) end(now time.Duration) {
	m.advance(now)
	if m.load() > 1 {
		m.strain(now)
	}
	m.inFlight--
}

// load is the number of calls in flight in terms of the capacity, 0 if that is unlimited.
func (m *modelled) load() float64 {
	if m.capacity == 0 {
		return 0
	}
	return float64(m.inFlight) / m.capacity
}

func (m *modelled) strain(now time.Duration) { m.everStrained, m.strainedAt = true, now }

// strainedWithin reports whether the capacity was exceeded or not full at now or at most span before it.
func (m *modelled) strainedWithin(now, span time.Duration) bool {
	m.advance(now)
	short := m.capacity < float64(m.Capacity) || m.load() > 1
	return short || m.everStrained && now-m.strainedAt <= span
}

// capacityAt returns the capacity in whole calls, 0 if it is unlimited.
func (m *modelled) capacityAt(now time.Duration) int {
	m.advance(now)
	return int(m.capacity)
}

// advance goes through the phases and ticks up to now. Where both meet, the phase goes first: an outage that ends with a
// tick has left that tick cold and not the next one.
func (m *modelled) advance(now time.Duration) {
	for {
		next := time.Duration(math.MaxInt64)
		if m.phase+1 < len(m.phases) {
			next = m.phases[m.phase+1].from
		}
		switch {
		case next <= now && next <= m.tickEnds:
			m.enter(m.phase + 1)
		case m.tickEnds <= now:
			m.tick()
		default:
			return
		}
	}
}

// enter begins a phase. An outage turns a dependency with warm-up cold.
func (m *modelled) enter(phase int) {
	m.phase = phase
	if m.Warmup > 0 && m.phases[phase].outage {
		m.capacity = m.cold()
		m.outage = true
	}
}

func (m *modelled) cold() float64 { return max(1, float64(m.Capacity)/coldPart) }

// tick ends 100 ms of warm-up.
func (m *modelled) tick() {
	full := float64(m.Capacity)
	if m.capacity < full {
		m.strain(m.tickEnds)
	}
	regrowth := full * (float64(warmupTick) / float64(m.Warmup))
	switch {
	case m.outage:
	case float64(m.admitted) > 2*max(math.Floor(m.capacity), 1):
		m.capacity = max(m.cold(), m.capacity-full/coldPart)
	case m.admitted == 0:
		m.capacity = min(full, m.capacity+regrowth/idleSlowest)
	default:
		m.capacity = min(full, m.capacity+regrowth)
	}
	m.admitted = 0
	m.outage = m.phases[m.phase].outage
	m.tickEnds += warmupTick
}

// phase is a time in which the same incidents are in progress.
type phase struct {
	from    time.Duration
	slower  float64
	failing float64 // the fraction of calls that fail, Dependency.FailureRate included
	outage  bool
}

// phasesOf splits time at every edge of an incident.
func phasesOf(incidents []Incident, failureRate float64) []phase {
	edges := []time.Duration{0}
	for _, i := range incidents {
		edges = append(edges, i.After, i.end())
	}
	slices.Sort(edges)
	edges = slices.Compact(edges)
	phases := make([]phase, len(edges))
	for n, from := range edges {
		phases[n] = phaseAt(from, incidents, failureRate)
	}
	return phases
}

func phaseAt(at time.Duration, incidents []Incident, failureRate float64) phase {
	p := phase{from: at, slower: 1}
	passing := 1 - failureRate
	for _, i := range incidents {
		if i.After <= at && at < i.end() {
			p.slower *= i.Slower
			passing *= 1 - i.Failing
			p.outage = p.outage || i.Failing == 1
		}
	}
	p.failing = 1 - passing
	return p
}
