// Quickstart shows a circuit breaker at work on a real HTTP server, in 40 seconds: the server is healthy, browns out, fails, and
// restarts cold. A client sends it a hundred requests a second through a breaker. A second client does the same to a second
// server without one, and at the end the two are compared.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/brownout-go/breaker"
)

// settings are scaled from minutes to seconds, so that the story is short. No threshold stands here: what is slow, the breaker
// measures.
func settings(onStateChange func(context.Context, breaker.StateChange)) breaker.Settings {
	return breaker.Settings{
		Name:             "quickstart",
		Window:           2 * time.Second,
		MinCalls:         50, // half a second of calls
		BreakDuration:    time.Second,
		MaxBreakDuration: 3 * time.Second,
		Recovery:         breaker.Recovery{Fraction: 1}, // a ramp as long as the break before it
		OnStateChange:    onStateChange,
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, story)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

// run plays a scenario with and without a breaker at the same time, prints what happens, and compares. It returns when
// everything it started has ended.
func run(ctx context.Context, out io.Writer, s scenario) error {
	start := time.Now()
	t := &table{out: out, start: start, scenario: s}
	b, err := breaker.New(settings(t.change))
	if err != nil {
		return err
	}
	with, err := newSide(s, start, b.Execute)
	if err != nil {
		return err
	}
	defer with.close()
	without, err := newSide(s, start, unguarded)
	if err != nil {
		return err
	}
	defer without.close()

	introduce(out, s)
	t.header()
	play(ctx, s, with.client, without.client, func() { t.line(with.client.take(), b.Snapshot()) })
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	compare(out, s, with.client.results, without.client.results)
	return nil
}

// play lets both clients offer requests to the end of the scenario and calls eachSecond meanwhile.
func play(ctx context.Context, s scenario, with, without *client, eachSecond func()) {
	var clients sync.WaitGroup
	clients.Go(func() { with.offer(ctx, s.length()) })
	clients.Go(func() { without.offer(ctx, s.length()) })
	for at := time.Second; at <= s.length(); at += time.Second {
		if sleep(ctx, at-time.Since(with.start)) != nil {
			break
		}
		eachSecond()
	}
	clients.Wait()
}

// side is a server and its client.
type side struct {
	client *client
	server *http.Server
	served chan error
}

func newSide(s scenario, start time.Time, g guard) (*side, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: newDependency(s, start), ReadHeaderTimeout: timeout}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	c := newClient(&http.Transport{MaxIdleConnsPerHost: 100}, "http://"+listener.Addr().String(), g, start)
	return &side{client: c, server: server, served: served}, nil
}

// close returns when the server has ended, and every request with it. The client must have ended before.
func (s *side) close() {
	s.client.http.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	s.server.Shutdown(ctx)
	<-s.served
}
