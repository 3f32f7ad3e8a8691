package main

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// fault is a way in which the server behaves for a while.
type fault uint32

const (
	healthy  fault = iota
	failing        // answers 503
	throttle       // answers 429
	reset          // accepts a request and resets the connection
	hang           // accepts a request and never answers
	slow           // answers at once, and sends the body a byte at a time
	cut            // breaks off in the midst of the body
	refused        // no longer listens; killed at the start, restarted at the end
	ways
)

var faultNames = [ways]string{"healthy", "failing", "throttling", "reset", "hanging", "slow body", "cut body", "killed"}

// server is an HTTP server on the loopback interface that can be killed and restarted at the same address.
type server struct {
	address string
	http    *http.Server
	fault   atomic.Uint32
}

func listen() (*server, error) {
	s := new(server)
	return s, s.start("127.0.0.1:0")
}

// start listens and serves, on a goroutine that ends with kill.
func (s *server) start(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	s.address = l.Addr().String()
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: time.Second}
	go func(h *http.Server) { _ = h.Serve(l) }(s.http)
	return nil
}

// kill closes the listener and every connection, in the midst of whatever they do.
func (s *server) kill() { _ = s.http.Close() }

// misbehave is healthy and faulty in turn until the context ends. It returns how often the server was faulty in which way.
func (s *server) misbehave(ctx context.Context) (times [ways]int) {
	for n := 0; ctx.Err() == nil; n++ {
		f := healthy
		if n%2 == 1 {
			f = failing + fault(n/2)%(ways-failing)
		}
		times[f]++
		s.fault.Store(uint32(f))
		if f == refused {
			s.kill()
		}
		pause(ctx, time.Second+rand.N(2*time.Second))
		if f == refused {
			s.restart()
		}
	}
	return times
}

// restart listens again where it did before. The system may hold on to the address for a moment.
func (s *server) restart() {
	for s.start(s.address) != nil {
		time.Sleep(10 * time.Millisecond)
	}
}

// ServeHTTP answers as the present fault has it.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch fault(s.fault.Load()) {
	case failing:
		http.Error(w, "down", http.StatusServiceUnavailable)
	case throttle:
		http.Error(w, "too many", http.StatusTooManyRequests)
	case reset:
		breakConnection(w)
	case hang:
		<-r.Context().Done()
	case slow:
		for range 50 {
			_, _ = w.Write([]byte("."))
			_ = http.NewResponseController(w).Flush()
			pause(r.Context(), 40*time.Millisecond)
		}
	case cut:
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, "the first of many")
		_ = http.NewResponseController(w).Flush()
		breakConnection(w)
	default:
		pause(r.Context(), rand.N(10*time.Millisecond))
		_, _ = io.WriteString(w, "fine")
	}
}

// breakConnection resets the connection of a request.
func breakConnection(w http.ResponseWriter) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// pause waits, or until the context ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
