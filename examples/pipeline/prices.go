package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/brownout-go/breaker"
)

// prices is the client of the price server.
type prices struct {
	http *http.Client
	url  string
}

// permanentError is an answer that asking again will not change.
type permanentError struct{ status string }

func (e *permanentError) Error() string { return "the server answered " + e.status }

func isPermanent(err error) bool {
	_, ok := errors.AsType[*permanentError](err)
	return ok
}

// ask asks for the price of one order. It knows best what an error means, so it marks the error here, once: an order that the
// server rejects says nothing about the server's health.
func (p *prices) ask(ctx context.Context, o order) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/?order="+strconv.Itoa(o.ID), nil)
	if err != nil {
		return 0, err
	}
	response, err := p.http.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	switch code := response.StatusCode; {
	case code == http.StatusOK:
		var answer struct{ Price int }
		err = json.NewDecoder(response.Body).Decode(&answer)
		return answer.Price, err
	case code == http.StatusTooManyRequests:
		return 0, breaker.Mark(fmt.Errorf("the server answered %s", response.Status), breaker.Throttled)
	case code >= 400 && code < 500:
		return 0, breaker.Mark(&permanentError{response.Status}, breaker.Permanent)
	default:
		return 0, fmt.Errorf("the server answered %s", response.Status)
	}
}

// priceServer is a flaky dependency: it is slow, fails one request in a thousand, rejects every fiftieth order for good, and is
// down for a while.
type priceServer struct{ outageFrom, outageTo time.Time }

func (s *priceServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id, err := strconv.Atoi(r.FormValue("order"))
	now := time.Now()
	switch {
	case now.After(s.outageFrom) && now.Before(s.outageTo):
		http.Error(w, "out of order", http.StatusServiceUnavailable)
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
	case id%50 == 0:
		http.Error(w, "no such product", http.StatusUnprocessableEntity)
	case rand.N(1000) == 0:
		http.Error(w, "bad luck", http.StatusInternalServerError)
	default:
		time.Sleep(5*time.Millisecond + rand.N(10*time.Millisecond))
		fmt.Fprintf(w, `{"price":%d}`, 100+id%7)
	}
}

// listen serves on a free port of the loopback interface, until the function it returns is called.
func listen(handler http.Handler) (address string, closeServer func() error, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Second}
	go func() { _ = server.Serve(listener) }() // until it is closed
	return (&url.URL{Scheme: "http", Host: listener.Addr().String()}).String(), server.Close, nil
}
