package breaker

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/benbjohnson/clock"
)

// Breaker is a circuit breaker for one dependency. Make it with [New], share it between all calls to that dependency, and
// send them through [Breaker.Execute], the functions [Execute] and [ExecuteClassified], or a [Permit]. It is safe for concurrent
// use, starts no goroutine of its own and needs no closing. A zero Breaker panics.
type Breaker struct {
	// Written by New alone, but for the first two, which change with the state. They come first and the settings after them,
	// so that admission in Closed reads no cache line that a finished call writes.
	word     atomic.Uint64
	refusal  atomic.Pointer[refusals] // nil while Closed; written under mu
	made     time.Time                // by the clock; elapsed time is counted from here
	events   *eventQueue              // nil: nobody observes
	realTime bool                     // the clock is the default one
	timed    bool                     // latency is measured
	sampled  bool                     // a success is more than the end of a streak
	settings Settings                 // with defaults, the clock included

	rejected  atomic.Uint64 // calls refused
	successes atomic.Uint64 // successes that were recorded without the lock

	mu      sync.Mutex // protects following fields
	machine machine
	waiting *waitQueue // nil until somebody waits
}

// The word is what admission in Closed needs, in one atomic load: the state; a bit that tells a breaker made by New from a zero
// one; a bit that says, where successes are not sampled, that the next one has a streak to end; a bit that says that admission
// takes the lock even so; and the epoch.
const (
	wordStates     = 1<<3 - 1
	wordMade       = 1 << 3
	wordStreak     = 1 << 4
	wordLocked     = 1 << 5
	wordEpochShift = 6
)

func wordOf(s State, epoch uint64) uint64 { return epoch<<wordEpochShift | wordMade | uint64(s) }

// call is one admitted call.
type call struct {
	ticket ticket
	start  time.Duration // reading of the clock, if latency is measured
}

// refusals are the errors of one open period, one for each state in it.
type refusals struct {
	reason  Reason
	cause   error
	epoch   uint64
	until   atomic.Int64                 // the end of the break
	byState [Isolated + 1]*RejectedError // that of Open is there from the start, the others are made under the lock
}

// New returns a closed breaker. It copies the settings; invalid ones are a *[SettingsError].
func New(s Settings) (*Breaker, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	b := newBreaker(s)
	if s.Monitor != nil {
		s.Monitor.bind(b)
	}
	return b, nil
}

// MustNew is [New] for settings that are known to be valid. It panics with the *[SettingsError] of those that are not.
func MustNew(s Settings) *Breaker {
	b, err := New(s)
	if err != nil {
		panic(err)
	}
	return b
}

// newBreaker returns a breaker for settings that are not checked, bound to no monitor.
func newBreaker(s Settings) *Breaker {
	b := &Breaker{settings: s.WithDefaults()}
	if s.Clock == nil {
		b.settings.Clock, b.realTime = clock.New(), true
	}
	b.made = b.settings.Clock.Now()
	b.timed, b.sampled = b.settings.judgesSlowness(), b.settings.judgesRatios()
	b.machine = newMachine(&b.settings)
	if b.machine.test != nil {
		b.machine.test.raises = s.ConsecutiveFailures == 0
	}
	if s.OnStateChange != nil || s.BreakDurationFunc != nil || s.Monitor != nil {
		b.events = new(eventQueue)
	}
	b.publishLocked()
	return b
}

// mustBeMade panics on a breaker that New did not make.
func (b *Breaker) mustBeMade() {
	if b == nil {
		panic("breaker: nil *Breaker")
	}
	if b.word.Load() == 0 {
		panic("breaker: zero Breaker: make it with breaker.New")
	}
}

// mustHaveContext panics on a nil context.
func mustHaveContext(ctx context.Context) {
	if ctx == nil {
		panic("breaker: nil context")
	}
}

// Name returns Settings.Name.
func (b *Breaker) Name() string {
	b.mustBeMade()
	return b.settings.Name
}

