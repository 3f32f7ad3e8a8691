package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"strconv"

	"github.com/brownout-go/breaker"
)

// dependencies are what the service calls.
type dependencies struct{ pay, reserve func(context.Context) error }

// service has one breaker for each of its dependencies, and one monitor for all its breakers.
type service struct {
	dependencies dependencies
	monitor      *breaker.Monitor
	payments     *breaker.Breaker
	stock        *breaker.Breaker
	token        [sha256.Size]byte // of the bearer token
}

func newService(token string, d dependencies, log *slog.Logger) (*service, error) {
	if token == "" {
		return nil, errors.New("set ADMIN_TOKEN to the token that operators are to send")
	}
	s := &service{dependencies: d, monitor: new(breaker.Monitor), token: sha256.Sum256([]byte(token))}
	s.monitor.Subscribe(func(ctx context.Context, change breaker.StateChange) {
		log.WarnContext(ctx, "circuit changed", "change", change)
	})
	var err error
	if s.payments, err = breaker.New(breaker.Settings{
		Name: "payments", ConsecutiveFailures: 5, Monitor: s.monitor,
	}); err != nil {
		return nil, err
	}
	s.stock, err = breaker.New(breaker.Settings{Name: "stock", Monitor: s.monitor})
	return s, err
}

func (s *service) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /pay", guarded(s.payments, s.dependencies.pay))
	mux.HandleFunc("GET /reserve", guarded(s.stock, s.dependencies.reserve))
	mux.HandleFunc("GET /healthz", s.health)
	mux.Handle("POST /admin/isolate", s.admin((*breaker.Breaker).IsolateContext, (*breaker.Monitor).IsolateContext))
	mux.Handle("POST /admin/reset", s.admin((*breaker.Breaker).ResetContext, (*breaker.Monitor).ResetContext))
	return mux
}

// guarded calls a dependency through its breaker. A refusal becomes a 503 that says when to come back; a failure of the
// dependency becomes a 502.
func guarded(b *breaker.Breaker, call func(context.Context) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := b.Execute(r.Context(), call)
		rejected, ok := errors.AsType[*breaker.RejectedError](err)
		switch {
		case ok:
			if wait, ok := rejected.RetryAfter(); ok {
				w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
			}
			problem(w, http.StatusServiceUnavailable, rejected.Error())
		case err != nil:
			problem(w, http.StatusBadGateway, "the dependency failed") // what it said is for the log, not for the client
		default:
			reply(w, http.StatusOK, map[string]string{"status": "done"})
		}
	}
}

// health is what /healthz and the admin endpoints answer.
type health struct {
	Status   string             `json:"status"` // ok or degraded
	State    breaker.State      `json:"state"`  // the worst
	Breakers []breaker.Snapshot `json:"breakers"`
}

// health shows the state of every circuit. An open one makes the service degraded, not dead. The status stays 200, because
// restarting a process whose dependency is down helps nobody.
func (s *service) health(w http.ResponseWriter, _ *http.Request) {
	h := health{Status: "ok"}
	for _, b := range s.monitor.Breakers() {
		snapshot := b.Snapshot()
		h.Breakers = append(h.Breakers, snapshot)
		h.State = max(h.State, snapshot.State)
	}
	if h.State != breaker.Closed {
		h.Status = "degraded"
	}
	reply(w, http.StatusOK, h)
}

func problem(w http.ResponseWriter, status int, message string) {
	reply(w, status, map[string]string{"error": message})
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // fails only when the client has gone
}
