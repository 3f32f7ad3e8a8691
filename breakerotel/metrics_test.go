package breakerotel_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/brownout-go/breaker"
	"github.com/brownout-go/breaker/breakerotel"
)

// kv is short for text attributes.
func kv(pairs ...string) (attributes []attribute.KeyValue) {
	for i := 0; i < len(pairs); i += 2 {
		attributes = append(attributes, attribute.String("breaker."+pairs[i], pairs[i+1]))
	}
	return attributes
}

// assertValue asserts the value of one series.
func assertValue(t *testing.T, values map[string]series, metric string, want float64, attributes ...attribute.KeyValue) {
	t.Helper()
	got, ok := values[metric].at(attributes...)
	assert.True(t, ok, "%s has no series %v", metric, attributes)
	assert.Equal(t, want, got, "%s %v", metric, attributes)
}

// measured returns a closed breaker that has measured its dependency, and counted one call of every kind.
func measured(t *testing.T, m *breaker.Monitor) *breaker.Breaker {
	t.Helper()
	b := breaker.MustNew(breaker.Settings{
		Name: "measured", ConsecutiveFailures: breaker.Disabled, FailureRatio: 0.5, SlowCallThreshold: time.Second / 2,
		Monitor: m, Clock: clock.NewMock(),
	})
	record := func(o breaker.Outcome, latency time.Duration) {
		p, err := b.TryAcquire(t.Context())
		require.NoError(t, err)
		p.RecordLatency(o, latency)
	}
	for range 200 {
		record(breaker.Success, 10*time.Millisecond)
	}
	record(breaker.Success, time.Second)
	for _, o := range []breaker.Outcome{breaker.Transient, breaker.Transient, breaker.Throttled, breaker.Permanent, breaker.Ignored} {
		record(o, 10*time.Millisecond)
	}
	return b
}

func TestCounters(t *testing.T) {
	var monitor breaker.Monitor
	m := newMeter(t)
	m.register(&monitor)
	closed := measured(t, &monitor)
	open, _ := made(&monitor, "open")
	late, err := open.TryAcquire(t.Context())
	require.NoError(t, err)
	call(open, errDown)
	late.Release()
	call(open, nil)

	_, values := m.collect()
	assertValue(t, values, "breaker.calls", 201, kv("name", "measured", "outcome", "success")...)
	assertValue(t, values, "breaker.calls", 2, kv("name", "measured", "outcome", "transient")...)
	assertValue(t, values, "breaker.calls", 1, kv("name", "measured", "outcome", "throttled")...)
	assertValue(t, values, "breaker.calls", 1, kv("name", "measured", "outcome", "permanent")...)
	assertValue(t, values, "breaker.calls", 1, kv("name", "measured", "outcome", "ignored")...)
	assertValue(t, values, "breaker.slow_calls", 1, kv("name", "measured")...)
	assertValue(t, values, "breaker.discarded_calls", 1, kv("name", "open")...)
	assertValue(t, values, "breaker.refusals", 1, kv("name", "open")...)
	assertValue(t, values, "breaker.opens", 1, kv("name", "open")...)
	assertValue(t, values, "breaker.opens", 0, kv("name", "measured")...)
	assertValue(t, values, "breaker.transitions", 1,
		kv("name", "open", "from", "closed", "to", "open", "reason", "consecutive-failures")...)
	assert.Len(t, values["breaker.transitions"], 1)
	runtime.KeepAlive(closed)
}

