package breakergrpc

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/brownout-go/breaker"
)

// stream is an admitted stream whose outcome is still to come. The first end counts.
type stream struct {
	witness
	ctx       context.Context // of the call
	permit    *breaker.Permit
	atHeaders bool
	clock     breaker.Clock // nil: the real one
	start     time.Time
	answered  atomic.Int64 // nanoseconds until something came back, at least 1; 0: nothing has yet
	ended     atomic.Bool
}

// admit asks a breaker for a stream, as breaker.Execute asks for a function.
func (c *config) admit(ctx context.Context, b *breaker.Breaker) (*stream, error) {
	s := b.Settings()
	permit, err := acquire(ctx, b, &s)
	if err != nil {
		return nil, refused(err)
	}
	st := &stream{ctx: ctx, permit: permit, atHeaders: c.atHeaders, clock: s.Clock}
	st.breaker, st.classify, st.probe = b, c.classify, permit.IsProbe()
	st.start = st.now()
	return st, nil
}

func acquire(ctx context.Context, b *breaker.Breaker, s *breaker.Settings) (*breaker.Permit, error) {
	if s.WhenOpen == breaker.Wait {
		return b.Acquire(ctx)
	}
	permit, err := b.TryAcquire(ctx)
	if err != nil && s.RejectionDelay > 0 && ctx.Err() == nil {
		after := time.After
		if s.Clock != nil {
			after = s.Clock.After
		}
		select {
		case <-after(s.RejectionDelay):
		case <-ctx.Done():
		}
	}
	return permit, err
}

func (s *stream) now() time.Time {
	if s.clock == nil {
		return time.Now()
	}
	return s.clock.Now()
}

func (s *stream) elapsed() time.Duration {
	if s.clock == nil {
		return time.Since(s.start)
	}
	return s.clock.Since(s.start)
}

// answer notes that something has come back.
func (s *stream) answer() {
	if s.answered.Load() != 0 {
		return
	}
	if s.answered.CompareAndSwap(0, max(1, int64(s.elapsed()))) {
		s.permit.Answered() // how long the stream goes on is no wait for the server
	}
	if s.atHeaders {
		s.end(nil)
	}
}

// latency returns how long it took until something came back, until now if nothing has.
func (s *stream) latency() time.Duration {
	if l := s.answered.Load(); l != 0 {
		return time.Duration(l)
	}
	return s.elapsed()
}

// end records the outcome of a stream that ended with an error, nil for io.EOF.
func (s *stream) end(err error) {
	if !s.ended.CompareAndSwap(false, true) {
		return
	}
	defer s.permit.Release() // also if the classifier calls runtime.Goexit
	switch {
	case err == nil:
		s.permit.RecordLatency(breaker.Success, s.latency())
	case s.ctx.Err() == context.Canceled && s.answered.Load() != 0:
		// How long a stream was read before its caller had enough says nothing.
	case s.ctx.Err() == context.Canceled || speaksForItself(err):
		s.permit.Done(s.ctx, err)
	default:
		s.record(err)
	}
}

// record records what the classifier makes of an error. A failure takes the error along, for those who ask why the circuit opened.
func (s *stream) record(err error) {
	if o := s.ask(err); o == breaker.Transient {
		s.permit.Done(s.ctx, breaker.Mark(err, o))
	} else {
		s.permit.RecordLatency(o, s.latency())
	}
}

// release ends a stream that says nothing.
func (s *stream) release() {
	if s.ended.CompareAndSwap(false, true) {
		s.permit.Release()
	}
}

// ask asks the classifier. One that panics is reported, and the error is a failure.
func (s *stream) ask(err error) (o breaker.Outcome) {
	defer func() {
		if p := recover(); p != nil {
			o = breaker.Transient
			s.report(&breaker.CallbackError{Callback: "Classify", Panic: p, Stack: debug.Stack()})
		}
	}()
	return s.outcome(err)
}

// report tells OnCallbackError of a fault in the classifier, as the breaker does. Its own panic is swallowed.
func (s *stream) report(failure *breaker.CallbackError) {
	defer func() { _ = recover() }()
	settings, ctx := s.breaker.Settings(), context.WithoutCancel(s.ctx)
	failure.Name = settings.Name
	if settings.OnCallbackError != nil {
		settings.OnCallbackError(ctx, failure)
		return
	}
	slog.Default().LogAttrs(ctx, slog.LevelError, failure.Error(), slog.String("stack", string(failure.Stack)))
}

var errPanicked = errors.New("breakergrpc: a stream panicked")

// unwind ends a stream whose goroutine unwinds past it, with a panic p or, where that is nil, by runtime.Goexit. The panic goes on,
// on top of its own stack, so that its trace stays whole.
func (s *stream) unwind(p any) {
	if p == nil {
		s.release()
		return
	}
	defer panic(p)
	if s.ended.CompareAndSwap(false, true) {
		s.permit.Done(s.ctx, breaker.Mark(errPanicked, breaker.Transient))
	}
}
