package breakergrpc_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/brownout-go/breaker"
	"github.com/brownout-go/breaker/breakergrpc"
)

// The costs are those of the interceptors alone: what they call does nothing.

func invokeNothing(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
	return nil
}

func openNothing(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return idleStream{}, nil
}

// idleStream is a stream on which nothing happens.
type idleStream struct{ grpc.ClientStream }

func (idleStream) RecvMsg(any) error                  { return nil }
func (idleStream) SendMsg(any) error                  { return nil }
func (idleStream) Header() (metadata.MD, error)       { return nil, nil }
func handleNothing(context.Context, any) (any, error) { return nil, nil }

// unaryClient returns a function that makes a call that costs nothing but its interceptor.
func unaryClient(s breakergrpc.Selector) func() {
	intercept, ctx := breakergrpc.UnaryClientInterceptor(s), context.Background()
	opts := []grpc.CallOption{grpc.WaitForReady(false)}
	return func() { _ = intercept(ctx, unaryMethod, nil, nil, nil, invokeNothing, opts...) }
}

// streamClient returns a function that opens a stream and reads it to its only message.
func streamClient(s breakergrpc.Selector) func() {
	intercept, ctx := breakergrpc.StreamClientInterceptor(s), context.Background()
	return func() {
		cs, err := intercept(ctx, up, nil, upMethod, openNothing)
		if err == nil {
			_ = cs.RecvMsg(nil)
		}
	}
}

// unaryServer returns a function that answers a call.
func unaryServer(s breakergrpc.Selector) func() {
	intercept, ctx := breakergrpc.UnaryServerInterceptor(s), context.Background()
	info := &grpc.UnaryServerInfo{FullMethod: unaryMethod}
	return func() { _, _ = intercept(ctx, nil, info, handleNothing) }
}

// streamServer returns a function that answers a stream.
func streamServer(s breakergrpc.Selector) func() {
	intercept := breakergrpc.StreamServerInterceptor(s)
	var stream grpc.ServerStream = fakeStream{ctx: context.Background()}
	info := &grpc.StreamServerInfo{FullMethod: downMethod}
	return func() {
		_ = intercept(nil, stream, info, func(any, grpc.ServerStream) error { return nil })
	}
}

func TestAllocations(t *testing.T) {
	open := breakergrpc.Always(isolated(t))
	closed := breakergrpc.Always(breaker.MustNew(breaker.Settings{}))
	perMethod := breakergrpc.PerMethod(group[breakergrpc.Call](t))
	for _, row := range []struct {
		name string
		run  func()
		want float64
	}{
		{"unary client", unaryClient(closed), 2}, // what is known of the call, and its options
		{"unary client, per method", unaryClient(perMethod), 2},
		{"unary client, refused", unaryClient(open), 2},
		{"unary server", unaryServer(closed), 0},
		{"unary server, refused", unaryServer(open), 0},
		{"client stream", streamClient(closed), 5},
		{"client stream, refused", streamClient(open), 1},
		{"server stream", streamServer(closed), 3},
		{"server stream, refused", streamServer(open), 1},
	} {
		assert.LessOrEqual(t, testing.AllocsPerRun(100, row.run), row.want, row.name)
	}
}

func BenchmarkUnaryClient(b *testing.B) {
	run := unaryClient(breakergrpc.Always(breaker.MustNew(breaker.Settings{})))
	b.ReportAllocs()
	for b.Loop() {
		run()
	}
}

func BenchmarkClientStream(b *testing.B) {
	run := streamClient(breakergrpc.Always(breaker.MustNew(breaker.Settings{})))
	b.ReportAllocs()
	for b.Loop() {
		run()
	}
}
