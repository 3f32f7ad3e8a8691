package breaker

import (
	"context"
	"errors"
)

// classify tells what the error of a call says about the dependency: the first rule that applies.
func (b *Breaker) classify(ctx context.Context, err error, classify func(error) Outcome) (o Outcome) {
	if err != nil {
		if gaveUp(ctx) {
			return unfinished(err)
		}
		if o, ok := markOf(err); ok {
			return b.known(ctx, o, "Mark")
		}
		if errors.Is(err, ErrRejected) {
			return Ignored
		}
		if classify == nil {
			classify = b.settings.Classify
		}
	}
	if classify == nil {
		return Transient
	}
	o = Transient
	b.guard(ctx, "Classify", func() { o = classify(err) })
	return b.known(ctx, o, "Classify")
}

// known returns o, or reports an unknown one and returns Ignored.
func (b *Breaker) known(ctx context.Context, o Outcome, from string) Outcome {
	if outcomes.has(uint8(o)) {
		return o
	}
	b.report(ctx, &CallbackError{Callback: from, Err: errUnknownOutcome})
	return Ignored
}

// unfinished returns the outcome of a call that its caller gave up. One that another breaker was still holding back then has not
// reached the dependency, so that its length says nothing.
func unfinished(err error) Outcome {
	if errors.Is(err, ErrRejected) {
		return Ignored
	}
	return givenUp
}

// gaveUp reports whether the caller gave up on its call.
func gaveUp(ctx context.Context) bool { return ctx.Err() == context.Canceled }

var errUnknownOutcome = errors.New("unknown outcome, counted as ignored")
