package breakergrpc_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/brownout-go/breaker"
	"github.com/brownout-go/breaker/breakergrpc"
)

// guardedServer starts a server whose handlers are guarded by a breaker, and returns a connection to it.
func guardedServer(t *testing.T, s *service, b *breaker.Breaker, opts ...breakergrpc.Option) *grpc.ClientConn {
	t.Helper()
	always := breakergrpc.Always(b)
	_, address := serve(t, "", s,
		grpc.ChainUnaryInterceptor(recovering, breakergrpc.UnaryServerInterceptor(always, opts...)),
		grpc.ChainStreamInterceptor(recoveringStream, breakergrpc.StreamServerInterceptor(always, opts...)))
	return dial(t, address)
}

// recovering turns a panic into a status, as servers do, and says what it was.
func recovering(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (reply any, err error) {
	defer recovered(&err)
	return handle(ctx, req)
}

func recoveringStream(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) (err error) {
	defer recovered(&err)
	return handle(srv, ss)
}

func recovered(err *error) {
	if p := recover(); p != nil {
		*err = status.Errorf(codes.Internal, "recovered: %v", p)
	}
}

func TestHandlerOutcomesOfEveryStatus(t *testing.T) {
	for _, row := range table {
		err := status.Error(row.code, "as told")
		s := &service{unary: pong, stream: messages(1, err)}
		if err != nil {
			s.unary = failing(err)
		}
		b := steady()
		cc := guardedServer(t, s, b)
		assert.Equal(t, row.code, status.Code(call(within(t), cc)))
		assert.Equal(t, once(row.call), outcomes(b), "%s", row.code)

		_, _ = drain(begin(within(t), t, cc, down))
		assert.Equal(t, map[breaker.Outcome]uint64{row.call: 2}, outcomes(b), "%s of a stream", row.code)

		b = halfOpen(t)
		before := outcomes(b)
		before[row.aProbe]++
		assert.Equal(t, row.code, status.Code(call(within(t), guardedServer(t, s, b))))
		assert.Equal(t, before, outcomes(b), "%s of a probe", row.code)
	}
}

// A handler hands on what it was told by a client of its own, in the words of a client that cannot send its message.
func TestHandlerWhoseOwnCallFails(t *testing.T) {
	b := steady()
	cc := guardedServer(t, &service{unary: failing(status.Error(codes.Internal, "grpc: error while marshaling: text"))}, b)
	require.Equal(t, codes.Internal, status.Code(call(within(t), cc)))
	assert.Equal(t, once(breaker.Transient), outcomes(b))
}

func TestHandlerThatPanics(t *testing.T) {
	b := steady()
	cc := guardedServer(t, &service{
		unary:  func(context.Context, string) (*wrapperspb.StringValue, error) { panic("bug") },
		stream: func(grpc.ServerStream) error { panic("bug") },
	}, b)
	require.ErrorContains(t, call(within(t), cc), "recovered: bug")
	assert.Equal(t, once(breaker.Transient), outcomes(b))
	require.ErrorContains(t, recv(begin(within(t), t, cc, both)), "recovered: bug")
	assert.Equal(t, map[breaker.Outcome]uint64{breaker.Transient: 2}, outcomes(b))
}

// fakeStream is a stream of a server that nobody is at the other end of.
type fakeStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s fakeStream) Context() context.Context { return s.ctx }

func TestHandlerThatExits(t *testing.T) {
	b := halfOpen(t)
	intercept := breakergrpc.StreamServerInterceptor(breakergrpc.Always(b))
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = intercept(nil, fakeStream{ctx: t.Context()}, &grpc.StreamServerInfo{FullMethod: bothMethod},
			func(any, grpc.ServerStream) error { runtime.Goexit(); return nil })
	}()
	<-exited
	assert.Equal(t, uint64(1), outcomes(b)[breaker.Ignored])
	permit, err := b.TryAcquire(t.Context())
	require.NoError(t, err, "the place of the probe is free")
	permit.Release()
}

