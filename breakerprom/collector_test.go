package breakerprom_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
	"github.com/brownout-go/breaker/breakerprom"
)

var errDown = errors.New("down")

func call(b *breaker.Breaker, err error) {
	_ = b.Execute(context.Background(), func(context.Context) error { return err })
}

// fleet is breakers in every state, on a clock that stands, with a collector in a registry of its own.
type fleet struct {
	registry *prometheus.Registry
	breakers []*breaker.Breaker
	probe    *breaker.Permit
}

// newFleet returns a fleet. Every metric has a value in it.
func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{registry: prometheus.NewPedanticRegistry()}
	var m breaker.Monitor
	mock := clock.NewMock()
	require.NoError(t, f.registry.Register(breakerprom.NewCollector(&m)))
	add := func(s breaker.Settings) *breaker.Breaker {
		s.Monitor, s.Clock, s.BreakJitter = &m, mock, breaker.JitterNone
		b := breaker.MustNew(s)
		f.breakers = append(f.breakers, b)
		return b
	}
	f.isolated(add)
	f.recovering(add, mock)
	f.halfOpen(t, add, mock)
	f.open(add)
	f.closed(t, add)
	return f
}

func (f *fleet) isolated(add func(breaker.Settings) *breaker.Breaker) {
	add(breaker.Settings{Name: "isolated"}).Isolate()
}

func (f *fleet) recovering(add func(breaker.Settings) *breaker.Breaker, mock *clock.Mock) {
	b := add(breaker.Settings{
		Name: "recovering", ConsecutiveFailures: 1, BreakDuration: time.Second, ProbeSuccesses: 1,
		Recovery: breaker.Recovery{Fraction: 1, Initial: 0.25, Min: time.Minute, Max: time.Minute},
	})
	call(b, errDown)
	mock.Add(time.Second)
	call(b, nil)
}

func (f *fleet) halfOpen(t *testing.T, add func(breaker.Settings) *breaker.Breaker, mock *clock.Mock) {
	b := add(breaker.Settings{Name: "half-open", ConsecutiveFailures: 1, BreakDuration: time.Second})
	late, err := b.TryAcquire(t.Context())
	require.NoError(t, err)
	call(b, errDown)
	late.Record(breaker.Success)
	mock.Add(time.Second)
	f.probe, err = b.TryAcquire(t.Context())
	require.NoError(t, err)
}

func (f *fleet) open(add func(breaker.Settings) *breaker.Breaker) {
	b := add(breaker.Settings{Name: "open", ConsecutiveFailures: 1, BreakDuration: 30 * time.Second})
	call(b, errDown)
	call(b, nil)
}

func (f *fleet) closed(t *testing.T, add func(breaker.Settings) *breaker.Breaker) {
	b := add(breaker.Settings{Name: "closed", ConsecutiveFailures: breaker.Disabled, FailureRatio: 0.5, SlowCallThreshold: time.Second / 2})
	for i := range 200 {
		p, err := b.TryAcquire(t.Context())
		require.NoError(t, err)
		if i%100 == 0 {
			p.RecordLatency(breaker.Transient, 10*time.Millisecond)
		} else {
			p.RecordLatency(breaker.Success, 10*time.Millisecond)
		}
	}
	for _, o := range []breaker.Outcome{breaker.Throttled, breaker.Permanent, breaker.Ignored} {
		p, err := b.TryAcquire(t.Context())
		require.NoError(t, err)
		p.Record(o)
	}
	p, err := b.TryAcquire(t.Context())
	require.NoError(t, err)
	p.RecordLatency(breaker.Success, time.Second)
}

func TestMetricsOfEveryState(t *testing.T) {
	f := newFleet(t)
	expected, err := os.Open("testdata/fleet.prom")
	require.NoError(t, err)
	defer expected.Close()
	names := slices.DeleteFunc(exportedMetrics(t, f.registry), isMeasured)
	assert.NoError(t, testutil.GatherAndCompare(f.registry, expected, names...))
	runtime.KeepAlive(f)
}

// isMeasured reports whether a metric depends on how the breaker measures, and not only on what happened.
func isMeasured(metric string) bool {
	switch metric {
	case "breaker_normal_latency_seconds", "breaker_slow_threshold_seconds", "breaker_normal_failure_ratio", "breaker_trip_ratio",
		"breaker_evidence_ratio":
		return true
	}
	return false
}

// What the breaker measures is exported as its snapshot says.
func TestMeasuredMetrics(t *testing.T) {
	f := newFleet(t)
	closed := f.breakers[len(f.breakers)-1].Snapshot()
	require.NotNil(t, closed.NormalFailureRate)
	for metric, want := range map[string]float64{
		"breaker_normal_latency_seconds": closed.NormalLatency.Seconds(),
		"breaker_slow_threshold_seconds": closed.SlowThreshold.Seconds(),
		"breaker_normal_failure_ratio":   *closed.NormalFailureRate,
		"breaker_trip_ratio":             closed.TripRatio,
		"breaker_evidence_ratio":         closed.Evidence,
	} {
		got, ok := valueOf(t, f.registry, metric, "closed")
		assert.True(t, ok, metric)
		assert.Equal(t, want, got, metric)
	}
	for _, metric := range []string{"breaker_normal_latency_seconds", "breaker_normal_failure_ratio", "breaker_retry_after_seconds"} {
		_, ok := valueOf(t, f.registry, metric, "isolated")
		assert.False(t, ok, "%s is not known", metric)
	}
	runtime.KeepAlive(f)
}