// Settings returns the settings with defaults, as [Settings.WithDefaults] gives them.
func (b *Breaker) Settings() Settings {
	b.mustBeMade()
	s := b.settings
	if b.realTime {
		s.Clock = nil
	}
	return s
}

// State returns the state that the next call would find. It costs one atomic load while the circuit is closed.
func (b *Breaker) State() State {
	b.mustBeMade()
	if State(b.word.Load()&wordStates) == Closed {
		return Closed
	}
	now := b.lock(b.elapsed())
	defer b.mu.Unlock()
	return b.machine.stateAt(now)
}

// OpenedAt returns when the circuit was last opened or isolated. It is false only while State is Closed.
func (b *Breaker) OpenedAt() (time.Time, bool) {
	b.mustBeMade()
	now := b.lock(b.elapsed())
	defer b.mu.Unlock()
	return b.openedAtLocked(now)
}

func (b *Breaker) openedAtLocked(now time.Duration) (time.Time, bool) {
	if b.machine.stateAt(now) == Closed {
		return time.Time{}, false
	}
	return b.made.Add(b.machine.period.openedAt), true
}

// RetryAfter returns how long the break still lasts. It is true only while State is Open.
func (b *Breaker) RetryAfter() (time.Duration, bool) {
	b.mustBeMade()
	now := b.lock(b.elapsed())
	defer b.mu.Unlock()
	return b.retryAfterLocked(now)
}

func (b *Breaker) retryAfterLocked(now time.Duration) (time.Duration, bool) {
	if b.machine.stateAt(now) != Open {
		return 0, false
	}
	return b.machine.breakEnd() - now, true
}

// retryAfterIn returns the RetryAfter of the open period that began with an epoch; false once it is over.
func (b *Breaker) retryAfterIn(epoch uint64) (time.Duration, bool) {
	now := b.lock(b.elapsed())
	defer b.mu.Unlock()
	if b.machine.epoch != epoch {
		return 0, false
	}
	return b.retryAfterLocked(now)
}

// NormalLatency returns the dependency's measured latency, Settings.SlowCalls.Quantile of its successful calls; false while
// there are too few samples or the measurement is off.
func (b *Breaker) NormalLatency() (time.Duration, bool) {
	b.mustBeMade()
	now := b.lock(b.elapsed())
	defer b.mu.Unlock()
	normal := b.machine.normalLatency(now)
	return normal, normal > 0
}

// NormalFailureRate returns the dependency's measured failure rate, in [0, 1]; false while there are too few samples or the
// measurement is off.
func (b *Breaker) NormalFailureRate() (float64, bool) {
	b.mustBeMade()
	now := b.lock(b.elapsed())
	defer b.mu.Unlock()
	rate, ok := b.machine.normalFailureRate(now)
	if !ok {
		return 0, false
	}
	return rate, true
}

// Snapshot returns everything at one moment. Reading changes nothing and never uses up a probe.
func (b *Breaker) Snapshot() Snapshot {
	b.mustBeMade()
	now := b.lock(b.elapsed())
	defer b.mu.Unlock()
	s := b.machine.snapshot(now)
	s.Name = b.settings.Name
	s.Since = b.made.Add(b.machine.sinceAt(now))
	s.OpenedAt, _ = b.openedAtLocked(now)
	s.RetryAfter, _ = b.retryAfterLocked(now)
	s.Totals.Rejected = b.rejected.Load()
	s.Totals.Successes += b.successes.Load()
	if b.waiting != nil {
		s.Waiting = b.waiting.len
	}
	return s
}

