package breakergrpc

import (
	"context"

	"google.golang.org/grpc"

	"github.com/brownout-go/breaker"
)

// Call is what a [Selector] knows of a call. It is comparable, so it can be the key of a [breaker.Group].
type Call struct {
	Target string // of the connection, as it was given to grpc.NewClient; empty on a server
	Method string // in full, such as /shop.Inventory/Reserve
}

// String returns the target, where there is one, followed by the method.
func (c Call) String() string { return c.Target + c.Method }

// Selector names the breaker of a call. A nil breaker without an error leaves the call unguarded; an error is returned in place of
// an answer, as it is: make it a status if its code matters. It is called once for each call, before anything else happens,
// concurrently.
type Selector func(context.Context, Call) (*breaker.Breaker, error)

// Always selects one breaker for every call. It panics if the breaker is nil.
func Always(b *breaker.Breaker) Selector {
	if b == nil {
		panic("breakergrpc: Always of a nil breaker")
	}
	return func(context.Context, Call) (*breaker.Breaker, error) { return b, nil }
}

// PerTarget selects a breaker of the group for each target, for clients of many services. It panics if the group is nil. On a
// server, which has no target, all methods share one.
func PerTarget(g *breaker.Group[string]) Selector {
	if g == nil {
		panic("breakergrpc: PerTarget of a nil group")
	}
	return func(_ context.Context, c Call) (*breaker.Breaker, error) { return g.Get(c.Target) }
}

// PerMethod selects a breaker of the group for each method of each target, so that a method that fails alone is refused alone, and
// methods that are slow by nature have a latency of their own. It panics if the group is nil.
func PerMethod(g *breaker.Group[Call]) Selector {
	if g == nil {
		panic("breakergrpc: PerMethod of a nil group")
	}
	return func(_ context.Context, c Call) (*breaker.Breaker, error) { return g.Get(c) }
}

// targetOf returns the target of a connection. Interceptors for other transports have none.
func targetOf(cc *grpc.ClientConn) string {
	if cc == nil {
		return ""
	}
	return cc.Target()
}
