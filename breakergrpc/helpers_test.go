package breakergrpc_test

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/brownout-go/breaker"
	"github.com/brownout-go/breaker/breakergrpc"
)

// service is what a test wants a server to do. It has one unary method and one stream of each kind, and needs no generated code.
type service struct {
	unary  func(context.Context, string) (*wrapperspb.StringValue, error)
	stream func(grpc.ServerStream) error
}

const (
	unaryMethod = "/test.Service/Unary"
	downMethod  = "/test.Service/Down"
	upMethod    = "/test.Service/Up"
	bothMethod  = "/test.Service/Both"
)

var (
	down = &grpc.StreamDesc{StreamName: "Down", ServerStreams: true}
	up   = &grpc.StreamDesc{StreamName: "Up", ClientStreams: true}
	both = &grpc.StreamDesc{StreamName: "Both", ServerStreams: true, ClientStreams: true}
)

var serviceDesc = grpc.ServiceDesc{
	ServiceName: "test.Service",
	HandlerType: (*any)(nil),
	Methods:     []grpc.MethodDesc{{MethodName: "Unary", Handler: handleUnary}},
	Streams:     []grpc.StreamDesc{handled(down), handled(up), handled(both)},
}

func handled(d *grpc.StreamDesc) grpc.StreamDesc {
	desc := *d
	desc.Handler = func(srv any, ss grpc.ServerStream) error { return srv.(*service).stream(ss) }
	return desc
}

func handleUnary(srv any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
	in := new(wrapperspb.StringValue)
	if err := decode(in); err != nil {
		return nil, err
	}
	handle := func(ctx context.Context, in any) (any, error) {
		return srv.(*service).unary(ctx, in.(*wrapperspb.StringValue).Value)
	}
	if interceptor == nil {
		return handle(ctx, in)
	}
	return interceptor(ctx, in, &grpc.UnaryServerInfo{Server: srv, FullMethod: unaryMethod}, handle)
}

// serve starts a server on an address of its own, or on one that a server before it had.
func serve(t *testing.T, address string, s *service, opts ...grpc.ServerOption) (server *grpc.Server, at string) {
	t.Helper()
	if address == "" {
		address = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", address)
	require.NoError(t, err)
	server = grpc.NewServer(append(opts, grpc.WaitForHandlers(true))...)
	server.RegisterService(&serviceDesc, s)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() { server.Stop(); <-served })
	return server, listener.Addr().String()
}

// dial returns a connection that tries again quickly when its server is gone.
func dial(t *testing.T, address string, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	quickly := backoff.Config{BaseDelay: time.Millisecond, Multiplier: 1, MaxDelay: time.Millisecond}
	cc, err := grpc.NewClient("passthrough:///"+address, append(opts,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: quickly, MinConnectTimeout: 10 * time.Second}))...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = cc.Close() })
	return cc
}

// guarded returns a connection whose calls and streams are guarded by a breaker.
func guarded(t *testing.T, address string, b *breaker.Breaker, opts ...breakergrpc.Option) *grpc.ClientConn {
	t.Helper()
	s := breakergrpc.Always(b)
	return dial(t, address,
		grpc.WithUnaryInterceptor(breakergrpc.UnaryClientInterceptor(s, opts...)),
		grpc.WithStreamInterceptor(breakergrpc.StreamClientInterceptor(s, opts...)))
}