func TestGauges(t *testing.T) {
	var monitor breaker.Monitor
	m := newMeter(t)
	m.register(&monitor)
	closed := measured(t, &monitor)
	open, mock := made(&monitor, "open")
	call(open, errDown)
	_, values := m.collect()
	for _, state := range []string{"closed", "recovering", "half-open", "open", "isolated"} {
		is := map[bool]float64{true: 1}
		assertValue(t, values, "breaker.state", is[state == "open"], kv("name", "open", "state", state)...)
		assertValue(t, values, "breaker.state", is[state == "closed"], kv("name", "measured", "state", state)...)
	}
	s := closed.Snapshot()
	assertValue(t, values, "breaker.normal_latency", s.NormalLatency.Seconds(), kv("name", "measured")...)
	assertValue(t, values, "breaker.slow_threshold", s.SlowThreshold.Seconds(), kv("name", "measured")...)
	assertValue(t, values, "breaker.normal_failure_ratio", *s.NormalFailureRate, kv("name", "measured")...)
	assertValue(t, values, "breaker.trip_ratio", s.TripRatio, kv("name", "measured")...)
	assertValue(t, values, "breaker.evidence", s.Evidence, kv("name", "measured")...)
	assertValue(t, values, "breaker.admitted_ratio", 1, kv("name", "measured")...)
	assertValue(t, values, "breaker.admitted_ratio", 0, kv("name", "open")...)
	assertValue(t, values, "breaker.retry_after", 1, kv("name", "open")...)
	assertValue(t, values, "breaker.instances", 1, kv("name", "open")...)
	assertValue(t, values, "breaker.waiting_calls", 0, kv("name", "open")...)
	for _, metric := range []string{
		"breaker.normal_latency", "breaker.slow_threshold", "breaker.normal_failure_ratio", "breaker.trip_ratio", "breaker.retry_after",
	} {
		assert.Len(t, values[metric], 1, "%s is known of one breaker", metric)
	}

	mock.Add(time.Second)
	probe, err := open.TryAcquire(t.Context())
	require.NoError(t, err)
	_, values = m.collect()
	assertValue(t, values, "breaker.probes_in_flight", 1, kv("name", "open")...)
	assertValue(t, values, "breaker.state", 1, kv("name", "open", "state", "half-open")...)
	assert.Empty(t, values["breaker.retry_after"])
	probe.Release()
}

// The README lists every instrument with its kind and unit.
func TestReadmeListsEveryInstrument(t *testing.T) {
	var monitor breaker.Monitor
	m := newMeter(t)
	m.register(&monitor)
	closed := measured(t, &monitor)
	open, _ := made(&monitor, "open")
	call(open, errDown)
	metrics, _ := m.collect()

	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	rows := regexp.MustCompile("(?m)^\\| `(breaker\\.[a-z_]+)` \\| ([a-z]+) \\| `([^`]+)` \\|").FindAllStringSubmatch(string(text), -1)
	assert.Len(t, rows, len(metrics))
	for _, row := range rows {
		metric := metrics[row[1]]
		assert.Equal(t, row[2], kindOf(metric), row[1])
		assert.Equal(t, row[3], metric.Unit, row[1])
		assert.NotEmpty(t, metric.Description, row[1])
	}
	runtime.KeepAlive(closed)
}

func kindOf(m metricdata.Metrics) string {
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		if data.IsMonotonic {
			return "counter"
		}
		return "updowncounter"
	case metricdata.Gauge[float64]:
		return "gauge"
	}
	return ""
}

// A group drops a breaker and makes it again. Neither temporality sees a counter go back.
func TestGroupThatDropsABreaker(t *testing.T) {
	for name, temporality := range map[string]sdkmetric.TemporalitySelector{
		"cumulative": sdkmetric.CumulativeTemporalitySelector, "delta": sdkmetric.DeltaTemporalitySelector,
	} {
		var monitor breaker.Monitor
		m := newMeter(t, sdkmetric.WithTemporalitySelector(temporality))
		m.register(&monitor)
		group, err := breaker.NewGroup(func(string) breaker.Settings {
			return breaker.Settings{Monitor: &monitor, Clock: clock.NewMock()}
		}, breaker.GroupSettings{})
		require.NoError(t, err)
		for round := range 3 {
			b, err := group.Get("a")
			require.NoError(t, err)
			call(b, nil)
			want := map[string]float64{"cumulative": float64(round + 1), "delta": 1}[name]
			_, values := m.collect()
			assertValue(t, values, "breaker.calls", want, kv("name", "a", "outcome", "success")...)
			group.Delete("a")
			_, values = m.collect()
			assertValue(t, values, "breaker.calls", map[string]float64{"cumulative": want}[name], kv("name", "a", "outcome", "success")...)
			assert.NotContains(t, values, "breaker.state", "no breaker has the name")
		}
	}
}

