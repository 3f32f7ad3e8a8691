package breakergrpc_test

import (
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/brownout-go/breaker"
	"github.com/brownout-go/breaker/breakergrpc"
)

// What lies below the interceptor may be another transport, or another interceptor, with ways of its own.

// scriptedStream is a stream of another transport, which knows nothing of gRPC's call options.
type scriptedStream struct {
	grpc.ClientStream
	err error // of every operation
}

func (s scriptedStream) SendMsg(any) error            { return s.err }
func (s scriptedStream) RecvMsg(any) error            { return s.err }
func (s scriptedStream) Header() (metadata.MD, error) { return nil, s.err }

// scriptedContext is a context that ends when the script says so.
type scriptedContext struct {
	context.Context
	err error
}

func (c *scriptedContext) Err() error { return c.err }

func TestStreamsOfAnotherTransport(t *testing.T) {
	send := func(cs grpc.ClientStream) error { return cs.SendMsg(nil) }
	recv := func(cs grpc.ClientStream) error { return cs.RecvMsg(nil) }
	header := func(cs grpc.ClientStream) error { _, err := cs.Header(); return err }
	unavailable, notFound := status.Error(codes.Unavailable, ""), status.Error(codes.NotFound, "")
	goesOn := map[breaker.Outcome]uint64{}
	for name, row := range map[string]struct {
		desc      *grpc.StreamDesc
		operation func(grpc.ClientStream) error
		err       error // of the operation
		ctx       error // of the context, by then
		want      map[breaker.Outcome]uint64
	}{
		"the only reply":            {up, recv, nil, nil, once(breaker.Success)},
		"one reply of many":         {down, recv, nil, nil, goesOn},
		"the end":                   {down, recv, io.EOF, nil, once(breaker.Success)},
		"a failure":                 {down, recv, unavailable, nil, once(breaker.Transient)},
		"a failure, cancelled":      {down, recv, unavailable, context.Canceled, once(breaker.Ignored)},
		"an answer, cancelled":      {down, recv, notFound, context.Canceled, once(breaker.Ignored)},
		"no headers":                {down, header, unavailable, nil, once(breaker.Transient)},
		"not sent":                  {both, send, unavailable, nil, once(breaker.Transient)},
		"not sent, cancelled":       {both, send, unavailable, context.Canceled, once(breaker.Ignored)},
		"over, as RecvMsg will say": {both, send, io.EOF, nil, goesOn},
		"a message that is none":    {both, send, status.Error(codes.Internal, ""), nil, once(breaker.Ignored)},
	} {
		t.Run(name, func(t *testing.T) {
			b, ctx := steady(), &scriptedContext{Context: t.Context()}
			open := breakergrpc.StreamClientInterceptor(breakergrpc.Always(b))
			cs, err := open(ctx, row.desc, nil, "", func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string,
				...grpc.CallOption) (grpc.ClientStream, error) {
				return scriptedStream{err: row.err}, nil
			})
			require.NoError(t, err)
			ctx.err = row.ctx
			require.Equal(t, row.err, row.operation(cs), "it is handed on")
			assert.Equal(t, row.want, outcomes(b))
		})
	}
}

// A server whose handler hangs ends the stream at its deadline, and may be a little ahead of the client; and gRPC may be about to
// tell of the deadline when an operation returns because of it. What SendMsg and Header say then is only that the stream is over.
// That nobody was waiting for the server any more when gRPC told of it made the deadline say nothing.
func TestRegression_DeadlineThatAnOperationNoticesFirstIsAFailure(t *testing.T) {
	for name, operation := range map[string]func(grpc.ClientStream) error{
		"SendMsg": func(cs grpc.ClientStream) error { return cs.SendMsg(nil) },
		"Header":  func(cs grpc.ClientStream) error { _, err := cs.Header(); return err },
	} {
		b := steady()
		open := breakergrpc.StreamClientInterceptor(breakergrpc.Always(b))
		var finish func(error)
		cs, err := open(t.Context(), up, nil, "", func(_ context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string,
			opts ...grpc.CallOption) (grpc.ClientStream, error) {
			finish = opts[len(opts)-1].(grpc.OnFinishCallOption).OnFinish
			return scriptedStream{err: map[string]error{"SendMsg": io.EOF}[name]}, nil
		})
		require.NoError(t, err)
		_ = operation(cs)
		finish(status.Error(codes.DeadlineExceeded, ""))
		assert.Equal(t, once(breaker.Transient), outcomes(b), name)
	}
}

