package entry

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
)

func rules() []Entry {
	return []Entry{
		{
			Library: "simple rule", Config: "at most 50 calls at once", Kind: Rule, Sheds: true,
			Setup: "a counter of calls in flight; the 51st is refused",
			New:   func(uint64) Guard { return &bulkhead{limit: 50} },
		},
		{
			Library: "simple rule", Config: "slow is failed", Kind: Rule, Module: gobreakerModule,
			Setup: "gobreaker, which is told that a call over 500 ms has failed: six in a row, then 10 s",
			New: func(uint64) Guard {
				return slowIsFailed{gobreaker.NewCircuitBreaker[any](gobreaker.Settings{Timeout: 10 * time.Second})}
			},
		},
		{
			Library: "no breaker", Config: "for scale", Kind: Absent,
			Setup: "every call goes out",
			New:   func(uint64) Guard { return unguarded{} },
		},
	}
}

// bulkhead lets so many calls through at once and knows nothing about how they end.
type bulkhead struct {
	shedding
	limit    int64
	inFlight atomic.Int64
}

var errFull = errors.New("too many calls in flight")

func (b *bulkhead) Call(ctx context.Context, fn Func) error {
	defer b.inFlight.Add(-1)
	if b.inFlight.Add(1) > b.limit {
		b.note(true)
		return errFull
	}
	return fn(ctx)
}

// slowIsFailed hides a threshold from a breaker that knows none.
type slowIsFailed struct {
	b *gobreaker.CircuitBreaker[any]
}

var errSlow = errors.New("the call was slow")

func (g slowIsFailed) Call(ctx context.Context, fn Func) error {
	start := time.Now()
	_, err := g.b.Execute(func() (any, error) {
		err := fn(ctx)
		if err == nil && time.Since(start) > 500*time.Millisecond {
			err = errSlow
		}
		return nil, err
	})
	if err == errSlow {
		return nil
	}
	return err
}

func (g slowIsFailed) State() State { return stateOf(g.b.State() == gobreaker.StateClosed) }

type unguarded struct{}

func (unguarded) Call(ctx context.Context, fn Func) error { return fn(ctx) }
func (unguarded) State() State                            { return Closed }
