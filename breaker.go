package breaker

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
	"weak"
)

// Breaker is a circuit breaker for one dependency. Make it with [New], share it between all calls to that dependency, and
// send them through [Breaker.Execute], the functions [Execute] and [ExecuteClassified], or a [Permit]. It is safe for concurrent
// use, starts no goroutine of its own and needs no closing. A zero Breaker panics.
type Breaker struct {
	// Written by New alone, but for the first three, which change with the state. They come first and the settings after them,
	// so that admission in Closed reads no cache line that a finished call writes.
	word     atomic.Uint64            // a word
	refusal  atomic.Pointer[refusals] // nil while Closed; written under mu
	flights  atomic.Pointer[flights]  // of the machine; written under mu
	events   *eventQueue              // nil: nobody observes
	realTime bool                     // the clock is the default one
	timed    bool                     // latency is measured
	sampled  bool                     // a success is more than the end of a streak
	settings Settings                 // with defaults, and a clock that the timeline can be read from

	rejected  atomic.Uint64 // calls refused
	successes atomic.Uint64 // successes that were recorded without the lock since the circuit closed
	time      timeline

	mu      sync.Mutex // protects following fields
	machine machine
	waiting *waitQueue // nil until somebody waits
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

// present returns the word.
func (b *Breaker) present() word { return word(b.word.Load()) }

// publishLocked writes the word.
func (b *Breaker) publishLocked() {
	w := wordOf(b.machine.state, b.machine.epoch)
	if !b.sampled && b.machine.hasStreak() {
		w |= wordStreak
	}
	b.word.Store(uint64(w))
	b.flights.Store(b.machine.flights)
}

// lock takes the lock and returns the time for an operation that has asked for it.
func (b *Breaker) lock(asked time.Duration) (now time.Duration) {
	b.mu.Lock()
	return b.time.at(asked)
}

// tenant is what a monitor holds of the breaker.
func (b *Breaker) tenant() tenant { return weakly[Breaker]{weak.Make(b)} }

// unbind takes the breaker out of its monitor.
func (b *Breaker) unbind() {
	if b.settings.Monitor != nil {
		b.settings.Monitor.unbind(b.tenant())
	}
}
