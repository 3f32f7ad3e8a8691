package breakerprom

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/brownout-go/breaker"
	"github.com/brownout-go/breaker/breakerprom/internal/ledger"
)

// described are the descriptions of all metrics.
var described []*prometheus.Desc

func describe(name, help string, labels ...string) *prometheus.Desc {
	d := prometheus.NewDesc("breaker_"+name, help, append([]string{"name"}, labels...), nil)
	described = append(described, d)
	return d
}

var (
	calls = describe("calls_total",
		"Calls that ended, by outcome. Those that count as discarded are not among them.", "outcome")
	slowCalls = describe("slow_calls_total",
		"Calls slower than the threshold, among those with the outcome success or transient.")
	discardedCalls = describe("discarded_calls_total",
		"Calls admitted before the circuit opened or was isolated that ended after it.")
	refusals = describe("refusals_total",
		"Calls refused; those that would have been, if the breaker only observes.")
	opens = describe("opens_total",
		"Times the circuit opened, again after a failed probe or ramp included.")
	transitions = describe("transitions_total",
		"Changes of state since the collector was made, by reason.", "from", "to", "reason")

	state = describe("state",
		"1 for the state that the next call would find, the worst of the breakers of the name; 0 for the others.", "state")
	instances = describe("instances",
		"Breakers that have the name.")
	admittedRatio = describe("admitted_ratio",
		"Fraction of the calls that is admitted: 1 closed, the ramp's while recovering, otherwise 0.")
	normalLatency = describe("normal_latency_seconds",
		"Measured latency of the dependency, absent while unknown.")
	slowThreshold = describe("slow_threshold_seconds",
		"Latency above which a call is slow now, absent while there is none.")
	normalFailureRatio = describe("normal_failure_ratio",
		"Measured fraction of the calls that fail, absent while unknown.")
	tripRatio = describe("trip_ratio",
		"Fraction of failures that opens the circuit now, absent while there is none.")
	evidenceRatio = describe("evidence_ratio",
		"Evidence of the sequential test as a fraction of what opens the circuit; 0 while the test is off.")
	waitingCalls = describe("waiting_calls",
		"Callers that wait for admission.")
	probesInFlight = describe("probes_in_flight",
		"Probes of a half-open circuit that have not ended.")
	retryAfter = describe("retry_after_seconds",
		"Time until the break ends, absent unless the circuit is open.")
)

// emitter sends metrics of one name.
type emitter struct {
	metrics chan<- prometheus.Metric
	name    string
}

func (e emitter) send(d *prometheus.Desc, t prometheus.ValueType, v float64, labels ...string) {
	e.metrics <- prometheus.MustNewConstMetric(d, t, v, append([]string{e.name}, labels...)...)
}

func (e emitter) counter(d *prometheus.Desc, v uint64, labels ...string) {
	e.send(d, prometheus.CounterValue, float64(v), labels...)
}

func (e emitter) gauge(d *prometheus.Desc, v float64) { e.send(d, prometheus.GaugeValue, v) }

// known sends a gauge, unless it is 0, which stands for unknown or none.
func (e emitter) known(d *prometheus.Desc, v float64) {
	if v != 0 {
		e.gauge(d, v)
	}
}

func (e emitter) seconds(d *prometheus.Desc, v time.Duration) { e.known(d, v.Seconds()) }

func (e emitter) counters(r ledger.Row) {
	t := r.Totals
	e.counter(calls, t.Successes, breaker.Success.String())
	e.counter(calls, t.Transient, breaker.Transient.String())
	e.counter(calls, t.Throttled, breaker.Throttled.String())
	e.counter(calls, t.Permanent, breaker.Permanent.String())
	e.counter(calls, t.Ignored, breaker.Ignored.String())
	e.counter(slowCalls, t.Slow)
	e.counter(discardedCalls, t.Discarded)
	e.counter(refusals, t.Rejected)
	e.counter(opens, t.Opens)
	for _, m := range r.Moves {
		e.counter(transitions, m.Count, m.From.String(), m.To.String(), m.Reason.String())
	}
}

func (e emitter) gauges(g ledger.Gauges) {
	e.states(g.State)
	e.gauge(instances, float64(g.Breakers))
	e.gauge(admittedRatio, g.AdmittedFraction)
	e.seconds(normalLatency, g.NormalLatency)
	e.seconds(slowThreshold, g.SlowThreshold)
	if g.NormalFailureRate != nil {
		e.gauge(normalFailureRatio, *g.NormalFailureRate)
	}
	e.known(tripRatio, g.TripRatio)
	e.gauge(evidenceRatio, g.Evidence)
	e.gauge(waitingCalls, float64(g.Waiting))
	e.gauge(probesInFlight, float64(g.ProbesInFlight))
	e.seconds(retryAfter, g.RetryAfter)
}

func (e emitter) states(is breaker.State) {
	for s := breaker.Closed; s <= breaker.Isolated; s++ {
		value := 0.0
		if s == is {
			value = 1
		}
		e.send(state, prometheus.GaugeValue, value, s.String())
	}
}
