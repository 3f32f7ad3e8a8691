package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

const (
	fastest  = 5 * time.Millisecond // of a request on a worker of its own, while healthy
	slowest  = 15 * time.Millisecond
	slowdown = 8 // in a brownout

	fullCapacity = 6.0  // workers: 600 requests a second while healthy, 75 in a brownout
	coldCapacity = 0.15 // 15 requests a second
	warmth       = 0.03 // workers that one answer adds to a cold server

	glance = 20 * time.Millisecond // how often a request looks how many others there are
)

// dependency is an HTTP server that behaves as real ones do under load. Requests in progress share its workers evenly. When a
// client gives up, the work done for its request is lost. After an outage the caches are empty: the server has little capacity,
// and warms up only with requests that it finishes. So a cold server under too much load finishes nothing before its clients give
// up, and stays cold.
type dependency struct {
	scenario scenario
	start    time.Time

	mu       sync.Mutex // protects following fields
	requests int        // being worked on
	capacity float64    // in workers
}

func newDependency(s scenario, start time.Time) *dependency {
	return &dependency{scenario: s, start: start, capacity: fullCapacity}
}

var errFailing = errors.New("out of order")

// ServeHTTP answers with 200, however long it takes, and with 503 while failing.
func (d *dependency) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	work := fastest + rand.N(slowest-fastest)
	if d.phase() == brownout {
		work *= slowdown
	}
	if err := d.work(r.Context(), work); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	}
}

func (d *dependency) phase() phase { return d.scenario.at(time.Since(d.start)) }

// work returns when a request has had a worker's time, its client has gone, or the dependency fails.
func (d *dependency) work(ctx context.Context, left time.Duration) error {
	d.enter()
	defer d.leave()
	for left > 0 {
		if d.phase() == failing {
			d.cool()
			return errFailing
		}
		since := time.Now()
		// The nanosecond more makes up for what rounding takes away.
		if err := sleep(ctx, min(time.Duration(float64(left)/d.share())+1, glance)); err != nil {
			return err
		}
		left -= time.Duration(float64(time.Since(since)) * d.share())
	}
	d.warm()
	return nil
}

func (d *dependency) enter() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.requests++
}

func (d *dependency) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.requests--
}

// share returns the part of a worker that each request gets.
func (d *dependency) share() float64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return min(1, d.capacity/float64(d.requests))
}

func (d *dependency) cool() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.capacity = coldCapacity
}

func (d *dependency) warm() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.capacity = min(fullCapacity, d.capacity+warmth)
}

// sleep returns after a duration, or with the context's error when that ends first.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
