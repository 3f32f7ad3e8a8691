package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/brownout-go/breaker"
)

const (
	gap     = 10 * time.Millisecond // between two requests
	timeout = 2 * time.Second       // after which a client gives up
)

// guard sends one request, or refuses to. [breaker.Breaker.Execute] is one.
type guard func(context.Context, func(context.Context) error) error

// unguarded sends every request.
func unguarded(ctx context.Context, send func(context.Context) error) error { return send(ctx) }

// client sends requests at a steady rate, as many independent users would: none of them knows how the last request went.
type client struct {
	http  *http.Client
	url   string
	guard guard
	start time.Time

	mu      sync.Mutex // protects following fields
	results []result
	recent  tally // since the last take
}

func newClient(connections http.RoundTripper, url string, g guard, start time.Time) *client {
	return &client{http: &http.Client{Transport: connections}, url: url, guard: g, start: start}
}

// result is what became of one request.
type result struct {
	at      time.Duration // when it was offered
	took    time.Duration
	outcome outcome
}

type outcome int

const (
	ok outcome = iota
	failed
	refused
)

// tally counts requests.
type tally struct{ offered, refused, ok, failed int }

func (t tally) admitted() int { return t.offered - t.refused }

// offer offers requests until a time after the start, or until the context ends, and returns when the last one has ended. What a
// busy machine makes it miss it does not catch up on: a burst would look like a slow server.
func (c *client) offer(ctx context.Context, until time.Duration) {
	var inFlight sync.WaitGroup
	defer inFlight.Wait()
	for at := time.Duration(0); at < until; at = max(at+gap, time.Since(c.start)) {
		if sleep(ctx, at-time.Since(c.start)) != nil {
			return
		}
		inFlight.Go(func() { c.request(ctx) })
	}
}

// request sends one request through the guard. Those that the end of the context cuts off do not count.
func (c *client) request(ctx context.Context) {
	c.offered()
	at := time.Since(c.start)
	err := c.guard(ctx, c.get)
	r := result{at: at, took: time.Since(c.start) - at}
	switch {
	case ctx.Err() != nil:
		return
	case errors.Is(err, breaker.ErrRejected):
		r.outcome = refused
	case err != nil:
		r.outcome = failed
	}
	c.record(r)
}

// get sends a request and returns an error unless the answer is a 200 in time.
func (c *client) get(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, nil)
	if err != nil {
		return err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the server answered %s", response.Status)
	}
	return nil
}

func (c *client) offered() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recent.offered++
}

func (c *client) record(r result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.results = append(c.results, r)
	switch r.outcome {
	case ok:
		c.recent.ok++
	case failed:
		c.recent.failed++
	case refused:
		c.recent.refused++
	}
}

// take returns the tally since it was last taken.
func (c *client) take() tally {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.recent
	c.recent = tally{}
	return t
}
