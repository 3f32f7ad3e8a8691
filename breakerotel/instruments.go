package breakerotel

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/brownout-go/breaker"
	"github.com/brownout-go/breaker/breakerotel/internal/ledger"
)

// instruments are those of one monitor.
type instruments struct {
	calls, slowCalls, discardedCalls, refusals, opens, transitions metric.Int64ObservableCounter

	state, instances, waitingCalls, probesInFlight metric.Int64ObservableUpDownCounter

	admittedRatio, evidence                  metric.Float64ObservableGauge
	normalLatency, slowThreshold, retryAfter metric.Float64ObservableGauge
	normalFailureRatio, tripRatio            metric.Float64ObservableGauge
}

// maker makes instruments, and keeps them and the errors.
type maker struct {
	meter       metric.Meter
	observables []metric.Observable
	errs        []error
}

func (m *maker) instruments() (i instruments) {
	m.counters(&i)
	m.sums(&i)
	m.gauges(&i)
	return i
}

func (m *maker) counters(i *instruments) {
	i.calls = m.counter("breaker.calls", "{call}",
		"Calls that ended, by outcome. Those that count as discarded are not among them.")
	i.slowCalls = m.counter("breaker.slow_calls", "{call}",
		"Calls slower than the threshold, among those with the outcome success or transient.")
	i.discardedCalls = m.counter("breaker.discarded_calls", "{call}",
		"Calls admitted before the circuit opened or was isolated that ended after it.")
	i.refusals = m.counter("breaker.refusals", "{call}",
		"Calls refused; those that would have been, if the breaker only observes.")
	i.opens = m.counter("breaker.opens", "{open}",
		"Times the circuit opened, again after a failed probe or ramp included.")
	i.transitions = m.counter("breaker.transitions", "{transition}",
		"Changes of state since the registration, by reason.")
}

func (m *maker) sums(i *instruments) {
	i.state = m.sum("breaker.state", "{breaker}",
		"1 for the state that the next call would find, the worst of the breakers of the name; 0 for the others.")
	i.instances = m.sum("breaker.instances", "{breaker}",
		"Breakers that have the name.")
	i.waitingCalls = m.sum("breaker.waiting_calls", "{call}",
		"Callers that wait for admission.")
	i.probesInFlight = m.sum("breaker.probes_in_flight", "{call}",
		"Probes of a half-open circuit that have not ended.")
}

func (m *maker) gauges(i *instruments) {
	i.admittedRatio = m.gauge("breaker.admitted_ratio", "1",
		"Fraction of the calls that is admitted: 1 closed, the ramp's while recovering, otherwise 0.")
	i.normalLatency = m.gauge("breaker.normal_latency", "s",
		"Measured latency of the dependency, absent while unknown.")
	i.slowThreshold = m.gauge("breaker.slow_threshold", "s",
		"Latency above which a call is slow now, absent while there is none.")
	i.normalFailureRatio = m.gauge("breaker.normal_failure_ratio", "1",
		"Measured fraction of the calls that fail, absent while unknown.")
	i.tripRatio = m.gauge("breaker.trip_ratio", "1",
		"Fraction of failures that opens the circuit now, absent while there is none.")
	i.evidence = m.gauge("breaker.evidence", "1",
		"Evidence of the sequential test as a fraction of what opens the circuit; 0 while the test is off.")
	i.retryAfter = m.gauge("breaker.retry_after", "s",
		"Time until the break ends, absent unless the circuit is open.")
}

func (m *maker) counter(name, unit, help string) metric.Int64ObservableCounter {
	i, err := m.meter.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(help))
	m.keep(i, err)
	return i
}

func (m *maker) sum(name, unit, help string) metric.Int64ObservableUpDownCounter {
	i, err := m.meter.Int64ObservableUpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(help))
	m.keep(i, err)
	return i
}

func (m *maker) gauge(name, unit, help string) metric.Float64ObservableGauge {
	i, err := m.meter.Float64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(help))
	m.keep(i, err)
	return i
}

func (m *maker) keep(i metric.Observable, err error) {
	m.observables = append(m.observables, i)
	if err != nil {
		m.errs = append(m.errs, err)
	}
}

// observation observes one name.
type observation struct {
	observer metric.Observer
	name     attribute.KeyValue
}

func (o observation) whole(i metric.Int64Observable, v int64, more ...attribute.KeyValue) {
	o.observer.ObserveInt64(i, v, metric.WithAttributes(append(more, o.name)...))
}

func (o observation) number(i metric.Float64Observable, v float64) {
	o.observer.ObserveFloat64(i, v, metric.WithAttributes(o.name))
}

// known observes a gauge, unless it is 0, which stands for unknown or none.
func (o observation) known(i metric.Float64Observable, v float64) {
	if v != 0 {
		o.number(i, v)
	}
}

func (o observation) seconds(i metric.Float64Observable, v time.Duration) { o.known(i, v.Seconds()) }

// observe observes what the breakers of one name show.
func (i instruments) observe(observer metric.Observer, r ledger.Row) {
	o := observation{observer, NameKey.String(r.Name)}
	i.observeCounters(o, r)
	if r.Gauges.Breakers > 0 {
		i.observeGauges(o, r.Gauges)
	}
}

func (i instruments) observeCounters(o observation, r ledger.Row) {
	t := r.Totals
	o.whole(i.calls, int64(t.Successes), OutcomeKey.String(breaker.Success.String()))
	o.whole(i.calls, int64(t.Transient), OutcomeKey.String(breaker.Transient.String()))
	o.whole(i.calls, int64(t.Throttled), OutcomeKey.String(breaker.Throttled.String()))
	o.whole(i.calls, int64(t.Permanent), OutcomeKey.String(breaker.Permanent.String()))
	o.whole(i.calls, int64(t.Ignored), OutcomeKey.String(breaker.Ignored.String()))
	o.whole(i.slowCalls, int64(t.Slow))
	o.whole(i.discardedCalls, int64(t.Discarded))
	o.whole(i.refusals, int64(t.Rejected))
	o.whole(i.opens, int64(t.Opens))
	for _, m := range r.Moves {
		o.whole(i.transitions, int64(m.Count), move(m.From, m.To, m.Reason)...)
	}
}

func (i instruments) observeGauges(o observation, g ledger.Gauges) {
	for s := breaker.Closed; s <= breaker.Isolated; s++ {
		is := int64(0)
		if s == g.State {
			is = 1
		}
		o.whole(i.state, is, StateKey.String(s.String()))
	}
	o.whole(i.instances, int64(g.Breakers))
	o.whole(i.waitingCalls, int64(g.Waiting))
	o.whole(i.probesInFlight, int64(g.ProbesInFlight))
	o.number(i.admittedRatio, g.AdmittedFraction)
	o.seconds(i.normalLatency, g.NormalLatency)
	o.seconds(i.slowThreshold, g.SlowThreshold)
	if g.NormalFailureRate != nil {
		o.number(i.normalFailureRatio, *g.NormalFailureRate)
	}
	o.known(i.tripRatio, g.TripRatio)
	o.number(i.evidence, g.Evidence)
	o.seconds(i.retryAfter, g.RetryAfter)
}
