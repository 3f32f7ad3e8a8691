package breakerhttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
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

// A server that says when to come back knows better than a growing break. The classifier sees the header, and the break is
// asked for next, by the same goroutine.
func ExampleTransport_retryAfter() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "90")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()

	var hint atomic.Int64 // the last Retry-After, in seconds; 0: none
	b := breaker.MustNew(breaker.Settings{
		Name:                "inventory",
		ConsecutiveFailures: 1,
		BreakDurationFunc: func(_ context.Context, change breaker.StateChange) (time.Duration, error) {
			if seconds := hint.Load(); seconds > 0 {
				return min(time.Duration(seconds)*time.Second, 10*time.Minute), nil // a bound of our own
			}
			return change.Break, nil
		},
		Clock: clock.NewMock(),
	})
	client := &http.Client{Transport: &breakerhttp.Transport{
		Breaker: b,
		Classify: func(resp *http.Response, err error) breaker.Outcome {
			if resp != nil {
				seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
				hint.Store(int64(seconds))
			}
			return breakerhttp.Classify(resp, err)
		},
	}}
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