// isAtRest reports whether the state is Closed and nobody waits. It reads no clock: a state that time alone would close stays
// what it was when the breaker was last asked.
func (b *Breaker) isAtRest() bool {
	if b.word.Load()&wordStates > uint64(Recovering) {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.machine.stateAt(b.machine.last) == Closed && !b.someoneWaitsLocked()
}

// isRecovering reports whether time alone may close the circuit.
func (b *Breaker) isRecovering() bool { return b.word.Load()&wordStates == uint64(Recovering) }

// unbind takes the breaker out of its monitor.
func (b *Breaker) unbind() {
	if b.settings.Monitor != nil {
		b.settings.Monitor.unbind(b)
	}
}

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
// ends first. The change is made in any case. It returns at once if ctx comes from inside a callback of any breaker: that
// callback would otherwise wait for itself. The values of ctx reach the observers.
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
	for _, b := range breakers {
		b.mustBeMade()
		b.control(ctx, move)
	}
	for _, b := range breakers {
		b.deliver()
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
func (b *Breaker) control(ctx context.Context, move func(*machine, time.Duration) *transition) {
	now := b.lock(b.elapsed())
	defer b.mu.Unlock()
	b.commitLocked(ctx, move(&b.machine, now), nil)
	b.publishLocked()
}

// elapsed reads the clock. It may be user code: never call it under a lock. The default clock does what is done here without
// the detour of an interface.
func (b *Breaker) elapsed() time.Duration {
	if b.realTime {
		return time.Since(b.made)
	}
	return b.settings.Clock.Since(b.made)
}

// unread stands for a reading of the clock that nothing needed.
const unread = time.Duration(math.MinInt64)

// lock takes the lock and returns the breaker's time for a reading of the clock.
func (b *Breaker) lock(reading time.Duration) (now time.Duration) {
	b.mu.Lock()
	now, ok := b.machine.advance(reading)
	if !ok {
		now = b.lateLocked(reading)
	}
	return now
}

// lockFor is lock for a function that may have to release the lock after a panic: see ownFault.
func (b *Breaker) lockFor(held *bool, reading time.Duration) (now time.Duration) {
	now = b.lock(reading)
	*held = true
	return now
}

func (b *Breaker) unlockFor(held *bool) {
	*held = false
	b.mu.Unlock()
}

// lateLocked returns the time for a reading that is not ahead of the last one. One far behind is either late, because its
// goroutine was held up before it got the lock, or the clock was set back: only a new reading tells.
func (b *Breaker) lateLocked(reading time.Duration) time.Duration {
	if reading == unread || b.realTime { // which cannot be set back
		return b.machine.last
	}
	if b.machine.isSetBack(reading) {
		b.mu.Unlock()
		reading = b.elapsed()
		b.mu.Lock()
	}
	return b.machine.at(reading)
}

// random draws a number in [0, 1). It is user code: never call it under a lock.
func (b *Breaker) random(ctx context.Context) float64 {
	if b.settings.Random == nil {
		return rand.Float64()
	}
	r := rand.Float64() // stands where theirs is no number
	b.guard(ctx, "Random", func() {
		if theirs := b.settings.Random(); theirs == theirs {
			r = theirs
		}
	})
	return min(max(r, 0), math.Nextafter(1, 0))
}

// jittered reports whether a break needs a random number.
func (b *Breaker) jittered() bool { return b.settings.BreakJitter != JitterNone }

// publishLocked writes the word.
func (b *Breaker) publishLocked() {
	w := wordOf(b.machine.state, b.machine.epoch)
	if !b.sampled && b.machine.streak > 0 {
		w |= wordStreak
	}
	if b.machine.flights != nil {
		w |= wordLocked
	}
	b.word.Store(w)
}

// commitLocked makes a transition known: to admission, to those who are refused, to the observers, and to whoever waits. The
// error is the failure that decided it, if any.
func (b *Breaker) commitLocked(ctx context.Context, t *transition, err error) {
	if t == nil {
		return
	}
	m := &b.machine
	switch t.to {
	case Open, Isolated:
		b.refusal.Store(b.newRefusals(t.reason, err))
	case Closed:
		b.refusal.Store(nil)
	}
	b.publishLocked()
	if b.events != nil {
		b.events.push(event{ctx: ctx, epoch: m.epoch, change: &StateChange{
			Name: b.settings.Name, From: t.from, To: t.to, Reason: t.reason, At: b.made.Add(t.at),
			Break: t.breakFor, Opens: t.opens, Counts: t.counts, Err: err,
		}})
	}
	b.wakeLocked()
}

func (b *Breaker) wakeLocked() {
	if b.waiting != nil {
		b.waiting.wake()
	}
}

// someoneWaitsLocked reports whether a caller waits for admission.
func (b *Breaker) someoneWaitsLocked() bool { return b.waiting != nil && b.waiting.len > 0 }

// refuseLocked counts a refusal and returns its error, one for each open period and state.
func (b *Breaker) refuseLocked(now time.Duration) error {
	b.rejected.Add(1)
	r, state := b.refusal.Load(), b.machine.stateAt(now)
	if r.byState[state] == nil {
		r.byState[state] = &RejectedError{Name: b.settings.Name, State: state, Reason: r.reason, Cause: r.cause}
	}
	return r.byState[state]
}

// refuseOpen refuses a call without the lock while the break goes on; nil: the lock must decide. That is right only for a clock
// that cannot be set back, because it keeps no record of the reading.
func (b *Breaker) refuseOpen() error {
	r := b.refusal.Load()
	if r == nil || int64(b.elapsed()) >= r.until.Load() {
		return nil
	}
	b.rejected.Add(1)
	return r.byState[Open]
}

// newRefusals returns the refusals of the period that the machine has begun.
func (b *Breaker) newRefusals(reason Reason, cause error) *refusals {
	r := &refusals{reason: reason, cause: cause, epoch: b.machine.epoch}
	r.until.Store(int64(b.machine.breakEnd()))
	r.byState[Open] = &RejectedError{
		Name: b.settings.Name, State: Open, Reason: reason, Cause: cause,
		retryAfter: func() (time.Duration, bool) { return b.retryAfterIn(r.epoch) },
	}
	return r
}

// settleFast records what nearly every call is, a fast success in Closed, from which nothing can come. It reports false, and has
// done nothing, for any other, which is for settle. A defer would cost too much here: unwinding looks for a panic in it by name.
func (b *Breaker) settleFast(c *call, reading, latency time.Duration) (counted, settled bool) {
	b.mu.Lock()
	now, ok := b.machine.advance(reading)
	if settled = ok && c.ticket.slot == noSlot && !b.machine.maybeSlow(now, latency); settled {
		counted, _ = b.machine.settle(now, &c.ticket, Success, latency, 0)
	}
	b.mu.Unlock()
	return counted, settled
}

// settle records an outcome with its latency at a reading of the clock and delivers what came of it. It reports whether the
// outcome counted.
func (b *Breaker) settle(ctx context.Context, c *call, reading time.Duration, o Outcome, latency time.Duration, err error) (
	counted bool) {
	var r float64
	if o == Transient && b.jittered() {
		r = b.random(ctx)
	}
	held := false
	defer func() {
		if held {
			b.ownFault(ctx, recover())
		}
	}()
	now := b.lockFor(&held, reading)
	if o == Success && b.machine.maybeSlow(now, latency) && b.jittered() && b.machine.slowTrips(now, &c.ticket, latency) {
		b.unlockFor(&held)
		r = b.random(ctx)
		now = b.lockFor(&held, reading)
	}
	counted, change := b.machine.settle(now, &c.ticket, o, latency, r)
	switch {
	case change != nil:
		b.commitLocked(ctx, change, failureOf(change, o, err))
	case c.ticket.slot != noSlot && b.someoneWaitsLocked():
		b.machine.offerAnew(now)
		b.wakeLocked()
	}
	if !b.sampled {
		b.publishLocked() // a streak may have begun or ended, also through a probe that lands in Closed
	}
	b.unlockFor(&held)
	if change != nil {
		b.deliver()
	}
	return counted
}

// failureOf returns the failure that decided a change: the error of an outcome that failed and opened the circuit. A cohort can
// also close on a failure that does not meet its ratio.
func failureOf(t *transition, o Outcome, err error) error {
	if t.to == Open && o == Transient {
		return err
	}
	return nil
}
