package breaker

import (
	"context"
	"sync/atomic"
	"time"
)

// Acquire waits until the breaker admits a call, the context ends (a *[WaitError]) or Settings.MaxWait has passed
// (a *[RejectedError]). Those who wait are served in order of arrival. Every permit must be ended: defer its Release.
//
// When a circuit closes without a ramp, all who wait go at once; combine waiting with a Recovery or with MaxWaiting.
func (b *Breaker) Acquire(ctx context.Context) (*Permit, error) {
	return new(Permit).acquire(ctx, b, acquiring)
}

// TryAcquire admits a call or returns a *[RejectedError]; it never waits. Every permit must be ended: defer its Release.
func (b *Breaker) TryAcquire(ctx context.Context) (*Permit, error) {
	return new(Permit).acquire(ctx, b, trying)
}

// Permit is one admitted call whose outcome the caller reports. The first of Done, Record, RecordLatency and Release ends it;
// the later ones do nothing, from whichever goroutine they come. One that is never ended is no call, but a probe holds its place
// until Settings.ProbeTimeout, and it is taken for a call that hangs unless SlowCalls.EndedOnly says otherwise. A nil or zero Permit is
// inert.
type Permit struct {
	breaker *Breaker
	call    call
	ended   atomic.Bool
}

// acquire fills the permit and returns it. Acquire and TryAcquire are small enough to be inlined, which keeps the permit on the
// caller's stack.
func (p *Permit) acquire(ctx context.Context, b *Breaker, how manner) (*Permit, error) {
	if err := b.enter(ctx, &p.call, how); err != nil {
		return nil, err
	}
	p.breaker = b
	return p, nil
}

// end ends the permit and reports whether it had not ended before.
func (p *Permit) end() bool {
	return p != nil && p.breaker != nil && p.ended.CompareAndSwap(false, true)
}

// Done ends the permit with the error of the call, classified as Execute would, nil being a success. The context is the one
// of the call. It reports whether the outcome counted: false for a permit that has ended, and for a call admitted before the
// circuit opened.
func (p *Permit) Done(ctx context.Context, err error) bool {
	mustHaveContext(ctx)
	if !p.end() {
		return false
	}
	defer func() {
		if p.call.progress != settled {
			p.breaker.abandon(ctx, &p.call, recover())
		}
	}()
	return p.breaker.finish(ctx, &p.call, err, nil)
}

// Record ends the permit with an outcome, which stands as it is. An unknown outcome counts as [Ignored] and goes to
// OnCallbackError. It reports whether the outcome counted.
func (p *Permit) Record(o Outcome) bool {
	if !p.end() {
		return false
	}
	return p.record(o, unmeasured)
}

// RecordLatency is Record for a caller who measured the latency. A negative latency counts as zero.
func (p *Permit) RecordLatency(o Outcome, latency time.Duration) bool {
	if !p.end() {
		return false
	}
	return p.record(o, max(0, latency))
}

// unmeasured is the latency of a call that ends now.
const unmeasured = time.Duration(-1)

// record records an outcome as it stands.
func (p *Permit) record(o Outcome, latency time.Duration) bool {
	ctx, b, c := context.Background(), p.breaker, &p.call
	c.progress = returned
	defer func() {
		if c.progress != settled {
			b.abandon(ctx, c, recover())
		}
	}()
	end := b.end(c, o)
	if latency == unmeasured {
		latency = end - c.ticket.start
	}
	return b.settle(ctx, c, b.known(ctx, o, "Record"), end, latency, nil)
}

// Answered tells that the dependency has answered, and that what the call is still in flight for, such as reading a stream, is no
// wait for it: it is not taken for a call that hangs, however long it takes. It ends nothing: report the outcome as ever, with
// RecordLatency if its latency is that of the answer. It may be called again, and after the end.
func (p *Permit) Answered() {
	if p == nil || p.breaker == nil || p.ended.Load() {
		return
	}
	p.breaker.answered(&p.call)
}

// Release ends the permit as [Ignored], unless it has ended. Deferring it right after Acquire is always safe.
func (p *Permit) Release() {
	if p.end() {
		p.record(Ignored, 0)
	}
}

// IsProbe reports whether the permit was given by a half-open circuit.
func (p *Permit) IsProbe() bool { return p != nil && p.call.isProbe() }