func TestClientThatGoesAwayIsIgnored(t *testing.T) {
	arrived := make(chan struct{})
	s := &service{
		unary: func(ctx context.Context, _ string) (*wrapperspb.StringValue, error) {
			arrived <- struct{}{}
			<-ctx.Done()
			return nil, ctx.Err()
		},
		stream: func(ss grpc.ServerStream) error {
			arrived <- struct{}{}
			<-ss.Context().Done()
			return status.Error(codes.Internal, "cannot go on")
		},
	}
	b := steady()
	cc := guardedServer(t, s, b)
	ctx, cancel := context.WithCancel(within(t))
	go func() { <-arrived; cancel() }()
	require.Equal(t, codes.Canceled, status.Code(call(ctx, cc)))
	eventually(t, b, breaker.Ignored)

	b = steady()
	ctx, cancel = context.WithCancel(within(t))
	begin(ctx, t, guardedServer(t, s, b), both)
	<-arrived
	cancel()
	eventually(t, b, breaker.Ignored)
}

func TestServerOutcomeAtHeaders(t *testing.T) {
	for name, begins := range map[string]func(grpc.ServerStream) error{
		"header":  func(ss grpc.ServerStream) error { return ss.SendHeader(metadata.Pairs("a", "b")) },
		"message": func(ss grpc.ServerStream) error { return ss.SendMsg(wrapperspb.String("pong")) },
	} {
		t.Run(name, func(t *testing.T) {
			b := steady()
			began, goOn := make(chan error), make(chan struct{})
			cc := guardedServer(t, &service{stream: func(ss grpc.ServerStream) error {
				began <- begins(ss)
				<-goOn
				return status.Error(codes.Internal, "later")
			}}, b, breakergrpc.WithOutcomeAtHeaders())
			cs := begin(within(t), t, cc, down)
			require.NoError(t, <-began)
			assert.Equal(t, once(breaker.Success), outcomes(b))
			close(goOn)
			_, err := drain(cs)
			require.Equal(t, codes.Internal, status.Code(err))
			assert.Equal(t, once(breaker.Success), outcomes(b))
		})
	}
}

// The server refuses on the network as it refuses in the process, and calls no handler.
func TestRefusalOverTheNetwork(t *testing.T) {
	settings, clock := consecutive(1)
	b := breaker.MustNew(settings)
	asked := 0
	cc := guardedServer(t, &service{
		unary: func(context.Context, string) (*wrapperspb.StringValue, error) {
			asked++
			return nil, status.Error(codes.Internal, "secret")
		},
		stream: func(grpc.ServerStream) error { asked++; return nil },
	}, b)
	require.Error(t, call(within(t), cc))
	clock.Add(4 * time.Second)
	for name, err := range map[string]error{
		"unary": call(within(t), cc), "stream": recv(begin(within(t), t, cc, down)),
	} {
		assert.Equal(t, codes.Unavailable, status.Code(err), name)
		assert.Equal(t, 6*time.Second, retryDelay(t, err), name)
		assert.NotContains(t, err.Error(), "secret", name)
		assert.NotErrorIs(t, err, breaker.ErrRejected, "a breaker of another process")
	}
	assert.Equal(t, 1, asked)
}

// A handler that a breaker of its own refuses says nothing about itself.
func TestRefusalOfAnInnerBreakerIsIgnored(t *testing.T) {
	_, refusal := isolated(t).TryAcquire(t.Context())
	require.ErrorIs(t, refusal, breaker.ErrRejected)
	b := steady()
	transient := breakergrpc.WithClassify(func(error) breaker.Outcome { return breaker.Transient })
	cc := guardedServer(t, &service{unary: failing(refusal), stream: messages(0, refusal)}, b, transient)
	require.Error(t, call(within(t), cc))
	_, err := drain(begin(within(t), t, cc, down))
	require.Error(t, err)
	assert.Equal(t, map[breaker.Outcome]uint64{breaker.Ignored: 2}, outcomes(b))
}

// isolated returns a breaker that refuses and does not say for how long.
func isolated(t *testing.T) *breaker.Breaker {
	t.Helper()
	b := steady()
	b.Isolate()
	return b
}
