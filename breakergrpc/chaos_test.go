package breakergrpc_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/brownout-go/breaker"
	"github.com/brownout-go/breaker/breakergrpc"
)

// moody is a service that does anything to its callers until it is told to be good.
type moody struct{ good atomic.Bool }

func (m *moody) unary(ctx context.Context, _ string) (*wrapperspb.StringValue, error) {
	if m.good.Load() {
		return wrapperspb.String("pong"), nil
	}
	switch rand.IntN(4) {
	case 0:
		<-ctx.Done()
		return nil, ctx.Err()
	case 1:
		return nil, status.Error(codes.Unavailable, "")
	case 2:
		return nil, status.Error(codes.NotFound, "")
	default:
		return wrapperspb.String("pong"), nil
	}
}

func (m *moody) stream(ss grpc.ServerStream) error {
	if m.good.Load() {
		return messages(1, nil)(ss)
	}
	switch n := rand.IntN(3); rand.IntN(3) {
	case 0:
		return messages(n, status.Error(codes.Internal, ""))(ss)
	case 1:
		return messages(n, nil)(ss)
	default:
		return silent(n)(ss)
	}
}

// treat makes one call or stream and leaves it in some way that gRPC allows.
func treat(ctx context.Context, cc *grpc.ClientConn) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(rand.IntN(5)+1)*time.Millisecond)
	defer cancel()
	if rand.IntN(3) == 0 {
		_ = call(ctx, cc)
		return
	}
	cs, err := cc.NewStream(ctx, both, bothMethod)
	if err != nil {
		return
	}
	text := []string{"ping", "ping", "\xff"}[rand.IntN(3)]
	if cs.SendMsg(wrapperspb.String(text)) != nil {
		return
	}
	switch rand.IntN(4) {
	case 0:
		_, _ = drain(cs)
	case 1:
		_ = recv(cs)
	case 2:
		go cancel()
		_, _ = drain(cs)
	}
}

// Nothing that callers and a server do to each other leaves a place at the breaker taken: nothing but its probes closes the circuit,
// and a lost probe is never given up.
func TestNoPlaceIsLost(t *testing.T) {
	m := new(moody)
	s := &service{unary: m.unary, stream: m.stream}
	onServer := breaker.MustNew(hasty())
	always := breakergrpc.Always(onServer)
	serverOpts := []grpc.ServerOption{grpc.UnaryInterceptor(breakergrpc.UnaryServerInterceptor(always)),
		grpc.StreamInterceptor(breakergrpc.StreamServerInterceptor(always))}
	server, address := serve(t, "", s, serverOpts...)
	onClient := breaker.MustNew(hasty())
	cc, bare := guarded(t, address, onClient), dial(t, address)
	for range 5 {
		var workers sync.WaitGroup
		var treated atomic.Int32
		for i := range 8 {
			workers.Go(func() {
				for range 100 {
					treat(t.Context(), []*grpc.ClientConn{cc, bare}[i%2])
					if treated.Add(1) == 600 {
						server.Stop()
					}
				}
			})
		}
		workers.Wait()
		server, _ = serve(t, address, s, serverOpts...)
	}
	m.good.Store(true)
	for _, b := range []*breaker.Breaker{onServer, onClient} {
		assert.Positive(t, b.Snapshot().Totals.Opens)
		require.Eventually(t, func() bool {
			err := call(within(t), cc)
			return err == nil && b.State() == breaker.Closed
		}, time.Minute, time.Millisecond)
	}
}

// hasty returns settings under which the circuit opens and closes all the time.
func hasty() breaker.Settings {
	return breaker.Settings{
		ConsecutiveFailures: 2,
		BreakDuration:       time.Millisecond,
		MaxBreakDuration:    time.Millisecond,
		ProbeTimeout:        breaker.Disabled,
	}
}
