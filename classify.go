package breaker

import (
	"context"
	"errors"
)

// classify tells what a call that has returned says about the dependency. The error is nil only for a classifier of the call.
func (b *Breaker) classify(ctx context.Context, err error, classify func(error) Outcome) Outcome {
	if err == nil {
		return b.consult(ctx, classify, nil, Ignored)
	}
	if b.gaveUp(ctx) {
		return b.unfinished(ctx, err)
	}
	v := verdict{left: mostErrors}
	if !b.guard(ctx, "Error", func() { v.walk(err, false) }) {
		return Transient
	}
	if v.unknown {
		b.reportUnknown(ctx, "Mark")
	}
	if !v.unmarked {
		return v.worst
	}
	if classify == nil {
		classify = b.settings.Classify
	}
	return worse(v.worst, b.consult(ctx, classify, err, Transient))
}

// gaveUp reports whether the caller gave up on its call. The context may be the user's own code.
func (b *Breaker) gaveUp(ctx context.Context) (yes bool) {
	b.guard(ctx, "Context", func() { yes = ctx.Err() == context.Canceled })
	return yes
}

// consult returns what a classifier says, Transient without one, and unanswered if it panics.
func (b *Breaker) consult(ctx context.Context, classify func(error) Outcome, err error, unanswered Outcome) Outcome {
	if classify == nil {
		return Transient
	}
	o := unanswered
	b.guard(ctx, "Classify", func() { o = classify(err) })
	return b.known(ctx, o, "Classify")
}

// verdict is what a tree of errors says by itself. Walking it runs the methods of errors, which are code of the user.
type verdict struct {
	worst    Outcome // of the branches that are marked or refusals
	unmarked bool    // a branch is neither
	unknown  bool    // a mark has an unknown outcome
	left     int     // how many errors may still be looked at
}

// mostErrors bounds the walk through one error, which may be its own cause. What lies beyond is unmarked.
const mostErrors = 10_000

// walk follows a branch from err on, and those into which it divides. A branch ends at its outermost mark.
func (v *verdict) walk(err error, refused bool) {
	for v.left > 0 {
		v.left--
		if m := markOn(err); m != nil {
			v.mark(m.outcome)
			return
		}
		refused = refused || isRefusal(err)
		switch e := err.(type) {
		case interface{ Unwrap() error }:
			err = e.Unwrap()
		case interface{ Unwrap() []error }:
			v.divide(e.Unwrap(), refused)
			return
		default:
			err = nil
		}
		if err == nil {
			v.end(refused)
			return
		}
	}
	v.unmarked = true
}

// divide follows each of the branches; none at all are the end of the one that leads to them.
func (v *verdict) divide(branches []error, refused bool) {
	divided := false
	for _, err := range branches {
		if err != nil {
			divided = true
			v.walk(err, refused)
		}
	}
	if !divided {
		v.end(refused)
	}
}

// end ends a branch without a mark.
func (v *verdict) end(refused bool) {
	if refused {
		v.mark(Ignored)
	} else {
		v.unmarked = true
	}
}

func (v *verdict) mark(o Outcome) {
	if !outcomes.has(uint8(o)) {
		o, v.unknown = Ignored, true
	}
	v.worst = worse(v.worst, o)
}

// markOn returns the mark that err itself is or answers for, nil if there is none.
func markOn(err error) *markedError {
	switch e := err.(type) {
	case *markedError:
		return e
	case interface{ As(any) bool }:
		if m := new(*markedError); e.As(m) {
			return *m
		}
	}
	return nil
}

// isRefusal reports whether err itself is the refusal of a breaker.
func isRefusal(err error) bool {
	if err == ErrRejected {
		return true
	}
	e, ok := err.(interface{ Is(error) bool })
	return ok && e.Is(ErrRejected)
}

// known returns o, or reports an unknown one and returns Ignored.
func (b *Breaker) known(ctx context.Context, o Outcome, from string) Outcome {
	if outcomes.has(uint8(o)) {
		return o
	}
	b.reportUnknown(ctx, from)
	return Ignored
}

func (b *Breaker) reportUnknown(ctx context.Context, from string) {
	b.report(ctx, &CallbackError{Callback: from, Err: errUnknownOutcome})
}

// unfinished returns the outcome of a call that its caller gave up. One that another breaker was still holding back then has not
// reached the dependency, so that its length says nothing.
func (b *Breaker) unfinished(ctx context.Context, err error) (o Outcome) {
	o = givenUp
	b.guard(ctx, "Error", func() {
		if errors.Is(err, ErrRejected) {
			o = Ignored
		}
	})
	return o
}

var errUnknownOutcome = errors.New("unknown outcome, counted as ignored")
