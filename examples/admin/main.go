// Admin is a small HTTP service whose circuits an operator can watch and control:
//
//	ADMIN_TOKEN=secret go run ./examples/admin
//
//	curl localhost:8080/pay                # fails in the second half of each minute: call it until the circuit opens
//	curl localhost:8080/healthz
//	curl -H 'Authorization: Bearer secret' -d '{"name":"stock"}' localhost:8080/admin/isolate
//	curl -H 'Authorization: Bearer secret' -d '{"all":true}'     localhost:8080/admin/reset
//
// It listens on the loopback interface only, unless -addr says otherwise.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"
)

// loopback is the address at which only this machine can reach the admin endpoints.
const loopback = "127.0.0.1:8080"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Getenv("ADMIN_TOKEN"), slog.Default())
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "admin:", err)
		os.Exit(1)
	}
}

// run serves until the context ends, and then lets the requests in flight finish.
func run(ctx context.Context, args []string, token string, log *slog.Logger) error {
	flags := flag.NewFlagSet("admin", flag.ContinueOnError)
	addr := flags.String("addr", loopback, "`address` to listen on")
	if err := flags.Parse(args); err != nil {
		return err
	}
	s, err := newService(token, dependencies{pay: failsHalfTheTime, reserve: succeeds}, log)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		return err
	}
	log.Info("listening", "addr", listener.Addr().String())
	return serve(ctx, listener, s.handler())
}

func serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	stopped := make(chan error, 1)
	go func() {
		<-ctx.Done()
		deadline, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		stopped <- server.Shutdown(deadline)
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}

// The two below stand in for dependencies over the network.

func failsHalfTheTime(context.Context) error {
	if time.Now().Second() >= 30 {
		return errors.New("the payment provider does not answer")
	}
	return nil
}

func succeeds(context.Context) error { return nil }
