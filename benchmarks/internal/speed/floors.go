package speed

import (
	"context"
	"sync"
	"time"

	"github.com/benbjohnson/clock"
)

// timer is the part of breaker.Clock that a call uses, so that the floor pays for the same dynamic dispatch.
type timer interface {
	Now() time.Time
	Since(time.Time) time.Duration
}

// latencyFloor is what any breaker pays that measures the latency of a call and keeps the outcome: the clock is read
// before and after, and a lock is taken once, uncontended.
func latencyFloor() Loop {
	var c timer = clock.New()
	var mu sync.Mutex
	var total time.Duration
	base := c.Now()
	return func(n int) {
		for range n {
			start := c.Since(base)
			took := c.Since(base) - start
			mu.Lock()
			total += took
			mu.Unlock()
		}
	}
}

// emptyCall is the call that all contestants make, without a breaker.
func emptyCall() Loop {
	ctx := context.Background()
	call := succeed
	return func(n int) {
		for range n {
			_ = call(ctx)
		}
	}
}

// The floors, in the order in which tables show them.
var (
	FloorEmpty   = Contestant{Name: "empty call", Loop: emptyCall()}
	FloorLatency = Contestant{Name: "two clock reads and a lock", Loop: latencyFloor()}
)

func succeed(context.Context) error { return nil }