// soon returns a context whose deadline passes soon, but not before a stream has been opened on a connection that is ready by then.
func soon(t *testing.T, cc *grpc.ClientConn) context.Context {
	t.Helper()
	cc.Connect()
	for state := cc.GetState(); state != connectivity.Ready; state = cc.GetState() {
		require.True(t, cc.WaitForStateChange(within(t), state))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

// within returns a context that ends with the test, or after a time that only a test that hangs needs.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// call makes a unary call.
func call(ctx context.Context, cc *grpc.ClientConn, opts ...grpc.CallOption) error {
	return cc.Invoke(ctx, unaryMethod, wrapperspb.String("ping"), new(wrapperspb.StringValue), opts...)
}

// begin opens a stream and sends its first message.
func begin(ctx context.Context, t *testing.T, cc *grpc.ClientConn, desc *grpc.StreamDesc) grpc.ClientStream {
	t.Helper()
	cs, err := cc.NewStream(ctx, desc, "/test.Service/"+desc.StreamName)
	require.NoError(t, err)
	if err = cs.SendMsg(wrapperspb.String("ping")); err != io.EOF { // the server may have ended it already
		require.NoError(t, err)
	}
	return cs
}

func recv(s interface{ RecvMsg(any) error }) error { return s.RecvMsg(new(wrapperspb.StringValue)) }

// pong is a unary handler that does its work.
func pong(context.Context, string) (*wrapperspb.StringValue, error) {
	return wrapperspb.String("pong"), nil
}

// failing returns a unary handler that always fails alike.
func failing(err error) func(context.Context, string) (*wrapperspb.StringValue, error) {
	return func(context.Context, string) (*wrapperspb.StringValue, error) { return nil, err }
}

// messages returns the handler of a stream that sends some messages and ends with an error.
func messages(n int, err error) func(grpc.ServerStream) error {
	return func(ss grpc.ServerStream) error {
		if e := recv(ss); e != nil {
			return e
		}
		for range n {
			if e := ss.SendMsg(wrapperspb.String("pong")); e != nil {
				return e
			}
		}
		return err
	}
}

// consecutive returns settings under which nothing but a number of failures in a row opens the circuit, on a clock of its own.
func consecutive(failures int) (breaker.Settings, *clock.Mock) {
	time := clock.NewMock()
	return breaker.Settings{
		Name:                "server",
		ConsecutiveFailures: failures,
		Failures:            breaker.Failures{Off: true},
		SlowCalls:           breaker.SlowCalls{Off: true},
		BreakDuration:       breakDuration,
		BreakJitter:         breaker.JitterNone,
		ProbeSuccesses:      1,
		Clock:               time,
	}, time
}

const breakDuration = 10 * time.Second

// steady returns a breaker that nothing opens soon.
func steady() *breaker.Breaker {
	s, _ := consecutive(1000)
	return breaker.MustNew(s)
}

// halfOpen returns a breaker that lets one probe through.
func halfOpen(t *testing.T) *breaker.Breaker {
	t.Helper()
	s, time := consecutive(1)
	b := breaker.MustNew(s)
	require.Error(t, b.Execute(t.Context(), func(context.Context) error { return context.DeadlineExceeded }))
	time.Add(breakDuration)
	require.Equal(t, breaker.HalfOpen, b.State())
	return b
}

// admitsAgain reports whether the probes of a breaker have succeeded, with a ramp to follow or without.
func admitsAgain(b *breaker.Breaker) bool {
	return b.State() == breaker.Closed || b.State() == breaker.Recovering
}

// outcomes returns what a breaker has counted, by outcome.
func outcomes(b *breaker.Breaker) map[breaker.Outcome]uint64 {
	n := b.Snapshot().Totals
	counted := map[breaker.Outcome]uint64{
		breaker.Success: n.Successes, breaker.Transient: n.Transient, breaker.Throttled: n.Throttled,
		breaker.Permanent: n.Permanent, breaker.Ignored: n.Ignored,
	}
	for o, count := range counted {
		if count == 0 {
			delete(counted, o)
		}
	}
	return counted
}

// once is one outcome and no other.
func once(o breaker.Outcome) map[breaker.Outcome]uint64 { return map[breaker.Outcome]uint64{o: 1} }

// eventually waits for an outcome that is recorded when gRPC gets round to it.
func eventually(t *testing.T, b *breaker.Breaker, want breaker.Outcome) {
	t.Helper()
	require.Eventually(t, func() bool { return outcomes(b)[want] > 0 }, time.Minute, time.Millisecond)
	require.Equal(t, once(want), outcomes(b))
}
