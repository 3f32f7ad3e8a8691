package breakerprom_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/benbjohnson/clock"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/brownout-go/breaker"
	"github.com/brownout-go/breaker/breakerprom"
)

// newService returns a service whose breakers can be scraped under /metrics.
func newService() (http.Handler, *breaker.Breaker) {
	var monitor breaker.Monitor
	registry := prometheus.NewRegistry()
	registry.MustRegister(breakerprom.NewCollector(&monitor))

	inventory := breaker.MustNew(breaker.Settings{Name: "inventory", ConsecutiveFailures: 2, Monitor: &monitor})

	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	return mux, inventory
}

func Example() {
	service, inventory := newService()
	for range 3 {
		err := inventory.Execute(context.Background(), func(context.Context) error {
			return errors.New("connection refused")
		})
		fmt.Println(errors.Is(err, breaker.ErrRejected))
	}

	scrape := httptest.NewRecorder()
	service.ServeHTTP(scrape, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	text, err := io.ReadAll(scrape.Result().Body)
	if err != nil {
		fmt.Println(err)
		return
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "breaker_state") || strings.HasPrefix(line, "breaker_transitions") {
			fmt.Print(line)
		}
	}
	// Output:
	// false
	// false
	// true
	// breaker_state{name="inventory",state="closed"} 0
	// breaker_state{name="inventory",state="half-open"} 0
	// breaker_state{name="inventory",state="isolated"} 0
	// breaker_state{name="inventory",state="open"} 1
	// breaker_state{name="inventory",state="recovering"} 0
	// breaker_transitions_total{from="closed",name="inventory",reason="consecutive-failures",to="open"} 1
}

// Two monitors in one registry need a label that tells their series apart.
func ExampleNewCollector_twoMonitors() {
	var reads, writes breaker.Monitor
	registry := prometheus.NewRegistry()
	for pool, monitor := range map[string]*breaker.Monitor{"reads": &reads, "writes": &writes} {
		labels := prometheus.Labels{"pool": pool}
		prometheus.WrapRegistererWith(labels, registry).MustRegister(breakerprom.NewCollector(monitor))
	}
	a := breaker.MustNew(breaker.Settings{Name: "database", Monitor: &reads})
	b := breaker.MustNew(breaker.Settings{Name: "database", Monitor: &writes})
	families, err := registry.Gather()
	fmt.Println(len(families) > 0, err, a.State(), b.State())
	// Output:
	// true <nil> closed closed
}

// A group of breakers by tenant may have more names than anybody wants series.
func ExampleWithMaxNames() {
	var monitor breaker.Monitor
	registry := prometheus.NewRegistry()
	registry.MustRegister(breakerprom.NewCollector(&monitor, breakerprom.WithMaxNames(2)))
	tenants, err := breaker.NewGroup(func(tenant string) breaker.Settings {
		return breaker.Settings{Monitor: &monitor, Clock: clock.NewMock()}
	}, breaker.GroupSettings{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, tenant := range []string{"ada", "bob", "cyd", "dan"} {
		if _, err := tenants.Get(tenant); err != nil {
			fmt.Println(err)
		}
	}
	families, err := registry.Gather()
	if err != nil {
		fmt.Println(err)
	}
	for _, f := range families {
		if f.GetName() == "breaker_instances" {
			for _, m := range f.GetMetric() {
				fmt.Println(m.GetLabel()[0].GetValue(), m.GetGauge().GetValue())
			}
		}
	}
	fmt.Println(tenants.Len(), "tenants")
	// Output:
	// ada 1
	// bob 1
	// other 2
	// 4 tenants
}
