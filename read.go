package breaker

import "time"

// Name returns Settings.Name.
func (b *Breaker) Name() string {
	b.mustBeMade()
	return b.settings.Name
}

// Settings returns the settings with defaults, as [Settings.WithDefaults] gives them.
func (b *Breaker) Settings() Settings {
	b.mustBeMade()
	s := b.settings
	s.Clock = nil
	if settable, ok := b.settings.Clock.(*settable); ok {
		s.Clock = settable.Clock
	}
	return s
}

// State returns the state that the next call would find. It costs one atomic load while the circuit is closed.
func (b *Breaker) State() State {
	b.mustBeMade()
	if b.present().state() == Closed {
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
	return b.time.made.Add(b.machine.period.openedAt), true
}

// RetryAfter returns how long the break still lasts. It is true only while State is Open.
func (b *Breaker) RetryAfter() (time.Duration, bool) {
	b.mustBeMade()
	now := b.lock(b.elapsed())
	defer b.mu.Unlock()
	return b.machine.retryAfter(now)
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
	s.Since = b.time.made.Add(b.machine.sinceAt(now))
	s.OpenedAt, _ = b.openedAtLocked(now)
	s.RetryAfter, _ = b.machine.retryAfter(now)
	if b.machine.state == Closed { // and not one that time has closed: its calls are of before the break
		b.countUnsampledLocked(&s.Counts)
	}
	s.Totals.Rejected = b.rejected.Load()
	s.Totals.Successes += b.successes.Load()
	if b.waiting != nil {
		s.Waiting = b.waiting.len
	}
	return s
}

// evidence returns what Snapshot shows of the tests, for a fraction of its cost.
func (b *Breaker) evidence() (failures, slowness float64) {
	now := b.lock(b.elapsed())
	defer b.mu.Unlock()
	return b.machine.evidence(now)
}

// isAtRest reports whether the state is Closed and nobody waits. It reads no clock: a state that time alone would close stays
// what it was when the breaker was last asked.
func (b *Breaker) isAtRest() bool {
	if b.present().state() > Recovering {
		return false
	}
	now := b.lock(unread)
	defer b.mu.Unlock()
	return b.machine.stateAt(now) == Closed && !b.someoneWaitsLocked()
}
