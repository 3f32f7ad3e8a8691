package breakerotel_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/brownout-go/breaker"
	"github.com/brownout-go/breaker/breakerotel"
)

var errDown = errors.New("down")

func call(b *breaker.Breaker, err error) {
	_ = b.Execute(context.Background(), func(context.Context) error { return err })
}

// made returns a breaker that opens on its first failure for a second, on a clock that stands, and measures nothing.
func made(m *breaker.Monitor, name string) (*breaker.Breaker, *clock.Mock) {
	mock := clock.NewMock()
	return breaker.MustNew(breaker.Settings{
		Name: name, ConsecutiveFailures: 1, ProbeSuccesses: 1, BreakDuration: time.Second, BreakJitter: breaker.JitterNone,
		Failures: breaker.Failures{Off: true}, SlowCalls: breaker.SlowCalls{Off: true}, Monitor: m, Clock: mock,
		Recovery: breaker.Recovery{Off: true},
	}), mock
}

// meter is a provider, read by hand.
type meter struct {
	provider *sdkmetric.MeterProvider
	reader   *sdkmetric.ManualReader
	t        *testing.T
}

func newMeter(t *testing.T, opts ...sdkmetric.ManualReaderOption) meter {
	t.Helper()
	reader := sdkmetric.NewManualReader(opts...)
	return meter{sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)), reader, t}
}

// register observes a monitor until the test ends.
func (m meter) register(monitor *breaker.Monitor, opts ...breakerotel.Option) *breakerotel.Registration {
	m.t.Helper()
	r, err := breakerotel.RegisterMetrics(monitor, append(opts, breakerotel.WithMeterProvider(m.provider))...)
	require.NoError(m.t, err)
	return r
}

// series is a value by the attributes that it was observed with.
type series map[attribute.Distinct]float64

func (s series) at(attributes ...attribute.KeyValue) (float64, bool) {
	set := attribute.NewSet(attributes...)
	v, ok := s[set.Equivalent()]
	return v, ok
}

// collect returns the metrics by name, and the value of every series.
func (m meter) collect() (metrics map[string]metricdata.Metrics, values map[string]series) {
	m.t.Helper()
	var data metricdata.ResourceMetrics
	require.NoError(m.t, m.reader.Collect(m.t.Context(), &data))
	metrics, values = map[string]metricdata.Metrics{}, map[string]series{}
	for _, scope := range data.ScopeMetrics {
		require.Equal(m.t, "github.com/brownout-go/breaker/breakerotel", scope.Scope.Name)
		for _, metric := range scope.Metrics {
			metrics[metric.Name], values[metric.Name] = metric, seriesOf(m.t, metric)
		}
	}
	return metrics, values
}

func seriesOf(t *testing.T, m metricdata.Metrics) series {
	t.Helper()
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		return points(t, data.DataPoints)
	case metricdata.Gauge[float64]:
		return points(t, data.DataPoints)
	}
	require.Failf(t, "unknown data", "%s: %T", m.Name, m.Data)
	return nil
}

func points[N int64 | float64](t *testing.T, points []metricdata.DataPoint[N]) series {
	t.Helper()
	s := series{}
	for _, p := range points {
		_, again := s[p.Attributes.Equivalent()]
		require.False(t, again, "observed twice: %v", p.Attributes)
		s[p.Attributes.Equivalent()] = float64(p.Value)
	}
	return s
}

// tracer records spans.
type tracer struct {
	trace.Tracer
	recorder *tracetest.SpanRecorder
}

func newTracer() tracer {
	recorder := tracetest.NewSpanRecorder()
	return tracer{sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("test"), recorder}
}

// spanOf runs f inside a span and returns what the span was told.
func (tr tracer) spanOf(f func(context.Context)) sdktrace.ReadOnlySpan {
	ctx, span := tr.Start(context.Background(), "call")
	f(ctx)
	span.End()
	ended := tr.recorder.Ended()
	return ended[len(ended)-1]
}
