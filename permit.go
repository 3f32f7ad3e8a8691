package breaker

import (
	"context"
	"sync/atomic"
	"time"
)

// Execute runs fn if the breaker admits it and records how it went; otherwise it returns a *[RejectedError], after
// Settings.RejectionDelay, or waits first if Settings.WhenOpen says so. The error of fn is returned as it is. A context that is
// done already returns its error and touches nothing.
//
// An error is classified by the first of these that applies: ctx was cancelled: [Ignored]; it carries a [Mark]; it is the
// refusal of another breaker: [Ignored]; Settings.Classify; [Transient]. A deadline that ran out is evidence. A panic in fn
// counts as Transient and goes on unchanged; runtime.Goexit counts as Ignored.
//
// Execute samples one attempt: put retries outside it.
func (b *Breaker) Execute(ctx context.Context, fn func(context.Context) error) (err error) {
	if fn == nil {
		panic("breaker: Execute of a nil function")
	}
	c, err := b.admit(ctx, executing)
	if err != nil {
		return err
	}
	settled := false
	defer func() {
		if !settled && !b.abandon(ctx, &c) {
			b.ownFault(ctx, recover())
		}
	}()
	err = fn(ctx)
	b.finish(ctx, &c, err, nil)
	settled = true
	return err
}

// Execute is [Breaker.Execute] for a function with a result.
func Execute[T any](ctx context.Context, b *Breaker, fn func(context.Context) (T, error)) (T, error) {
	return ExecuteClassified(ctx, b, fn, nil)
}

// ExecuteClassified is [Execute] with a classifier for this call, which stands in for Settings.Classify, sees the result, and is
// asked about nil errors as well: a response can tell of a failure without an error. A nil classify is plain Execute.
func ExecuteClassified[T any](ctx context.Context, b *Breaker, fn func(context.Context) (T, error),
	classify func(T, error) Outcome) (value T, err error) {
	if fn == nil {
		panic("breaker: Execute of a nil function")
	}
	c, err := b.admit(ctx, executing)
	if err != nil {
		return value, err
	}
	settled := false
	defer func() {
		if !settled && !b.abandon(ctx, &c) {
			b.ownFault(ctx, recover())
		}
	}()
	value, err = fn(ctx)
	if classify == nil {
		b.finish(ctx, &c, err, nil)
	} else {
		b.finish(ctx, &c, err, func(err error) Outcome { return classify(value, err) })
	}
	settled = true
	return value, err
}

// Acquire waits until the breaker admits a call, the context ends (its error) or Settings.MaxWait has passed (a
// *[RejectedError]). Those who wait are served in order of arrival. Every permit must be ended: defer its Release.
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
// until Settings.ProbeTimeout, and SlowCalls.Overdue takes it for a call that hangs. A nil or zero Permit is inert.
type Permit struct {
	breaker *Breaker
	call    call
	ended   atomic.Bool
}

// acquire fills the permit and returns it. Acquire and TryAcquire are small enough to be inlined, which keeps the permit on the
// caller's stack.
func (p *Permit) acquire(ctx context.Context, b *Breaker, how manner) (*Permit, error) {
	c, err := b.admit(ctx, how)
	if err != nil {
		return nil, err
	}
	p.breaker, p.call = b, c
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
	settled := false
	defer func() {
		if !settled && !p.breaker.abandon(ctx, &p.call) {
			p.breaker.ownFault(ctx, recover())
		}
	}()
	counted := p.breaker.finish(ctx, &p.call, err, nil)
	settled = true
	return counted
}

// Record ends the permit with an outcome, which stands as it is. An unknown outcome counts as [Ignored] and goes to
// OnCallbackError. It reports whether the outcome counted.
func (p *Permit) Record(o Outcome) bool {
	if !p.end() {
		return false
	}
	end := p.breaker.reading(&p.call, o)
	return p.record(o, end, end-p.call.start)
}

// RecordLatency is Record for a caller who measured the latency. A negative latency counts as zero.
func (p *Permit) RecordLatency(o Outcome, latency time.Duration) bool {
	if !p.end() {
		return false
	}
	return p.record(o, p.breaker.reading(&p.call, o), latency)
}

func (p *Permit) record(o Outcome, end, latency time.Duration) bool {
	ctx := context.Background()
	settled := false
	defer func() {
		if !settled {
			p.breaker.abandon(ctx, &p.call)
		}
	}()
	counted := p.breaker.settle(ctx, &p.call, end, p.breaker.known(ctx, o, "Record"), latency, nil)
	settled = true
	return counted
}

// Release ends the permit as [Ignored], unless it has ended. Deferring it right after Acquire is always safe.
func (p *Permit) Release() {
	if p.end() {
		p.record(Ignored, unread, 0)
	}
}

// IsProbe reports whether the permit was given by a half-open circuit.
func (p *Permit) IsProbe() bool {
	return p != nil && p.call.ticket.slot != noSlot && p.call.ticket.slot != rampSlot
}

// admit asks for admission. A closed breaker answers without its lock, and so does an open one whose answer only time changes.
func (b *Breaker) admit(ctx context.Context, how manner) (c call, err error) {
	mustHaveContext(ctx)
	if b == nil {
		panic("breaker: nil *Breaker")
	}
	if err = ctx.Err(); err != nil {
		b.mustBeMade()
		return c, err
	}
	w := b.word.Load()
	if w&(wordMade|wordLocked|wordStates) == wordMade|uint64(Closed) {
		c.ticket.epoch = w >> wordEpochShift
		if b.timed {
			c.start = b.elapsed()
		}
		return c, nil
	}
	if w&wordStates == uint64(Open) && b.refusesAtOnce(how) {
		if err = b.refuseOpen(); err != nil {
			return c, err
		}
	}
	b.mustBeMade()
	return b.admitSlowly(ctx, how)
}

// finish classifies the error of a call that has returned, and records it.
func (b *Breaker) finish(ctx context.Context, c *call, err error, classify func(error) Outcome) bool {
	if err == nil && classify == nil {
		if !b.sampled && b.word.Load() == wordOf(Closed, c.ticket.epoch) && c.ticket.slot == noSlot {
			b.successes.Add(1)
			return true
		}
		end := b.reading(c, Success)
		if counted, settled := b.settleFast(c, end, end-c.start); settled {
			return counted
		}
		return b.settle(ctx, c, end, Success, end-c.start, nil)
	}
	end := b.elapsed()
	reading, o := end, b.classify(ctx, err, classify)
	if classify != nil || b.settings.Classify != nil {
		reading = b.elapsed() // the classifier took its time, and what is decided now is decided as of now
	}
	return b.settle(ctx, c, reading, o, end-c.start, err)
}

// reading reads the clock at the end of a call, if its outcome needs the time.
func (b *Breaker) reading(c *call, o Outcome) time.Duration {
	if o == Success && !b.sampled && c.ticket.slot == noSlot {
		return unread
	}
	return b.elapsed()
}
