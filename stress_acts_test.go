package breaker

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/stretchr/testify/assert"
)

// act does one thing that a caller or an operator may do, or do wrong.
func (st *storm) act(random *rand.Rand) {
	ctx := context.Background()
	switch pick(random, 60, 10, 10, 20, 10, 10, 1, 1, 5, 2) {
	case 0:
		st.execute(ctx, st.function(random))
	case 1:
		st.executeCancelled(random)
	case 2:
		var ended sync.WaitGroup
		ended.Go(func() { st.execute(ctx, func(context.Context) error { runtime.Goexit(); return nil }) })
		ended.Wait()
	case 3:
		st.hold(st.b.TryAcquire(ctx))
	case 4:
		st.acquire(ctx, random)
	case 5:
		st.reportLate(random)
	case 6:
		st.b.Isolate()
		runtime.Gosched()
		st.b.Reset()
	case 7:
		_ = st.b.IsolateContext(ctx)
		_ = st.b.ResetContext(ctx)
	case 8:
		s := st.b.Snapshot()
		assert.LessOrEqual(st.t, s.ProbesInFlight, st.limit())
		assert.GreaterOrEqual(st.t, s.RetryAfter, time.Duration(0))
	case 9:
		if c, ok := st.b.settings.Clock.(*leapingClock); ok {
			c.ahead.Add(int64(random.IntN(3)-1) * int64(time.Hour))
		}
	}
}

// function returns a call that succeeds, fails in one of the ways there are, or panics.
func (st *storm) function(random *rand.Rand) func(context.Context) error {
	err := []error{nil, errDown, Mark(errDown, Throttled), Mark(errDown, Permanent), Mark(errDown, Outcome(99))}
	kind, yields := pick(random, 70, 20, 2, 2, 1, 5), random.IntN(3)
	return func(context.Context) error {
		for range yields {
			runtime.Gosched()
		}
		if kind == len(err) {
			panic(errThrown)
		}
		return err[kind]
	}
}

// execute makes a call and counts what came of it.
func (st *storm) execute(ctx context.Context, f func(context.Context) error) {
	ran := false
	defer func() {
		if thrown := recover(); thrown != nil {
			assert.Equal(st.t, errThrown, thrown)
		}
		if ran {
			st.ended.Add(1)
		}
	}()
	err := st.b.Execute(ctx, func(ctx context.Context) error { ran = true; return f(ctx) })
	if !ran && wasRefused(err) {
		st.refused.Add(1)
	}
}

// wasRefused reports whether err is a refusal that counts as one: not the end of a wait.
func wasRefused(err error) bool {
	_, ok := errors.AsType[*RejectedError](err)
	return ok
}

// executeCancelled makes a call that is cancelled before, or while it runs.
func (st *storm) executeCancelled(random *rand.Rand) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if random.IntN(2) == 0 {
		cancel()
	}
	st.execute(ctx, func(context.Context) error { cancel(); return errDown })
}

// acquire waits for a permit: as long as it takes, or not for long.
func (st *storm) acquire(ctx context.Context, random *rand.Rand) {
	if random.IntN(2) == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(random.IntN(1000))*time.Microsecond)
		defer cancel()
	}
	st.hold(st.b.Acquire(ctx))
}

// hold keeps a permit for somebody who will report it, if it was given. A few are forgotten.
func (st *storm) hold(p *Permit, err error) {
	if err != nil {
		if wasRefused(err) {
			st.refused.Add(1)
		}
		return
	}
	st.count(p, 1)
	if rand.IntN(100) == 0 {
		if p.call.ticket.epoch == unsampled {
			st.ended.Add(1) // a dry run has counted it already, as a refusal
		}
		return
	}
	st.ended.Add(1)
	select {
	case st.late <- p:
	default:
		st.report(p, Success)
	}
}

// count keeps the number of probes that callers hold of one half-open period, which must not exceed the limit either.
func (st *storm) count(p *Permit, by int) {
	if !p.IsProbe() {
		return
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.probes[p.call.ticket.epoch] += by
	assert.LessOrEqual(st.t, st.probes[p.call.ticket.epoch], st.limit(), "probes of one period")
}

// reportLate reports a permit that somebody left.
func (st *storm) reportLate(random *rand.Rand) {
	select {
	case p := <-st.late:
		st.report(p, []Outcome{Success, Transient, Throttled, Permanent, Ignored, Outcome(99)}[pick(random, 70, 20, 2, 2, 5, 1)])
	default:
	}
}

// report ends a permit from three goroutines at once, and then again.
func (st *storm) report(p *Permit, o Outcome) {
	st.count(p, -1)
	var counted [3]bool
	var all sync.WaitGroup
	all.Go(func() { counted[0] = p.Record(o) })
	all.Go(func() { counted[1] = p.RecordLatency(o, time.Millisecond) })
	counted[2] = p.Done(context.Background(), errDown)
	all.Wait()
	once := 0
	for _, c := range counted {
		if c {
			once++
		}
	}
	assert.LessOrEqual(st.t, once, 1, "a permit ends once")
	assert.False(st.t, p.Record(o))
	p.Release()
}
