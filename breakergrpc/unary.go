package breakergrpc

import (
	"context"

	"google.golang.org/grpc"

	"github.com/brownout-go/breaker"
)

// UnaryClientInterceptor returns an interceptor that asks a breaker before it sends a call and tells it how the call went. A call
// that is not admitted returns a refusal, or waits for admission where Settings.WhenOpen is [breaker.Wait]. Settings.RejectionDelay
// delays the refusal as it does for [breaker.Execute]. Errors of calls are returned as they are. It panics if the selector is nil.
func UnaryClientInterceptor(s Selector, opts ...Option) grpc.UnaryClientInterceptor {
	c := newConfig(s, opts)
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker,
		callOpts ...grpc.CallOption) error {
		b, err := c.selector(ctx, Call{targetOf(cc), method})
		if err != nil {
			return err
		}
		if b == nil {
			return invoke(ctx, method, req, reply, cc, callOpts...)
		}
		w := &witness{breaker: b, classify: c.classify, conn: cc}
		callOpts = append(callOpts[:len(callOpts):len(callOpts)], grpc.Peer(&w.peer))
		_, err = execute(ctx, w, req, func(ctx context.Context) (any, error) {
			err := invoke(ctx, method, req, reply, cc, callOpts...)
			w.noteSent()
			return nil, err
		})
		return err
	}
}

// UnaryServerInterceptor returns an interceptor that asks a breaker before it calls a handler and tells it how the handler did. A
// call that is not admitted is answered as [UnaryClientInterceptor] says. It panics if the selector is nil.
func UnaryServerInterceptor(s Selector, opts ...Option) grpc.UnaryServerInterceptor {
	c := newConfig(s, opts)
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		b, err := c.selector(ctx, Call{Method: info.FullMethod})
		if err != nil {
			return nil, err
		}
		if b == nil {
			return handle(ctx, req)
		}
		return execute(ctx, &witness{breaker: b, classify: c.classify}, nil,
			func(ctx context.Context) (any, error) { return handle(ctx, req) })
	}
}

// execute runs a unary call through its breaker. A request is given by a client, which may be unable to send it.
func execute(ctx context.Context, w *witness, req any, run func(context.Context) (any, error)) (any, error) {
	admitted := false
	reply, err := breaker.ExecuteClassified(ctx, w.breaker, func(ctx context.Context) (any, error) {
		admitted, w.probe = true, breaker.IsProbe(ctx)
		return run(ctx)
	}, func(_ any, err error) breaker.Outcome {
		if w.conn != nil && isUnsendable(req, err) {
			return breaker.Ignored
		}
		return w.outcome(err)
	})
	if !admitted {
		return nil, refused(err)
	}
	return reply, err
}
