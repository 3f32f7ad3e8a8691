package breakerprom

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/brownout-go/breaker"
	"github.com/brownout-go/breaker/breakerprom/internal/ledger"
)

// DefaultMaxNames is the number of breaker names that have series of their own unless [WithMaxNames] says otherwise.
const DefaultMaxNames = 100

// Collector is a [prometheus.Collector] over the breakers of a [breaker.Monitor]. It is safe for concurrent use.
//
// Every series has the label name, the breaker's Settings.Name with what cannot be printed replaced. Breakers that share a name
// are one series: counters are summed, and gauges show the worst, or the sum of callers waiting and of probes. Counters do not go
// back when a group drops a breaker and makes it again; what such a breaker has counted since the last scrape is lost. Gauges
// are there only while a breaker of the name is, and only while they are known or in force.
//
// Two collectors in one registry need labels that tell them apart: see [prometheus.WrapRegistererWith].
type Collector struct{ ledger *ledger.Ledger }

var _ prometheus.Collector = (*Collector)(nil)

// Option changes what [NewCollector] makes.
type Option func(*options)

type options struct{ maxNames int }

// WithMaxNames bounds the number of names that have series of their own, at least 1. The breakers of all other names are summed
// under the name "other". The series of a name whose breakers are gone end when another name needs their place. A name has about
// 30 series. Less than 1 panics.
func WithMaxNames(n int) Option {
	if n < 1 {
		panic(fmt.Sprintf("breakerprom: WithMaxNames(%d): must be at least 1", n))
	}
	return func(o *options) { o.maxNames = n }
}

// NewCollector returns a collector of the breakers that are or will be bound to m. Make it before them: changes of state are
// counted from now on, everything else since the breaker was made. A nil monitor panics.
func NewCollector(m *breaker.Monitor, opts ...Option) *Collector {
	if m == nil {
		panic("breakerprom: NewCollector of a nil monitor")
	}
	o := options{maxNames: DefaultMaxNames}
	for _, opt := range opts {
		opt(&o)
	}
	return &Collector{ledger.New(m, o.maxNames)}
}

// Close ends the counting of changes, so that the monitor lets go of the collector. Unregister it first. Only a program that makes
// collectors again and again over one monitor needs it. It may be called again.
func (c *Collector) Close() { c.ledger.Close() }

// Describe implements [prometheus.Collector].
func (c *Collector) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range described {
		descs <- d
	}
}

// Collect implements [prometheus.Collector].
func (c *Collector) Collect(metrics chan<- prometheus.Metric) {
	for _, r := range c.ledger.Read() {
		emit := emitter{metrics, r.Name}
		emit.counters(r)
		if r.Gauges.Breakers > 0 {
			emit.gauges(r.Gauges)
		}
	}
}
