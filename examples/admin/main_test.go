package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
)

const secret = "correct horse"

// fixture is a service whose payments fail while down is set.
type fixture struct {
	*service
	handler http.Handler
	down    atomic.Bool
	log     bytes.Buffer
}

func newFixture(t *testing.T) *fixture {
	f := new(fixture)
	pay := func(context.Context) error {
		if f.down.Load() {
			return errors.New("connection to 10.1.2.3 refused")
		}
		return nil
	}
	var err error
	f.service, err = newService(secret, dependencies{pay: pay, reserve: succeeds}, slog.New(slog.NewJSONHandler(&f.log, nil)))
	require.NoError(t, err)
	f.handler = f.service.handler()
	return f
}

func (f *fixture) do(method, path, token, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if token != "" {
		r.Header.Set("Authorization", token)
	}
	w := httptest.NewRecorder()
	f.handler.ServeHTTP(w, r)
	return w
}

// breakPayments lets payments fail until their circuit opens.
func (f *fixture) breakPayments(t *testing.T) {
	f.down.Store(true)
	for range 5 {
		require.Equal(t, http.StatusBadGateway, f.do("GET", "/pay", "", "").Code)
	}
}

func readHealth(t *testing.T, w *httptest.ResponseRecorder) (h health) {
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, "application/json", w.Header().Get("Content-Type"))
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &h))
	return h
}

func TestHealth_DegradedIsShownAndStays200(t *testing.T) {
	f := newFixture(t)
	h := readHealth(t, f.do("GET", "/healthz", "", ""))
	assert.Equal(t, "ok", h.Status)
	assert.Equal(t, breaker.Closed, h.State)
	require.Len(t, h.Breakers, 2)
	assert.Equal(t, "payments", h.Breakers[0].Name)
	assert.Equal(t, "stock", h.Breakers[1].Name)

	f.breakPayments(t)
	h = readHealth(t, f.do("GET", "/healthz", "", ""))
	assert.Equal(t, "degraded", h.Status)
	assert.Equal(t, breaker.Open, h.State)
	assert.Equal(t, breaker.ReasonConsecutiveFailures, h.Breakers[0].Reason)
	assert.Positive(t, h.Breakers[0].RetryAfter)
	assert.Equal(t, uint64(5), h.Breakers[0].Totals.Transient)
	assert.Equal(t, breaker.Closed, h.Breakers[1].State)
	assert.Contains(t, f.log.String(), `"change":{"name":"payments","from":"closed","to":"open"`)
}

func TestGuarded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		assert.Equal(t, http.StatusOK, f.do("GET", "/pay", "", "").Code)
		f.breakPayments(t)
		w := f.do("GET", "/pay", "", "")
		assert.Equal(t, http.StatusServiceUnavailable, w.Code)
		wait, err := time.ParseDuration(w.Header().Get("Retry-After") + "s")
		require.NoError(t, err)
		assert.NotContains(t, w.Body.String(), "10.1.2.3", "one caller's error is none of another's business")
		assert.Equal(t, http.StatusOK, f.do("GET", "/reserve", "", "").Code, "the other dependency has its own circuit")

		f.down.Store(false)
		time.Sleep(wait)
		assert.Equal(t, http.StatusOK, f.do("GET", "/pay", "", "").Code, "Retry-After is true")

		f.payments.Isolate()
		w = f.do("GET", "/pay", "", "")
		assert.Equal(t, http.StatusServiceUnavailable, w.Code)
		assert.Empty(t, w.Header().Values("Retry-After"), "nobody knows")
	})
}

func TestAdmin_IsolateAndReset(t *testing.T) {
	f := newFixture(t)
	for _, step := range []struct {
		path, body      string
		payments, stock breaker.State
	}{
		{"/admin/isolate", `{"name":"payments"}`, breaker.Isolated, breaker.Closed},
		{"/admin/isolate", `{"all":true}`, breaker.Isolated, breaker.Isolated},
		{"/admin/reset", `{"name":"payments"}` + "\n", breaker.Closed, breaker.Isolated},
		{"/admin/reset", `{"all":true}`, breaker.Closed, breaker.Closed},
	} {
		h := readHealth(t, f.do("POST", step.path, right, step.body))
		assert.Equal(t, step.payments, h.Breakers[0].State, "%v", step)
		assert.Equal(t, step.stock, h.Breakers[1].State, "%v", step)
	}
	assert.Equal(t, 4, strings.Count(f.log.String(), "circuit changed"), "those that were isolated already say nothing")
}

const right = "Bearer " + secret

