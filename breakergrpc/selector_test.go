package breakergrpc_test

import (
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/brownout-go/breaker"
	"github.com/brownout-go/breaker/breakergrpc"
)

// group returns a group whose breakers open on one failure.
func group[K comparable](t *testing.T) *breaker.Group[K] {
	t.Helper()
	g, err := breaker.NewGroup(func(K) breaker.Settings {
		s, _ := consecutive(1)
		s.Name = ""
		return s
	}, breaker.GroupSettings{})
	require.NoError(t, err)
	return g
}

// names returns the states of a group's breakers by name.
func names[K comparable](g *breaker.Group[K]) map[string]breaker.State {
	states := map[string]breaker.State{}
	for _, b := range g.All() {
		states[b.Name()] = b.State()
	}
	return states
}

// selected returns a connection whose calls and streams have the breakers of a selector.
func selected(t *testing.T, address string, s breakergrpc.Selector) *grpc.ClientConn {
	t.Helper()
	return dial(t, address, grpc.WithUnaryInterceptor(breakergrpc.UnaryClientInterceptor(s)),
		grpc.WithStreamInterceptor(breakergrpc.StreamClientInterceptor(s)))
}

func TestPerTarget(t *testing.T) {
	_, good := serve(t, "", &service{unary: pong})
	_, bad := serve(t, "", &service{unary: failing(status.Error(codes.Internal, ""))})
	g := group[string](t)
	s := breakergrpc.PerTarget(g)
	toGood, toBad := selected(t, good, s), selected(t, bad, s)
	require.Error(t, call(within(t), toBad))
	require.ErrorIs(t, call(within(t), toBad), breaker.ErrRejected)
	require.NoError(t, call(within(t), toGood))
	want := map[string]breaker.State{"passthrough:///" + good: breaker.Closed, "passthrough:///" + bad: breaker.Open}
	assert.Equal(t, want, names(g))
}

func TestPerMethod(t *testing.T) {
	_, address := serve(t, "", &service{unary: failing(status.Error(codes.Internal, "")), stream: messages(1, nil)})
	g := group[breakergrpc.Call](t)
	cc := selected(t, address, breakergrpc.PerMethod(g))
	require.Error(t, call(within(t), cc))
	require.ErrorIs(t, call(within(t), cc), breaker.ErrRejected)
	n, _ := drain(begin(within(t), t, cc, down))
	require.Equal(t, 1, n)
	target := "passthrough:///" + address
	want := map[string]breaker.State{target + unaryMethod: breaker.Open, target + downMethod: breaker.Closed}
	assert.Equal(t, want, names(g))
}

func TestPerMethodOfAServer(t *testing.T) {
	g := group[breakergrpc.Call](t)
	s := breakergrpc.PerMethod(g)
	_, address := serve(t, "", &service{unary: failing(status.Error(codes.Internal, "")), stream: messages(1, nil)},
		grpc.UnaryInterceptor(breakergrpc.UnaryServerInterceptor(s)),
		grpc.StreamInterceptor(breakergrpc.StreamServerInterceptor(s)))
	cc := dial(t, address)
	require.Equal(t, codes.Internal, status.Code(call(within(t), cc)))
	require.Equal(t, codes.Unavailable, status.Code(call(within(t), cc)))
	n, _ := drain(begin(within(t), t, cc, both))
	require.Equal(t, 1, n)
	assert.Equal(t, map[string]breaker.State{unaryMethod: breaker.Open, bothMethod: breaker.Closed}, names(g))
}

// everyWay makes a call and a stream through a selector, on the client and on the server, and returns their errors.
func everyWay(t *testing.T, s breakergrpc.Selector) map[string]error {
	t.Helper()
	service := &service{unary: pong, stream: messages(0, nil)}
	_, bare := serve(t, "", service)
	_, guarded := serve(t, "", service, grpc.UnaryInterceptor(breakergrpc.UnaryServerInterceptor(s)),
		grpc.StreamInterceptor(breakergrpc.StreamServerInterceptor(s)))
	errs := map[string]error{}
	for side, cc := range map[string]*grpc.ClientConn{"client": selected(t, bare, s), "server": dial(t, guarded)} {
		errs[side+", unary"] = call(within(t), cc)
		cs, err := cc.NewStream(within(t), both, bothMethod)
		if err == nil {
			_ = cs.SendMsg(wrapperspb.String("ping")) // the server may have ended it already
			err = recv(cs)
		}
		errs[side+", stream"] = err
	}
	return errs
}

func TestNoBreakerLeavesCallsUnguarded(t *testing.T) {
	errs := everyWay(t, func(context.Context, breakergrpc.Call) (*breaker.Breaker, error) { return nil, nil })
	for way, err := range errs {
		if err != io.EOF {
			assert.NoError(t, err, way)
		}
	}
	assert.Len(t, errs, 4)
}

func TestErrorOfASelectorIsTheAnswer(t *testing.T) {
	none := status.Error(codes.FailedPrecondition, "no breaker for you")
	errs := everyWay(t, func(context.Context, breakergrpc.Call) (*breaker.Breaker, error) { return nil, none })
	for way, err := range errs {
		assert.Equal(t, codes.FailedPrecondition, status.Code(err), way)
	}
	assert.Len(t, errs, 4)
}

// The selector sees the context of the call, with what was put there for it.
func TestSelectorSeesTheContext(t *testing.T) {
	type tenant struct{}
	_, address := serve(t, "", &service{unary: pong})
	var seen any
	cc := selected(t, address, func(ctx context.Context, c breakergrpc.Call) (*breaker.Breaker, error) {
		seen = ctx.Value(tenant{})
		assert.Equal(t, breakergrpc.Call{Target: "passthrough:///" + address, Method: unaryMethod}, c)
		return steady(), nil
	})
	require.NoError(t, call(context.WithValue(within(t), tenant{}, "acme"), cc))
	assert.Equal(t, "acme", seen)
}

func TestNothingIsMadeOfNothing(t *testing.T) {
	assert.Panics(t, func() { breakergrpc.Always(nil) })
	assert.Panics(t, func() { breakergrpc.PerTarget(nil) })
	assert.Panics(t, func() { breakergrpc.PerMethod(nil) })
	assert.Panics(t, func() { breakergrpc.UnaryClientInterceptor(nil) })
	assert.Panics(t, func() { breakergrpc.StreamClientInterceptor(nil) })
	assert.Panics(t, func() { breakergrpc.UnaryServerInterceptor(nil) })
	assert.Panics(t, func() { breakergrpc.StreamServerInterceptor(nil) })
}
