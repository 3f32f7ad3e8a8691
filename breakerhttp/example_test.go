package breakerhttp_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/brownout-go/breaker"
	"github.com/brownout-go/breaker/breakerhttp"
)

// One breaker in an HTTP client, for a client that talks to one service.
func ExampleTransport() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()

	client := &http.Client{Transport: &breakerhttp.Transport{
		Breaker: breaker.MustNew(breaker.Settings{
			Name:                "inventory",
			ConsecutiveFailures: 2,
			Clock:               clock.NewMock(), // leave it out in a program
		}),
	}}
	for range 3 {
		resp, err := client.Get(server.URL)
		var refusal *breaker.RejectedError
		if errors.As(err, &refusal) {
			fmt.Println("refused:", refusal.Name, "is", refusal.State)
			continue
		}
		if err != nil {
			fmt.Println(err)
			continue
		}
		resp.Body.Close()
		fmt.Println(resp.Status)
	}
	// Output:
	// 503 Service Unavailable
	// 503 Service Unavailable
	// refused: inventory is open
}

// A breaker for each host, for a client that talks to many. A group bounds their number.
func ExamplePerHost() {
	hosts, err := breaker.NewGroup(func(host string) breaker.Settings {
		return breaker.Settings{ConsecutiveFailures: 1, Clock: clock.NewMock()}
	}, breaker.GroupSettings{Capacity: 1000})
	if err != nil {
		fmt.Println(err)
		return
	}
	client := &http.Client{Transport: &breakerhttp.Transport{
		Base: roundTripFunc(func(req *http.Request) (*http.Response, error) {
			if strings.EqualFold(req.URL.Hostname(), "down.example") {
				return nil, errors.New("connection refused")
			}
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: req}, nil
		}),
		Select: breakerhttp.PerHost(hosts),
	}}
	for _, url := range []string{"http://down.example/a", "http://DOWN.example:80/b", "http://up.example/"} {
		_, err := client.Get(url)
		fmt.Println(url, "refused:", errors.Is(err, breaker.ErrRejected))
	}
	// Output:
	// http://down.example/a refused: false
	// http://DOWN.example:80/b refused: true
	// http://up.example/ refused: false
}

// A server that says when to come back knows better than a growing break. It is believed up to a bound.
func ExampleBreakDuration() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "90") // a date would do as well
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()

	b := breaker.MustNew(breaker.Settings{
		Name:                "inventory",
		ConsecutiveFailures: 1,

		BreakDurationFunc: breakerhttp.BreakDuration(10 * time.Minute),
		Clock:             clock.NewMock(),
	})
	client := &http.Client{Transport: &breakerhttp.Transport{Breaker: b}}
	resp, err := client.Get(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	resp.Body.Close()
	wait, _ := b.RetryAfter()
	fmt.Println(resp.Status, "- back in", wait)
	// Output:
	// 503 Service Unavailable - back in 1m30s
}

// Why a circuit is open: a refusal holds the response that opened it.
func ExampleStatusError() {
	b := breaker.MustNew(breaker.Settings{Name: "inventory", ConsecutiveFailures: 1, Clock: clock.NewMock()})
	client := &http.Client{Transport: &breakerhttp.Transport{Breaker: b,
		Base: roundTripFunc(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusBadGateway, Body: http.NoBody}, nil
		})}}
	for range 2 {
		_, err := client.Get("http://inventory.example/parts?page=2")
		var refusal *breaker.RejectedError
		var status *breakerhttp.StatusError
		if errors.As(err, &refusal) && errors.As(refusal.Cause, &status) {
			fmt.Println(refusal.Name, "is", refusal.State, "-", status)
		}
	}
	// Output:
	// inventory is open - breakerhttp: inventory.example answered 502 Bad Gateway
}

// A download that breaks off is a failure, though its status was 200.
func ExampleTransport_throughBody() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		fmt.Fprint(w, "half of it")
	}))
	defer server.Close()

	b := breaker.MustNew(breaker.Settings{Name: "files", ConsecutiveFailures: 1, Clock: clock.NewMock()})
	client := &http.Client{Transport: &breakerhttp.Transport{Breaker: b, ThroughBody: true}}
	resp, err := client.Get(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.Status, b.State())
	_, err = io.ReadAll(resp.Body)
	fmt.Println(err, "-", b.State())
	// Output:
	// 200 OK closed
	// unexpected EOF - open
}
