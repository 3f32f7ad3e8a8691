// Command operations shows the tools of docs/operations.md: a handler that lets an operator isolate and reset circuits, and a check
// for a ramp that has stalled.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/brownout-go/breaker"
)

// control lets an operator isolate and reset the circuits of one process by name. Serve it on a port that only operators can reach.
func control(monitor *breaker.Monitor) http.Handler {
	mux := http.NewServeMux()
	for command, move := range map[string]func(*breaker.Breaker, context.Context) error{
		"isolate": (*breaker.Breaker).IsolateContext,
		"reset":   (*breaker.Breaker).ResetContext,
	} {
		mux.HandleFunc("POST /circuits/{name}/"+command, func(w http.ResponseWriter, r *http.Request) {
			var found bool
			var failed error
			for _, b := range monitor.Breakers() {
				if b.Name() == r.PathValue("name") { // which two may have
					found = true
					failed = errors.Join(failed, move(b, r.Context()))
				}
			}
			switch {
			case !found:
				http.NotFound(w, r)
			case failed != nil:
				http.Error(w, failed.Error(), http.StatusServiceUnavailable) // done, but not everybody has heard of it
			default:
				fmt.Fprintln(w, r.PathValue("name"), command)
			}
		})
	}
	return mux
}

// stalled reports whether a circuit has been recovering for longer than it had been open and half-open before.
func stalled(s breaker.Snapshot, now time.Time) bool {
	return s.State == breaker.Recovering && now.Sub(s.Since) > s.Since.Sub(s.OpenedAt)
}

func main() {
	var monitor breaker.Monitor
	b := breaker.MustNew(breaker.Settings{Name: "inventory", Monitor: &monitor})
	operator := control(&monitor)
	for _, path := range []string{"/circuits/inventory/isolate", "/circuits/inventory/reset", "/circuits/prices/isolate"} {
		answer := httptest.NewRecorder()
		operator.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, path, nil))
		fmt.Print(answer.Code, " ", answer.Body)
	}
	fmt.Println("stalled:", stalled(b.Snapshot(), time.Now()))
}
