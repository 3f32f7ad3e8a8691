package model_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/brownout-go/breaker"
	"github.com/brownout-go/breaker/internal/model"
)

var birth = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)

// steppedClock goes where it is told to, in either direction, and counts how often it is read.
type steppedClock struct {
	elapsed time.Duration
	reads   int
}

func (c *steppedClock) Now() time.Time {
	c.reads++
	return birth.Add(c.elapsed)
}

func (c *steppedClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
func (c *steppedClock) After(time.Duration) <-chan time.Time {
	panic("a breaker that nobody waits for starts a timer")
}

// pair is one admission as both sides see it.
type pair struct {
	got    *breaker.Permit
	want   *model.Permit
	closed bool // the circuit was closed
}

type refusal struct {
	got  *breaker.RejectedError
	want *model.Refusal
}

// rig drives a breaker and its model side by side.
type rig struct {
	clock    *steppedClock
	breaker  *breaker.Breaker
	model    *model.Model
	settings breaker.Settings

	events  []breaker.StateChange
	reports []string
	asked   []breaker.StateChange
	random  float64
	answer  time.Duration
	refuse  bool // BreakDurationFunc returns an error
	quiet   bool // readers are asked only by read operations, so that readings between them stay unseen

	reaction   *op    // of OnStateChange to the next change, or of BreakDurationFunc if early
	followUp   func() // what the reaction did, for the model
	superseded bool   // the reaction ended the open period that BreakDurationFunc was asked about

	flying   []pair
	ended    []pair
	refusals []refusal
	log      []string
	faults   []string
	checked  int // events compared so far
}

func newRig(s breaker.Settings, dynamic, quiet bool) *rig {
	r := &rig{clock: &steppedClock{}, settings: s, quiet: quiet}
	s.Clock = r.clock
	s.Random = func() float64 { return r.random }
	s.OnStateChange = r.observe
	s.OnCallbackError = func(_ context.Context, e *breaker.CallbackError) { r.reports = append(r.reports, e.Callback) }
	if dynamic {
		s.BreakDurationFunc = r.breakDuration
	}
	r.breaker = breaker.MustNew(s)
	r.model = model.New(s, birth)
	return r
}

// breakDuration is asked by the breaker and then by the model. A reaction that is due early makes the answer come too late.
func (r *rig) breakDuration(_ context.Context, c breaker.StateChange) (time.Duration, error) {
	r.asked = append(r.asked, c)
	answer := r.answer
	var err error
	if r.refuse {
		answer, err = 0, errors.New("no hint")
	}
	switch forModel := len(r.asked) == 2; {
	case forModel && r.superseded:
		r.superseded = false
		err = model.ErrSuperseded
	case !forModel && r.reaction != nil && r.reaction.early:
		r.superseded = true
		r.react()
	}
	return answer, err
}

// run applies the operations until the two sides differ, and reports whether they never did.
func (r *rig) run(ops []op) bool {
	for _, o := range ops {
		r.log = append(r.log, o.String())
		r.apply(o)
		r.compareEvents()
		if o.kind == read || !r.quiet {
			r.compareReaders()
		}
		if len(r.faults) > 0 {
			return false
		}
	}
	return true
}

func (r *rig) apply(o op) {
	switch o.kind {
	case admit:
		r.admit()
	case call:
		r.call(o)
	case burst, series, hang:
		r.repeat(o)
	case end:
		r.end(o)
	case endTwice:
		r.endTwice(o)
	case forget:
		if n := len(r.flying); n > 0 {
			r.take(o.choice % n)
		}
	case step:
		r.step(o)
	case isolate:
		r.model.Isolate(r.reading(r.breaker.Isolate))
		r.follow()
	case reset:
		r.model.Reset(r.reading(r.breaker.Reset))
		r.follow()
	case admitCancelled:
		r.admitCancelled()
	case react:
		r.reaction = &o
	case answer:
		r.answer, r.refuse = o.delta, o.fails
	case random:
		r.random = o.number
	}
}

// repeat makes calls with no look at the breaker between them, and steps the clock after each of a series.
func (r *rig) repeat(o op) {
	line := r.log[len(r.log)-1]
	for range o.times {
		r.log[len(r.log)-1] = line // which tells of the last call alone
		if o.kind == hang {
			r.admit()
		} else {
			r.call(o)
		}
		if o.kind != burst {
			r.clock.elapsed += o.delta
		}
	}
}

// reading runs a function of the breaker and returns what its clock showed then.
func (r *rig) reading(f func()) model.Reading {
	before, raw := r.clock.reads, r.clock.elapsed
	f()
	return model.Reading{Raw: raw, After: r.clock.elapsed, Seen: r.clock.reads > before}
}

func (r *rig) note(format string, args ...any) {
	r.log[len(r.log)-1] += ": " + fmt.Sprintf(format, args...)
}

func (r *rig) admit() bool {
	closed, before, told := r.model.Actual() == breaker.Closed, r.clock.reads, len(r.events)
	compare := r.ask()
	if reads := r.clock.reads - before; closed && len(r.events) == told && reads > r.readsToAdmit() {
		r.fault("a closed admission read the clock %d times", reads)
	}
	return compare()
}

func (r *rig) call(o op) {
	if r.admit() {
		o.choice = len(r.flying) - 1
		r.end(o)
	}
}

// ask asks the breaker for admission, and returns what asks the model and compares.
func (r *rig) ask() func() bool {
	var permit *breaker.Permit
	var err error
	reading := r.reading(func() { permit, err = r.breaker.TryAcquire(context.Background()) })
	return func() bool {
		closed := r.model.Actual() == breaker.Closed
		want, refused := r.model.Admit(reading, r.follow)
		switch {
		case err != nil:
			r.note("refused")
			r.compareRefusal(err, refused)
			return false
		case refused != nil:
			r.fault("admission: got a permit, want refused: %+v", *refused)
			return false
		}
		r.note("admitted as %d", len(r.flying))
		r.flying = append(r.flying, pair{permit, want, closed})
		r.differ("IsProbe", permit.IsProbe(), want.Probe)
		return true
	}
}

// readsToAdmit is how often a closed breaker may read the clock for an admission: for the start of a latency, if it measures
// any, and to look for overdue calls; each once more where that finds the clock set back.
func (r *rig) readsToAdmit() int {
	switch d := r.breaker.Settings(); {
	case d.SlowCalls.Off && d.SlowCallThreshold == 0:
		return 0
	case !d.SlowCalls.EndedOnly:
		return 4
	default:
		return 2
	}
}

// admitCancelled asks with a context that is done: nothing may come of it.
func (r *rig) admitCancelled() {
	before := r.clock.reads
	_, err := r.breaker.TryAcquire(cancelled())
	r.differ("the error of a call that was given up", err, context.Canceled)
	r.differ("clock reads of a call that was given up", r.clock.reads-before, 0)
}

func cancelled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// observe is OnStateChange.
func (r *rig) observe(_ context.Context, c breaker.StateChange) {
	r.events = append(r.events, c)
	if r.reaction != nil && !r.reaction.early {
		r.react()
	}
}

// react lets time pass in a callback and calls the breaker back.
func (r *rig) react() {
	due := *r.reaction
	r.reaction = nil
	r.clock.elapsed += due.delta
	switch due.reaction {
	case isolate:
		reading := r.reading(r.breaker.Isolate)
		r.followUp = func() { r.model.Isolate(reading) }
	case reset:
		reading := r.reading(r.breaker.Reset)
		r.followUp = func() { r.model.Reset(reading) }
	case admit:
		compare := r.ask()
		r.followUp = func() { compare() }
	}
}

// follow does on the model what a reaction did on the breaker, after the operation that it reacted to.
func (r *rig) follow() {
	if f := r.followUp; f != nil {
		r.followUp = nil
		r.note("reacted")
		f()
	}
}

// step moves the clock, by no more than 30 days: a run stays within the years that a duration can hold.
func (r *rig) step(o op) {
	const limit = 30 * 24 * time.Hour
	size := min(r.size(o.unit), limit/10)*o.times + o.delta
	if o.unit == fixed {
		size = o.delta * max(-1, min(1, o.times))
	}
	r.clock.elapsed += size
	r.note("%v to %v", size, r.clock.elapsed)
}

func (r *rig) size(u unit) time.Duration {
	d := r.settings.WithDefaults()
	switch u {
	case tripBucket:
		return d.Window / 10
	case tripWindow:
		return d.Window
	case latencyQuarter:
		return d.SlowCalls.Window / 4
	case failureBucket:
		return d.Failures.Window / 10
	case slice:
		return 250 * time.Millisecond
	case breakLeft:
		left, _ := r.model.RetryAfter()
		return left
	case slowThreshold:
		return r.model.Snapshot().SlowThreshold
	case rampLength:
		if d.Recovery.Fraction == 0 {
			return 100 * time.Millisecond // in which the fraction doubles at first
		}
		return d.Recovery.RampFor(r.model.Snapshot().Break)
	case probeTimeout:
		return max(0, d.ProbeTimeout)
	default:
		return max(d.BreakDuration, 3*time.Second)
	}
}