var wrongRequests = []struct {
	name                      string
	method, path, token, body string
	status                    int
}{
	{"method", "GET", "/admin/isolate", right, `{"name":"stock"}`, http.StatusMethodNotAllowed},
	{"method of reset", "PUT", "/admin/reset", right, `{"name":"stock"}`, http.StatusMethodNotAllowed},
	{"method of health", "POST", "/healthz", "", "", http.StatusMethodNotAllowed},
	{"path", "POST", "/admin/open", right, `{"name":"stock"}`, http.StatusNotFound},
	{"no token", "POST", "/admin/isolate", "", `{"name":"stock"}`, http.StatusUnauthorized},
	{"wrong token", "POST", "/admin/isolate", "Bearer wrong", `{"name":"stock"}`, http.StatusUnauthorized},
	{"token cut short", "POST", "/admin/isolate", "Bearer correct", `{"name":"stock"}`, http.StatusUnauthorized},
	{"empty token", "POST", "/admin/reset", "Bearer ", `{"name":"stock"}`, http.StatusUnauthorized},
	{"another scheme", "POST", "/admin/isolate", "Basic " + secret, `{"name":"stock"}`, http.StatusUnauthorized},
	{"token before body", "POST", "/admin/isolate", "Bearer wrong", `{`, http.StatusUnauthorized},
	{"unknown name", "POST", "/admin/isolate", right, `{"name":"mail"}`, http.StatusNotFound},
	{"no body", "POST", "/admin/isolate", right, ``, http.StatusBadRequest},
	{"broken body", "POST", "/admin/isolate", right, `{"name":`, http.StatusBadRequest},
	{"body of another kind", "POST", "/admin/isolate", right, `["stock"]`, http.StatusBadRequest},
	{"unknown field", "POST", "/admin/isolate", right, `{"name":"stock","for":"1m"}`, http.StatusBadRequest},
	{"two orders", "POST", "/admin/isolate", right, `{"name":"stock"}{"name":"payments"}`, http.StatusBadRequest},
	{"rubbish behind the order", "POST", "/admin/isolate", right, `{"name":"stock"}]`, http.StatusBadRequest},
	{"nobody named", "POST", "/admin/isolate", right, `{}`, http.StatusBadRequest},
	{"one and all", "POST", "/admin/isolate", right, `{"name":"stock","all":true}`, http.StatusBadRequest},
	{"too large", "POST", "/admin/isolate", right, `{"name":"` + strings.Repeat("x", maxOrder) + `"}`,
		http.StatusRequestEntityTooLarge},
	{"too large behind the order", "POST", "/admin/isolate", right, `{"name":"stock"}` + strings.Repeat(" ", maxOrder),
		http.StatusRequestEntityTooLarge},
}

func TestAdmin_RefusesWhatIsWrong(t *testing.T) {
	for _, test := range wrongRequests {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t)
			w := f.do(test.method, test.path, test.token, test.body)
			assert.Equal(t, test.status, w.Code, w.Body.String())
			switch test.status {
			case http.StatusMethodNotAllowed:
				assert.NotEmpty(t, w.Header().Get("Allow"))
			case http.StatusUnauthorized:
				assert.Contains(t, w.Header().Get("WWW-Authenticate"), "Bearer")
				assert.NotContains(t, w.Body.String(), secret)
			case http.StatusBadRequest:
				assert.Contains(t, w.Body.String(), `"error"`)
			}
			assert.Equal(t, breaker.Closed, f.stock.State(), "nothing was changed")
		})
	}
}

func TestAdmin_SchemeInAnyCase(t *testing.T) {
	f := newFixture(t)
	assert.Equal(t, http.StatusOK, f.do("POST", "/admin/isolate", "bearer "+secret, `{"name":"stock"}`).Code)
}

// A slow observer does not hold the operator up for ever, and does not undo the change.
func TestAdmin_SlowObserver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.monitor.Subscribe(func(context.Context, breaker.StateChange) { time.Sleep(time.Minute) })
		go f.stock.Isolate()
		synctest.Wait()
		start := time.Now()
		w := f.do("POST", "/admin/reset", right, `{"name":"stock"}`)
		assert.Equal(t, http.StatusAccepted, w.Code)
		assert.Equal(t, patience, time.Since(start))
		assert.Equal(t, breaker.Closed, f.stock.State())
		time.Sleep(2 * time.Minute)
		synctest.Wait()
	})
}

func TestRun_NeedsAToken(t *testing.T) {
	assert.ErrorContains(t, run(t.Context(), nil, "", slog.Default()), "ADMIN_TOKEN")
}

// One round over a real connection: served on loopback, and ended by the context.
func TestServe(t *testing.T) {
	f := newFixture(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- serve(ctx, listener, f.handler) }()

	response, err := http.Get("http://" + listener.Addr().String() + "/healthz")
	require.NoError(t, err)
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	assert.Contains(t, string(body), `"status":"ok"`)
	stop()
	assert.NoError(t, <-served)
	_, err = net.Dial("tcp", listener.Addr().String())
	assert.Error(t, err)
}

func TestRun_ListensOnLoopback(t *testing.T) {
	addr, err := net.ResolveTCPAddr("tcp", loopback)
	require.NoError(t, err)
	assert.True(t, addr.IP.IsLoopback())
	log := new(bytes.Buffer)
	ctx, stop := context.WithCancel(t.Context())
	stop() // it listens, sees that it is to end, and ends
	require.NoError(t, run(ctx, []string{"-addr", "127.0.0.1:0"}, secret, slog.New(slog.NewTextHandler(log, nil))))
	assert.Contains(t, log.String(), "addr=127.0.0.1:")
}
