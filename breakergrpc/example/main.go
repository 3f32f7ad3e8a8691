// Example shows a breaker in a gRPC client, in a few seconds: the server works, dies and comes back, and the client tells what its
// breaker makes of it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/brownout-go/breaker"
	"github.com/brownout-go/breaker/breakergrpc"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, 100*time.Millisecond)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "example:", err)
		os.Exit(1)
	}
}

// run tells the story with one call every so often. It returns when the circuit has closed again.
func run(ctx context.Context, out io.Writer, every time.Duration) error {
	server, address, err := serve("127.0.0.1:0")
	if err != nil {
		return err
	}
	c, err := newClient(address, out, every)
	if err != nil {
		server.Stop()
		return err
	}
	defer c.conn.Close()
	c.say("the server works")
	err = c.callUntil(ctx, func() bool { return c.breaker.Snapshot().Totals.Successes >= 5 })
	server.Stop()
	if err != nil {
		return err
	}
	c.say("the server dies")
	if err := c.callUntil(ctx, func() bool { return c.breaker.Snapshot().Totals.Rejected >= 5 }); err != nil {
		return err
	}
	if server, _, err = serve(address); err != nil {
		return err
	}
	defer server.Stop()
	c.say("the server is back")
	return c.callUntil(ctx, func() bool { return c.state == breaker.Closed })
}

// serve starts a server of gRPC's health service.
func serve(address string) (*grpc.Server, string, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, "", err
	}
	server := grpc.NewServer()
	healthpb.RegisterHealthServer(server, health.NewServer())
	go func() { _ = server.Serve(listener) }()
	return server, listener.Addr().String(), nil
}

// client calls a server through a breaker and says what happens.
type client struct {
	conn    *grpc.ClientConn
	breaker *breaker.Breaker
	state   breaker.State // as the breaker has told it
	out     io.Writer
	start   time.Time
	every   time.Duration // between calls
}

func newClient(address string, out io.Writer, every time.Duration) (*client, error) {
	c := &client{out: out, start: time.Now(), every: every}
	var err error
	c.breaker, err = breaker.New(breaker.Settings{
		Name:                "health",
		ConsecutiveFailures: 3,
		BreakDuration:       10 * every,
		OnStateChange: func(_ context.Context, change breaker.StateChange) {
			c.state = change.To
			c.say(fmt.Sprintf("  breaker: %v -> %v (%v)", change.From, change.To, change.Reason))
		},
	})
	if err != nil {
		return nil, err
	}
	// A probe is as good as its connection: gRPC must try to connect more often than the breaker probes.
	reconnect := backoff.Config{BaseDelay: every, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * every}
	c.conn, err = grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: reconnect, MinConnectTimeout: time.Second}),
		grpc.WithUnaryInterceptor(breakergrpc.UnaryClientInterceptor(breakergrpc.Always(c.breaker))),
	)
	return c, err
}

// callUntil calls again and again until it is over.
func (c *client) callUntil(ctx context.Context, over func() bool) error {
	for !over() {
		c.call(ctx)
		select {
		case <-time.After(c.every):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// call makes one call and says how it went.
func (c *client) call(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, err := healthpb.NewHealthClient(c.conn).Check(ctx, &healthpb.HealthCheckRequest{})
	var refusal *breaker.RejectedError
	switch {
	case err == nil:
		c.say("  ok")
	case errors.As(err, &refusal):
		c.say("  refused at once, as " + status.Code(err).String())
	default:
		c.say("  failed: " + status.Code(err).String())
	}
}

func (c *client) say(what string) {
	fmt.Fprintf(c.out, "%5.1f s  %s\n", time.Since(c.start).Seconds(), what)
}
