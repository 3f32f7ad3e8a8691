package breaker

import "context"

// Execute runs fn if the breaker admits it and records how it went; otherwise it returns a *[RejectedError], after
// Settings.RejectionDelay, or waits first if Settings.WhenOpen says so. The error of fn is returned as it is. A context that is
// done already returns its error and touches nothing.
//
// An error is classified by the first of these that applies: ctx was cancelled: [Ignored]; it carries a [Mark]; it is the
// refusal of another breaker: [Ignored]; Settings.Classify; [Transient]. A deadline that ran out is evidence. A panic in fn
// counts as Transient, or as Ignored if ctx was cancelled, and goes on unchanged; runtime.Goexit counts as Ignored.
//
// Execute samples one attempt: put retries outside it.
func (b *Breaker) Execute(ctx context.Context, fn func(context.Context) error) (err error) {
	if fn == nil {
		panic("breaker: Execute of a nil function")
	}
	var c call
	if err := b.enter(ctx, &c, executing); err != nil {
		return err
	}
	defer func() {
		if c.progress != settled {
			b.abandon(ctx, &c, recover())
		}
	}()
	inner := ctx
	if c.isProbe() {
		inner = probing(ctx)
	}
	err = fn(inner)
	b.finish(ctx, &c, err, nil)
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
	var c call
	if err := b.enter(ctx, &c, executing); err != nil {
		return value, err
	}
	defer func() {
		if c.progress != settled {
			b.abandon(ctx, &c, recover())
		}
	}()
	inner := ctx
	if c.isProbe() {
		inner = probing(ctx)
	}
	value, err = fn(inner)
	if classify == nil {
		b.finish(ctx, &c, err, nil)
	} else {
		b.finish(ctx, &c, err, func(err error) Outcome { return classify(value, err) })
	}
	return value, err
}

// probeKey marks the contexts of probes.
type probeKey struct{}

// probing returns the context that the function of a probe is given.
func probing(ctx context.Context) context.Context { return context.WithValue(ctx, probeKey{}, true) }

// IsProbe reports whether ctx comes from inside a function that a half-open circuit runs as a probe, by [Breaker.Execute], [Execute]
// or [ExecuteClassified]. What becomes of the circuit hangs on such a call: the function may want to finish it although its
// caller has gone, or to ask the dependency for less. A [Permit] says it by itself.
func IsProbe(ctx context.Context) bool {
	mustHaveContext(ctx)
	return ctx.Value(probeKey{}) != nil
}
