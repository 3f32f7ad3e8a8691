package breakerotel

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"

	"github.com/brownout-go/breaker"
	"github.com/brownout-go/breaker/breakerotel/internal/ledger"
)

// DefaultMaxNames is the number of breaker names that have time series of their own unless [WithMaxNames] says otherwise.
const DefaultMaxNames = 100

// Option changes what [RegisterMetrics] does.
type Option func(*options)

type options struct {
	provider metric.MeterProvider
	maxNames int
}

// WithMeterProvider says where the instruments are made, instead of [otel.GetMeterProvider]. Nil panics.
func WithMeterProvider(p metric.MeterProvider) Option {
	if p == nil {
		panic("breakerotel: WithMeterProvider of nil")
	}
	return func(o *options) { o.provider = p }
}

// WithMaxNames bounds the number of names that have time series of their own, at least 1. The breakers of all other names are
// summed under the name "other". The series of a name whose breakers are gone end when another name needs their place. A name has
// about 30 series. Less than 1 panics.
func WithMaxNames(n int) Option {
	if n < 1 {
		panic(fmt.Sprintf("breakerotel: WithMaxNames(%d): must be at least 1", n))
	}
	return func(o *options) { o.maxNames = n }
}

// Registration is the observation of one monitor.
type Registration struct {
	ledger       *ledger.Ledger
	registration metric.Registration
}

// Unregister ends the observation. It may be called again.
func (r *Registration) Unregister() error {
	r.ledger.Close()
	return r.registration.Unregister()
}

// RegisterMetrics observes the breakers that are or will be bound to m, whenever metrics are collected. Call it before they are
// made: changes of state are counted from now on, everything else since the breaker was made. A nil monitor panics. The error is
// that of the meter.
//
// Every series has the attribute breaker.name. Breakers that share a name are one series: counters are summed, and gauges show
// the worst, or the sum of callers waiting and of probes. Counters do not go back when a group drops a breaker and makes it again;
// what such a breaker has counted since the last collection is lost. Gauges are observed only while a breaker of the name is
// there, and only while they are known or in force. Register a monitor once: a second registration adds a second set of the same
// observations.
func RegisterMetrics(m *breaker.Monitor, opts ...Option) (*Registration, error) {
	if m == nil {
		panic("breakerotel: RegisterMetrics of a nil monitor")
	}
	o := options{maxNames: DefaultMaxNames}
	for _, opt := range opts {
		opt(&o)
	}
	if o.provider == nil {
		o.provider = otel.GetMeterProvider()
	}
	return register(m, o)
}

func register(m *breaker.Monitor, o options) (*Registration, error) {
	meter := o.provider.Meter(scope)
	made := maker{meter: meter}
	i := made.instruments()
	if len(made.errs) > 0 {
		return nil, errors.Join(made.errs...)
	}
	l := ledger.New(m, o.maxNames)
	registration, err := meter.RegisterCallback(func(_ context.Context, observer metric.Observer) error {
		for _, r := range l.Read() {
			i.observe(observer, r)
		}
		return nil
	}, made.observables...)
	if err != nil {
		l.Close()
		return nil, err
	}
	return &Registration{l, registration}, nil
}
