package breakergrpc_test

import (
	"context"
	"errors"
	"strings"
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

func TestUnaryOutcomesOfEveryStatus(t *testing.T) {
	var code codes.Code
	_, address := serve(t, "", &service{unary: func(context.Context, string) (*wrapperspb.StringValue, error) {
		return wrapperspb.String("pong"), status.Error(code, "as told")
	}})
	for _, row := range table {
		code = row.code
		b := steady()
		err := call(within(t), guarded(t, address, b))
		assert.Equal(t, row.code, status.Code(err), "the status is handed on")
		assert.Equal(t, once(row.call), outcomes(b), "%s", row.code)

		b = halfOpen(t)
		before := outcomes(b)
		before[row.aProbe]++
		assert.Equal(t, row.code, status.Code(call(within(t), guarded(t, address, b))))
		assert.Equal(t, before, outcomes(b), "%s of a probe", row.code)
	}
}

// A server dies, the circuit opens, nothing is sent while the break lasts, the server comes back, and so do the calls.
func TestServerThatDiesAndComesBack(t *testing.T) {
	asked := 0
	s := &service{unary: func(context.Context, string) (*wrapperspb.StringValue, error) {
		asked++
		return wrapperspb.String("pong"), nil
	}}
	server, address := serve(t, "", s)
	settings, time := consecutive(3)
	b := breaker.MustNew(settings)
	cc := guarded(t, address, b)
	require.NoError(t, call(within(t), cc))

	server.Stop()
	for range 3 {
		require.Equal(t, codes.Unavailable, status.Code(call(within(t), cc)))
	}
	require.Equal(t, breaker.Open, b.State())

	serve(t, address, s)
	require.ErrorIs(t, call(within(t), cc), breaker.ErrRejected)
	assert.Equal(t, 1, asked, "a refusal is not sent")

	time.Add(breakDuration)
	require.NoError(t, call(within(t), cc, grpc.WaitForReady(true)))
	assert.True(t, admitsAgain(b))
	assert.Equal(t, 2, asked)
}

func TestHandlerThatHangsUntilTheDeadline(t *testing.T) {
	_, address := serve(t, "", &service{unary: func(ctx context.Context, _ string) (*wrapperspb.StringValue, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	b := steady()
	cc := guarded(t, address, b)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	require.Equal(t, codes.DeadlineExceeded, status.Code(call(ctx, cc)))
	assert.Equal(t, once(breaker.Transient), outcomes(b))

	<-ctx.Done() // the server may have noticed first
	require.Equal(t, codes.DeadlineExceeded, status.Code(call(ctx, cc)), "a context that is done has a status too")
	assert.Equal(t, once(breaker.Transient), outcomes(b))
}

func TestCancelledCallIsIgnored(t *testing.T) {
	arrived := make(chan struct{})
	_, address := serve(t, "", &service{unary: func(ctx context.Context, _ string) (*wrapperspb.StringValue, error) {
		close(arrived)
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	b := steady()
	cc := guarded(t, address, b)
	ctx, cancel := context.WithCancel(within(t))
	go func() {
		<-arrived
		cancel()
	}()
	require.Equal(t, codes.Canceled, status.Code(call(ctx, cc)))
	assert.Equal(t, once(breaker.Ignored), outcomes(b))
}

// brokenCredentials cannot be had.
type brokenCredentials struct{ err error }

func (c brokenCredentials) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return nil, c.err
}
func (brokenCredentials) RequireTransportSecurity() bool { return false }

// ownFaults are calls that fail although the server does nothing wrong.
var ownFaults = map[string]func(context.Context, *grpc.ClientConn) error{
	"a message that cannot be sent": func(ctx context.Context, cc *grpc.ClientConn) error {
		return cc.Invoke(ctx, unaryMethod, wrapperspb.String("\xff"), new(wrapperspb.StringValue))
	},
	"a message that is none": func(ctx context.Context, cc *grpc.ClientConn) error {
		return cc.Invoke(ctx, unaryMethod, "text", new(wrapperspb.StringValue))
	},
	"metadata that cannot be sent": func(ctx context.Context, cc *grpc.ClientConn) error {
		return call(metadata.AppendToOutgoingContext(ctx, "na me", "value"), cc)
	},
	"credentials that cannot be had": func(ctx context.Context, cc *grpc.ClientConn) error {
		return call(ctx, cc, grpc.PerRPCCredentials(brokenCredentials{errors.New("no token")}))
	},
	"credentials that are refused": func(ctx context.Context, cc *grpc.ClientConn) error {
		return call(ctx, cc, grpc.PerRPCCredentials(brokenCredentials{status.Error(codes.Unauthenticated, "bad token")}))
	},
	"a compressor that there is not": func(ctx context.Context, cc *grpc.ClientConn) error {
		return call(ctx, cc, grpc.UseCompressor("none"))
	},
	"a connection that was closed": func(ctx context.Context, cc *grpc.ClientConn) error {
		if err := cc.Close(); err != nil {
			return err
		}
		return call(ctx, cc)
	},
}

func TestFaultsOfTheClientAreIgnored(t *testing.T) {
	_, address := serve(t, "", &service{unary: pong})
	for name, attempt := range ownFaults {
		t.Run(name, func(t *testing.T) {
			b := steady()
			require.Error(t, attempt(within(t), guarded(t, address, b)))
			assert.Equal(t, once(breaker.Ignored), outcomes(b))

			b = halfOpen(t)
			require.Error(t, attempt(within(t), guarded(t, address, b)))
			assert.Equal(t, breaker.HalfOpen, b.State(), "it proves nothing")
		})
	}
}

// The server says in the same words that it cannot make its reply into bytes. That is its own fault.
func TestReplyThatCannotBeSentIsAFailure(t *testing.T) {
	_, address := serve(t, "", &service{unary: func(context.Context, string) (*wrapperspb.StringValue, error) {
		return wrapperspb.String("\xff"), nil
	}})
	b := steady()
	require.ErrorContains(t, call(within(t), guarded(t, address, b)), "marshal")
	assert.Equal(t, once(breaker.Transient), outcomes(b))
}

func TestClassifiersInTheirOrder(t *testing.T) {
	_, address := serve(t, "", &service{unary: failing(status.Error(codes.NotFound, ""))})
	settings, _ := consecutive(1000)
	settings.Classify = func(error) breaker.Outcome { return breaker.Throttled }

	b := breaker.MustNew(settings)
	require.Error(t, call(within(t), guarded(t, address, b)))
	assert.Equal(t, once(breaker.Throttled), outcomes(b), "that of the breaker before that of the package")

	b = breaker.MustNew(settings)
	transient := func(error) breaker.Outcome { return breaker.Transient }
	require.Error(t, call(within(t), guarded(t, address, b, breakergrpc.WithClassify(transient))))
	assert.Equal(t, once(breaker.Transient), outcomes(b), "that of the interceptor before that of the breaker")
}

func TestMarkOfAnInnerInterceptorStands(t *testing.T) {
	_, address := serve(t, "", &service{unary: failing(status.Error(codes.Unavailable, ""))})
	mark := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker,
		opts ...grpc.CallOption) error {
		return breaker.Mark(invoke(ctx, method, req, reply, cc, opts...), breaker.Throttled)
	}
	b := steady()
	cc := dial(t, address, grpc.WithChainUnaryInterceptor(breakergrpc.UnaryClientInterceptor(breakergrpc.Always(b)), mark))
	require.Equal(t, codes.Unavailable, status.Code(call(within(t), cc)))
	assert.Equal(t, once(breaker.Throttled), outcomes(b))
}

func TestInnerInterceptorKnowsAProbe(t *testing.T) {
	_, address := serve(t, "", &service{unary: pong})
	for b, want := range map[*breaker.Breaker]bool{halfOpen(t): true, steady(): false} {
		var isProbe bool
		note := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker,
			opts ...grpc.CallOption) error {
			isProbe = breaker.IsProbe(ctx)
			return invoke(ctx, method, req, reply, cc, opts...)
		}
		guard := breakergrpc.UnaryClientInterceptor(breakergrpc.Always(b))
		require.NoError(t, call(within(t), dial(t, address, grpc.WithChainUnaryInterceptor(guard, note))))
		assert.Equal(t, want, isProbe)
	}
}

// gRPC's own retries lie below the interceptor: the attempts of a call are one outcome, that of the last.
func TestRetriesOfGRPCAreOneCall(t *testing.T) {
	attempts := 0
	_, address := serve(t, "", &service{unary: func(context.Context, string) (*wrapperspb.StringValue, error) {
		if attempts++; attempts < 3 {
			return nil, status.Error(codes.Unavailable, "")
		}
		return wrapperspb.String("pong"), nil
	}})
	const retry = `{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 3, "initialBackoff": "0.001s",
		"maxBackoff": "0.001s", "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"]}}]}`
	b := steady()
	cc := dial(t, address, grpc.WithDefaultServiceConfig(retry),
		grpc.WithUnaryInterceptor(breakergrpc.UnaryClientInterceptor(breakergrpc.Always(b))))
	require.NoError(t, call(within(t), cc))
	assert.Equal(t, 3, attempts)
	assert.Equal(t, once(breaker.Success), outcomes(b))
}

func TestWaitForReadyIsEvidenceAtItsDeadline(t *testing.T) {
	server, address := serve(t, "", &service{unary: pong})
	server.Stop()
	b := steady()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	require.Equal(t, codes.DeadlineExceeded, status.Code(call(ctx, guarded(t, address, b), grpc.WaitForReady(true))))
	assert.Equal(t, once(breaker.Transient), outcomes(b))
}

func TestPanicBelowTheClientInterceptor(t *testing.T) {
	b := steady()
	intercept := breakergrpc.UnaryClientInterceptor(breakergrpc.Always(b))
	require.PanicsWithValue(t, "bug", func() {
		_ = intercept(t.Context(), unaryMethod, nil, nil, nil,
			func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { panic("bug") })
	})
	assert.Equal(t, once(breaker.Transient), outcomes(b))
}

// An interceptor for another transport has no connection to ask about a call.
func TestErrorsOfAnotherTransportCountByTheirStatus(t *testing.T) {
	b := steady()
	intercept := breakergrpc.UnaryClientInterceptor(breakergrpc.Always(b))
	require.Error(t, intercept(t.Context(), unaryMethod, nil, nil, nil,
		func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
			return status.Error(codes.Internal, "")
		}))
	assert.Equal(t, once(breaker.Transient), outcomes(b))
}

// The options of the caller are handed on, and what they point to is not written over.
func TestCallOptionsAreHandedOn(t *testing.T) {
	_, address := serve(t, "", &service{unary: func(ctx context.Context, _ string) (*wrapperspb.StringValue, error) {
		md, _ := metadata.FromIncomingContext(ctx)
		return wrapperspb.String(""), grpc.SetHeader(ctx, metadata.Pairs("heard", strings.Join(md.Get("said"), ",")))
	}})
	var header metadata.MD
	spare := append(make([]grpc.CallOption, 0, 8), grpc.Header(&header))
	ctx := metadata.AppendToOutgoingContext(within(t), "said", "hello")
	require.NoError(t, call(ctx, guarded(t, address, steady()), spare...))
	assert.Equal(t, []string{"hello"}, header.Get("heard"))

	s := breakergrpc.Always(steady())
	_ = breakergrpc.UnaryClientInterceptor(s)(ctx, unaryMethod, nil, nil, nil, invokeNothing, spare...)
	_, err := breakergrpc.StreamClientInterceptor(s)(ctx, down, nil, downMethod, openNothing, spare...)
	require.NoError(t, err)
	assert.Equal(t, make([]grpc.CallOption, 7), spare[1:8])
}

func TestCallWhoseConnectionIsClosed(t *testing.T) {
	arrived := make(chan struct{})
	_, address := serve(t, "", &service{unary: func(ctx context.Context, _ string) (*wrapperspb.StringValue, error) {
		close(arrived)
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	b := steady()
	cc := guarded(t, address, b)
	go func() {
		<-arrived
		_ = cc.Close()
	}()
	require.Error(t, call(within(t), cc))
	assert.Equal(t, once(breaker.Ignored), outcomes(b))
}

// The server goes away in the middle of a call.
func TestCallThatBreaksHalfway(t *testing.T) {
	arrived := make(chan struct{})
	server, address := serve(t, "", &service{unary: func(ctx context.Context, _ string) (*wrapperspb.StringValue, error) {
		close(arrived)
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	b := steady()
	go func() {
		<-arrived
		server.Stop()
	}()
	require.Equal(t, codes.Unavailable, status.Code(call(within(t), guarded(t, address, b))))
	assert.Equal(t, once(breaker.Transient), outcomes(b))
}
