package breakergrpc_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/benbjohnson/clock"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/brownout-go/breaker"
	"github.com/brownout-go/breaker/breakergrpc"
)

// startHealth starts a server of gRPC's health service and returns its address.
func startHealth(opts ...grpc.ServerOption) (target string, stop func()) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	server := grpc.NewServer(opts...)
	healthpb.RegisterHealthServer(server, health.NewServer())
	go func() { _ = server.Serve(listener) }()
	return "passthrough:///" + listener.Addr().String(), server.Stop
}

// broken is a server that answers every call with an error.
func broken(context.Context, any, *grpc.UnaryServerInfo, grpc.UnaryHandler) (any, error) {
	return nil, status.Error(codes.Internal, "out of order")
}

// One breaker for all calls and streams of a connection.
func Example() {
	target, stop := startHealth(grpc.UnaryInterceptor(broken))
	defer stop()

	b := breaker.MustNew(breaker.Settings{Name: "inventory", ConsecutiveFailures: 2})
	conn, err := grpc.NewClient(target,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUnaryInterceptor(breakergrpc.UnaryClientInterceptor(breakergrpc.Always(b))),
		grpc.WithStreamInterceptor(breakergrpc.StreamClientInterceptor(breakergrpc.Always(b))),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	for range 3 {
		_, err := healthpb.NewHealthClient(conn).Check(context.Background(), &healthpb.HealthCheckRequest{})
		fmt.Println(status.Code(err), "- refused:", errors.Is(err, breaker.ErrRejected))
	}
	// Output:
	// Internal - refused: false
	// Internal - refused: false
	// Unavailable - refused: true
}

// A breaker for each method, for a service whose methods depend on different things. A group bounds their number.
func ExamplePerMethod() {
	target, stop := startHealth(grpc.UnaryInterceptor(broken))
	defer stop()

	group, err := breaker.NewGroup(func(call breakergrpc.Call) breaker.Settings {
		return breaker.Settings{Name: call.Method, ConsecutiveFailures: 1}
	}, breaker.GroupSettings{Capacity: 1000})
	if err != nil {
		fmt.Println(err)
		return
	}
	conn, err := grpc.NewClient(target,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUnaryInterceptor(breakergrpc.UnaryClientInterceptor(breakergrpc.PerMethod(group))),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	client := healthpb.NewHealthClient(conn)
	for range 2 {
		_, err := client.Check(context.Background(), &healthpb.HealthCheckRequest{})
		fmt.Println("Check:", status.Code(err))
	}
	_, err = client.List(context.Background(), &healthpb.HealthListRequest{})
	fmt.Println("List:", status.Code(err))
	for _, b := range group.All() {
		fmt.Println(b.Name(), "is", b.State())
	}
	// Unordered output:
	// Check: Internal
	// Check: Unavailable
	// List: Internal
	// /grpc.health.v1.Health/Check is open
	// /grpc.health.v1.Health/List is open
}

// A subscription goes on until its caller has had enough, so the breaker asks only how it begins.
func ExampleWithOutcomeAtHeaders() {
	target, stop := startHealth()
	defer stop()

	b := breaker.MustNew(breaker.Settings{Name: "events"})
	conn, err := grpc.NewClient(target,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithStreamInterceptor(
			breakergrpc.StreamClientInterceptor(breakergrpc.Always(b), breakergrpc.WithOutcomeAtHeaders())),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	watch, err := healthpb.NewHealthClient(conn).Watch(ctx, &healthpb.HealthCheckRequest{})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = watch.Recv()
	fmt.Println(err, "- successes:", b.Snapshot().Totals.Successes)
	// Output:
	// <nil> - successes: 1
}

// A server guards its own handlers: clients learn at once that one of them is out of order, and when to come back.
func ExampleUnaryServerInterceptor() {
	b := breaker.MustNew(breaker.Settings{
		Name:                "Check",
		ConsecutiveFailures: 1,
		BreakDuration:       15 * time.Second,
		BreakJitter:         breaker.JitterNone,
		Clock:               clock.NewMock(), // leave it out in a program
	})
	target, stop := startHealth(grpc.ChainUnaryInterceptor(
		breakergrpc.UnaryServerInterceptor(breakergrpc.Always(b)),
		broken, // what the handler depends on
	))
	defer stop()

	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	for range 2 {
		_, err := healthpb.NewHealthClient(conn).Check(context.Background(), &healthpb.HealthCheckRequest{})
		fmt.Println(err)
		for _, detail := range status.Convert(err).Details() {
			if info, ok := detail.(*errdetails.RetryInfo); ok {
				fmt.Println("come back in", info.RetryDelay.AsDuration())
			}
		}
	}
	// Output:
	// rpc error: code = Internal desc = out of order
	// rpc error: code = Unavailable desc = breaker: "Check" is open, retry after 15 s
	// come back in 15s
}

// On a server the deadline is the client's choice, and one that is too short says nothing about the handler.
func ExampleWithClassify() {
	classify := func(err error) breaker.Outcome {
		if status.Code(err) == codes.DeadlineExceeded || errors.Is(err, context.DeadlineExceeded) {
			return breaker.Ignored
		}
		return breakergrpc.Classify(err)
	}
	b := breaker.MustNew(breaker.Settings{Name: "orders"})
	server := grpc.NewServer(grpc.UnaryInterceptor(
		breakergrpc.UnaryServerInterceptor(breakergrpc.Always(b), breakergrpc.WithClassify(classify))))
	defer server.Stop()
	fmt.Println(classify(context.DeadlineExceeded), classify(status.Error(codes.Unavailable, "")))
	// Output:
	// ignored transient
}
