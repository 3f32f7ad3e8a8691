package breaker

import (
	"context"
	"time"
)

// manner is how a caller asks for admission.
type manner uint8

const (
	executing manner = iota // as the settings say, with Settings.RejectionDelay
	acquiring               // waiting
	trying                  // never waiting
)

// waits reports whether the caller waits rather than be refused.
func (b *Breaker) waits(how manner) bool {
	return (how == acquiring || how == executing && b.settings.WhenOpen == Wait) && !b.settings.ObserveOnly
}

// admitSlowly asks a breaker that the door could not answer for. After a fault of our own the call is admitted, and not sampled.
func (b *Breaker) admitSlowly(ctx context.Context, how manner) (t ticket, err error) {
	defer func() {
		if b.contained(ctx, recover()) {
			t, err = ticket{epoch: unsampled}, nil
		}
	}()
	a := b.ask(ctx, b.waits(how))
	if a.place != nil {
		return b.await(ctx, a)
	}
	b.tell(ctx, a.change)
	switch {
	case a.ok:
		return a.ticket, nil
	case b.settings.ObserveOnly:
		return ticket{epoch: unsampled}, nil
	case how == executing && b.settings.RejectionDelay > 0:
		b.delay(ctx)
	}
	return ticket{}, a.err
}

// delay holds a refusal back until the context ends or the delay is over.
func (b *Breaker) delay(ctx context.Context) {
	select {
	case <-b.after(ctx, b.settings.RejectionDelay):
	case <-ctx.Done():
	}
}

// await waits until a caller in the line is admitted, its context ends or it has waited too long, and tells of what its question
// changed. Nothing polls: the first in the line is woken by every change that may serve it, and by an alarm for what time alone
// brings.
func (b *Breaker) await(ctx context.Context, a answer) (ticket, error) {
	w, came := a.place, b.elapsed()
	defer b.giveUp(w)
	var expiry <-chan time.Time
	if b.settings.MaxWait != Disabled {
		expiry = b.after(ctx, b.settings.MaxWait)
	}
	for {
		if a.change != nil {
			b.tell(ctx, a.change)
			b.comeBack(w)
		}
		over := false
		select {
		case <-w.turn:
		case <-b.alarm(ctx, w):
		case <-expiry:
			over = true
		case <-ctx.Done():
		}
		if err := ctx.Err(); err != nil {
			return ticket{}, &WaitError{Name: b.settings.Name, State: b.giveUp(w), Waited: b.elapsed() - came, Err: err}
		}
		if a = b.askAgain(ctx, w, over); a.ok || over {
			b.tell(ctx, a.change)
			return a.ticket, a.refusal()
		}
	}
}

// alarm returns a channel that tells the first in the line when to ask again, nil for the others and where time alone brings
// nothing.
func (b *Breaker) alarm(ctx context.Context, w *waiter) (alarm <-chan time.Time) {
	for range attempts {
		asked := b.elapsed()
		wait, ok := b.untilNextAsk(w, asked)
		if !ok {
			return nil
		}
		alarm = b.after(ctx, wait)
		// Where the clock went on between its reading and the alarm, as a fake one may in leaps, the alarm would come late.
		if b.elapsed()-asked < min(wait, time.Millisecond) || wait == 0 {
			return alarm
		}
	}
	return alarm
}

// attempts is how often an alarm is set anew for a clock that goes on meanwhile. One that never stands still gets the last.
const attempts = 3
