package breaker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/benbjohnson/clock"

	"github.com/brownout-go/breaker"
)

// A monitor watches the breakers that were made with it, and isolates or resets them together.
func ExampleMonitor() {
	var monitor breaker.Monitor
	cancel := monitor.Subscribe(func(_ context.Context, c breaker.StateChange) {
		fmt.Printf("%s: %s to %s, %s\n", c.Name, c.From, c.To, c.Reason)
	})
	defer cancel()
	mock := clock.NewMock()
	orders := breaker.MustNew(breaker.Settings{Name: "orders", ConsecutiveFailures: 1, Monitor: &monitor, Clock: mock})
	stock := breaker.MustNew(breaker.Settings{Name: "stock", Monitor: &monitor, Clock: mock})

	_ = orders.Execute(context.Background(), func(context.Context) error { return errors.New("down") })
	worst, err := monitor.State()
	fmt.Println("worst:", worst, err)
	_ = monitor.Isolate() // maintenance begins
	_ = monitor.Reset()   // and ends
	fmt.Println(orders.State(), stock.State())
	// Output:
	// orders: closed to open, consecutive-failures
	// worst: open <nil>
	// orders: open to isolated, isolated
	// stock: closed to isolated, isolated
	// orders: isolated to closed, reset
	// stock: isolated to closed, reset
	// closed closed
}

// health reports every circuit of a monitor. Its status stays 200, because the process is healthy and only a dependency is not.
// Taking the process out of service, or restarting it, would make the outage worse.
func health(monitor *breaker.Monitor) http.HandlerFunc {
	type circuit struct {
		Name   string         `json:"name"`
		State  breaker.State  `json:"state"`
		Reason breaker.Reason `json:"reason,omitzero"`
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		worst, err := monitor.State()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError) // no breaker uses this monitor: the wiring is wrong
			return
		}
		circuits := []circuit{} // a list: two breakers may have one name
		for _, b := range monitor.Breakers() {
			s := b.Snapshot()
			circuits = append(circuits, circuit{s.Name, s.State, s.Reason})
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"worst": worst, "circuits": circuits})
	}
}

func Example_health() {
	var monitor breaker.Monitor
	mock := clock.NewMock()
	orders := breaker.MustNew(breaker.Settings{Name: "orders", Monitor: &monitor, Clock: mock})
	stock := breaker.MustNew(breaker.Settings{Name: "stock", Monitor: &monitor, Clock: mock})
	stock.Isolate()

	answer := httptest.NewRecorder()
	health(&monitor)(answer, httptest.NewRequest(http.MethodGet, "/health", nil))
	fmt.Print(answer.Code, " ", answer.Body)
	fmt.Println("orders itself:", orders.State())
	// Output:
	// 200 {"circuits":[{"name":"orders","state":"closed"},{"name":"stock","state":"isolated","reason":"isolated"}],"worst":"isolated"}
	// orders itself: closed
}