func TestMetricsAreLintedClean(t *testing.T) {
	f := newFleet(t)
	problems, err := testutil.GatherAndLint(f.registry)
	require.NoError(t, err)
	assert.Empty(t, problems)
	runtime.KeepAlive(f)
}

// Every metric of the README is exported, and every one exported is in the README.
func TestReadmeListsEveryMetric(t *testing.T) {
	f := newFleet(t)
	listed := listedMetrics(t)
	assert.Greater(t, len(listed), 15)
	exported := exportedMetrics(t, f.registry)
	assert.ElementsMatch(t, exported, listed)
	runtime.KeepAlive(f)
}

// A scrape in the format of OpenMetrics is complete, with a unit suffix where one is due and the end mark.
func TestOpenMetrics(t *testing.T) {
	f := newFleet(t)
	server := httptest.NewServer(promhttp.HandlerFor(f.registry, promhttp.HandlerOpts{
		EnableOpenMetrics: true, ErrorHandling: promhttp.HTTPErrorOnError,
	}))
	defer server.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	require.NoError(t, err)
	request.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	response, err := server.Client().Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	assert.Contains(t, response.Header.Get("Content-Type"), "application/openmetrics-text")
	assert.Contains(t, string(body), "# TYPE breaker_calls counter\n")
	assert.Contains(t, string(body), `breaker_state{name="open",state="open"} 1.0`)
	assert.True(t, strings.HasSuffix(string(body), "# EOF\n"))
	runtime.KeepAlive(f)
}

// Names nobody would choose, and several of one, never make a scrape fail.
func TestNamesThatAreHardToExport(t *testing.T) {
	var m breaker.Monitor
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(breakerprom.NewCollector(&m, breakerprom.WithMaxNames(4)))
	var breakers []*breaker.Breaker
	for _, name := range []string{"", "", "a\xff", "a\xfe", "a\nb", `"\`, "other", "x", "y"} {
		breakers = append(breakers, breaker.MustNew(breaker.Settings{Name: name, Monitor: &m, Clock: clock.NewMock()}))
	}
	assert.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP breaker_instances Breakers that have the name.
# TYPE breaker_instances gauge
breaker_instances{name="\"\\"} 1
breaker_instances{name="a`+"\uFFFD"+`"} 2
breaker_instances{name="a`+"\uFFFD"+`b"} 1
breaker_instances{name="other"} 3
breaker_instances{name="unnamed"} 2
`), "breaker_instances"))
	runtime.KeepAlive(breakers)
}

func TestGroupThatDropsABreaker(t *testing.T) {
	var m breaker.Monitor
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(breakerprom.NewCollector(&m))
	group, err := breaker.NewGroup(func(string) breaker.Settings {
		return breaker.Settings{Monitor: &m, Clock: clock.NewMock()}
	}, breaker.GroupSettings{})
	require.NoError(t, err)
	for round := range 3 {
		b, err := group.Get("a")
		require.NoError(t, err)
		call(b, nil)
		want := fmt.Sprintf(`
# HELP breaker_calls_total Calls that ended, by outcome. Those that count as discarded are not among them.
# TYPE breaker_calls_total counter
breaker_calls_total{name="a",outcome="ignored"} 0
breaker_calls_total{name="a",outcome="permanent"} 0
breaker_calls_total{name="a",outcome="success"} %d
breaker_calls_total{name="a",outcome="throttled"} 0
breaker_calls_total{name="a",outcome="transient"} 0
`, round+1)
		assert.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(want), "breaker_calls_total"))
		group.Delete("a")
		assert.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(want), "breaker_calls_total", "breaker_state"))
	}
}

func TestMisuseIsNamed(t *testing.T) {
	assert.PanicsWithValue(t, "breakerprom: NewCollector of a nil monitor", func() { breakerprom.NewCollector(nil) })
	assert.PanicsWithValue(t, "breakerprom: WithMaxNames(0): must be at least 1", func() { breakerprom.WithMaxNames(0) })
}

func TestCloseEndsTheCountingOfChanges(t *testing.T) {
	var m breaker.Monitor
	c := breakerprom.NewCollector(&m)
	b := breaker.MustNew(breaker.Settings{Name: "a", Monitor: &m, Clock: clock.NewMock()})
	b.Isolate()
	c.Close()
	b.Reset()
	assert.Equal(t, 1, testutil.CollectAndCount(c, "breaker_transitions_total"))
}

func TestCallersThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m breaker.Monitor
		c := breakerprom.NewCollector(&m)
		b := breaker.MustNew(breaker.Settings{Name: "a", Monitor: &m, Clock: clock.NewMock()})
		b.Isolate()
		for range 2 {
			go func() {
				_, err := b.Acquire(t.Context())
				assert.NoError(t, err)
			}()
		}
		synctest.Wait()
		assert.NoError(t, testutil.CollectAndCompare(c, strings.NewReader(`
# HELP breaker_waiting_calls Callers that wait for admission.
# TYPE breaker_waiting_calls gauge
breaker_waiting_calls{name="a"} 2
`), "breaker_waiting_calls"))
		b.Reset()
		synctest.Wait() // until both are through
	})
}
