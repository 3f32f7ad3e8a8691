package breaker

import (
	"context"
	"time"
)

// Isolate refuses every call until [Breaker.Reset]. On an isolated breaker it does nothing.
func (b *Breaker) Isolate() {
	controlAll(context.Background(), []*Breaker{b}, (*machine).isolate, false)
}

// Reset closes the circuit without a ramp and forgets the evidence and the growth of the break; what was measured of the
// dependency stays. On a closed breaker no event comes of it.
func (b *Breaker) Reset() {
	controlAll(context.Background(), []*Breaker{b}, (*machine).reset, false)
}

// IsolateContext is [Breaker.Isolate] that returns once observers have seen the change, or with the context's error if that
// ends first. The change is made in any case. It returns at once inside a callback of any breaker, which would otherwise wait for
// itself: where ctx comes from one, and, whatever ctx is, on the goroutine that runs one. A goroutine that a callback starts and
// waits for must be given the callback's context. The values of ctx reach the observers.
func (b *Breaker) IsolateContext(ctx context.Context) error {
	return controlAll(ctx, []*Breaker{b}, (*machine).isolate, true)
}

// ResetContext is [Breaker.Reset] that returns once observers have seen the change, as IsolateContext does.
func (b *Breaker) ResetContext(ctx context.Context) error {
	return controlAll(ctx, []*Breaker{b}, (*machine).reset, true)
}

// controlAll moves every breaker, then delivers, and then waits, if it is to, until all observers have seen it.
func controlAll(ctx context.Context, breakers []*Breaker, move func(*machine, time.Duration) *transition, wait bool) error {
	mustHaveContext(ctx)
	changes := make([]*transition, len(breakers))
	for i, b := range breakers {
		b.mustBeMade()
		changes[i] = b.control(ctx, move)
	}
	for i, b := range breakers {
		b.tell(ctx, changes[i])
	}
	if !wait || insideCallback(ctx) {
		return nil
	}
	for _, b := range breakers {
		if err := b.delivered(ctx); err != nil {
			return err
		}
	}
	return nil
}

// control moves the machine by hand.
func (b *Breaker) control(ctx context.Context, move func(*machine, time.Duration) *transition) *transition {
	now := b.lock(b.elapsed())
	defer b.mu.Unlock()
	change := move(&b.machine, now)
	b.commitLocked(ctx, change, nil)
	b.gatherLocked()
	b.publishLocked()
	return change
}