func TestStreamThatAnotherTransportCannotOpen(t *testing.T) {
	b := steady()
	open := breakergrpc.StreamClientInterceptor(breakergrpc.Always(b))
	_, err := open(t.Context(), down, nil, "", func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string,
		...grpc.CallOption) (grpc.ClientStream, error) {
		return nil, status.Error(codes.Unavailable, "")
	})
	require.Equal(t, codes.Unavailable, status.Code(err))
	assert.Equal(t, once(breaker.Transient), outcomes(b))
}

// changedStream is what an inner interceptor makes of a stream.
type changedStream struct {
	grpc.ClientStream
	recv func(error) error
}

func (s changedStream) RecvMsg(m any) error { return s.recv(s.ClientStream.RecvMsg(m)) }

// changed returns a connection with an interceptor below the breaker that changes what RecvMsg returns.
func changed(t *testing.T, address string, b *breaker.Breaker, recv func(error) error) *grpc.ClientConn {
	return dial(t, address, grpc.WithChainStreamInterceptor(
		breakergrpc.StreamClientInterceptor(breakergrpc.Always(b)),
		func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer,
			opts ...grpc.CallOption) (grpc.ClientStream, error) {
			cs, err := open(ctx, desc, cc, method, opts...)
			return changedStream{cs, recv}, err
		}))
}

func TestMarkOnAStreamStands(t *testing.T) {
	_, address := serve(t, "", &service{stream: messages(0, status.Error(codes.Unavailable, ""))})
	b := steady()
	cc := changed(t, address, b, func(err error) error { return breaker.Mark(err, breaker.Throttled) })
	require.Equal(t, codes.Unavailable, status.Code(recv(begin(within(t), t, cc, down))))
	assert.Equal(t, once(breaker.Throttled), outcomes(b))
}

func TestPanicOfAStream(t *testing.T) {
	_, address := serve(t, "", &service{stream: messages(1, nil)})
	b := steady()
	cs := begin(within(t), t, changed(t, address, b, func(error) error { panic("bug") }), down)
	require.PanicsWithValue(t, "bug", func() { _ = recv(cs) })
	assert.Equal(t, once(breaker.Transient), outcomes(b))

	b = steady()
	open := breakergrpc.StreamClientInterceptor(breakergrpc.Always(b))
	require.PanicsWithValue(t, "bug", func() {
		_, _ = open(t.Context(), down, nil, downMethod, func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string,
			...grpc.CallOption) (grpc.ClientStream, error) {
			panic("bug")
		})
	})
	assert.Equal(t, once(breaker.Transient), outcomes(b))
}

func TestClassifierOfAStreamThatPanics(t *testing.T) {
	_, address := serve(t, "", &service{stream: messages(0, status.Error(codes.NotFound, ""))})
	for name, hear := range map[string]bool{"reported": true, "and so does who hears of it": false} {
		t.Run(name, func(t *testing.T) {
			settings, _ := consecutive(1000)
			var heard *breaker.CallbackError
			settings.OnCallbackError = func(_ context.Context, e *breaker.CallbackError) {
				if heard = e; !hear {
					panic("again")
				}
			}
			b := breaker.MustNew(settings)
			classify := breakergrpc.WithClassify(func(error) breaker.Outcome { panic("bug") })
			_, err := drain(begin(within(t), t, guarded(t, address, b, classify), down))
			require.Equal(t, codes.NotFound, status.Code(err))
			assert.Equal(t, once(breaker.Transient), outcomes(b))
			require.NotNil(t, heard)
			assert.Equal(t, "bug", heard.Panic)
			assert.Equal(t, "server", heard.Name)
			assert.NotEmpty(t, heard.Stack)
		})
	}
}