func TestNamesAreBounded(t *testing.T) {
	var monitor breaker.Monitor
	m := newMeter(t)
	m.register(&monitor, breakerotel.WithMaxNames(2))
	var breakers []*breaker.Breaker
	for _, name := range []string{"a\xff", "a\xfe", "", "x", "y", strings.Repeat("z", 500)} {
		b, _ := made(&monitor, name)
		breakers = append(breakers, b)
	}
	_, values := m.collect()
	assertValue(t, values, "breaker.instances", 2, kv("name", "a\uFFFD")...)
	assertValue(t, values, "breaker.instances", 1, kv("name", "unnamed")...)
	assertValue(t, values, "breaker.instances", 3, kv("name", "other")...)
	assert.Len(t, values["breaker.instances"], 3)
	runtime.KeepAlive(breakers)
}

func TestUnregister(t *testing.T) {
	var monitor breaker.Monitor
	m := newMeter(t)
	r := m.register(&monitor)
	b, _ := made(&monitor, "a")
	_, values := m.collect()
	assert.NotEmpty(t, values)
	require.NoError(t, r.Unregister())
	require.NoError(t, r.Unregister())
	_, values = m.collect()
	for name, series := range values {
		assert.Empty(t, series, name)
	}
	runtime.KeepAlive(b)
}

// Without a provider of its own a registration uses the global one, also one that is set later.
func TestGlobalProvider(t *testing.T) {
	var monitor breaker.Monitor
	r, err := breakerotel.RegisterMetrics(&monitor)
	require.NoError(t, err)
	m := newMeter(t)
	otel.SetMeterProvider(m.provider)
	defer otel.SetMeterProvider(noop.NewMeterProvider())
	b, _ := made(&monitor, "a")
	_, values := m.collect()
	assertValue(t, values, "breaker.instances", 1, kv("name", "a")...)
	require.NoError(t, r.Unregister())
	runtime.KeepAlive(b)
}

// failing is a provider whose meters fail.
type failing struct{ noop.MeterProvider }

func (failing) Meter(string, ...metric.MeterOption) metric.Meter { return failingMeter{} }

type failingMeter struct{ noop.Meter }

var errMeter = errors.New("no instruments left")

func (failingMeter) Float64ObservableGauge(string, ...metric.Float64ObservableGaugeOption) (metric.Float64ObservableGauge, error) {
	return nil, errMeter
}

func TestMeterThatFails(t *testing.T) {
	var monitor breaker.Monitor
	r, err := breakerotel.RegisterMetrics(&monitor, breakerotel.WithMeterProvider(failing{}))
	assert.ErrorIs(t, err, errMeter)
	assert.Nil(t, r)
}

func TestMisuseIsNamed(t *testing.T) {
	assert.PanicsWithValue(t, "breakerotel: RegisterMetrics of a nil monitor", func() { _, _ = breakerotel.RegisterMetrics(nil) })
	assert.PanicsWithValue(t, "breakerotel: WithMaxNames(0): must be at least 1", func() { breakerotel.WithMaxNames(0) })
	assert.PanicsWithValue(t, "breakerotel: WithMeterProvider of nil", func() { breakerotel.WithMeterProvider(nil) })
	b, _ := made(nil, "a")
	assert.PanicsWithValue(t, "breakerotel: Execute of a nil function", func() { _, _ = breakerotel.Execute[int](t.Context(), b, nil) })
}

// The ledger is that of breakerprom, to the byte: a fault found in one is mended in both.
func TestLedgerIsThatOfBreakerprom(t *testing.T) {
	others, err := filepath.Glob("../breakerprom/internal/ledger/*")
	require.NoError(t, err)
	if len(others) == 0 {
		t.Skip("breakerprom is not beside this module")
	}
	ours, err := filepath.Glob("internal/ledger/*")
	require.NoError(t, err)
	assert.Len(t, ours, len(others))
	for _, other := range others {
		want, err := os.ReadFile(other)
		require.NoError(t, err)
		got, err := os.ReadFile(filepath.Join("internal", "ledger", filepath.Base(other)))
		require.NoError(t, err)
		assert.Equal(t, string(want), string(got), other)
	}
}

func TestCallersThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var monitor breaker.Monitor
		m := newMeter(t)
		m.register(&monitor)
		b, _ := made(&monitor, "a")
		b.Isolate()
		for range 2 {
			go func() {
				_, err := b.Acquire(t.Context())
				assert.NoError(t, err)
			}()
		}
		synctest.Wait()
		_, values := m.collect()
		assertValue(t, values, "breaker.waiting_calls", 2, kv("name", "a")...)
		b.Reset()
		synctest.Wait() // until both are through
	})
}
