package breaker

import (
	"math"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/benbjohnson/clock"
)

// timeline turns readings of a clock into the breaker's time: how long ago the breaker was made. That time never goes back,
// whatever the clock does, and nothing else corrects it.
//
// A clock that is set back, or leaps by more than a year, gets a new base, from which time goes on. Whether it was set back only
// one reading can tell by itself: it lies behind a time that had been given out before the clock was asked. A reading that is
// merely late, because others overtook it, lies behind a time that was given out later, and proves nothing.
//
// The default clock can do none of this, so it is read as it is.
type timeline struct {
	made time.Time // by the clock

	// The breaker's lock protects the following field.
	last time.Duration // the latest time that an operation had
}

// settable is a Clock that may do anything.
type settable struct {
	Clock
	base atomic.Pointer[origin]
	high atomic.Int64 // the latest time given out
}

// origin is where a clock is read from: at that moment, the time was offset.
type origin struct {
	at     time.Time
	offset time.Duration
}

const (
	// setBack is how far a reading may lie behind a time given out before and still count as that time.
	setBack = time.Second
	// leap is the longest step that is taken for the passing of time. A longer one takes half of the time that is left.
	leap = 365 * 24 * time.Hour
	// endOfTime is some 73 years after the breaker was made: no leap goes beyond it, and no sum overflows before it.
	endOfTime = time.Duration(1) << 61
	// unread stands for a reading of the clock that nothing needed.
	unread = time.Duration(math.MinInt64)
)

// start begins the breaker's time, and returns the clock to read it from. A nil clock is the default one.
func (t *timeline) start(c Clock) Clock {
	if c == nil {
		c = clock.New()
		t.made = c.Now()
		return c
	}
	t.made = c.Now()
	s := &settable{Clock: c}
	s.base.Store(&origin{at: t.made})
	return s
}

// ask returns the time by a clock that is not the default one. It is user code: never call it under a lock. A clock that panics
// gives the time of the reading before, and the failure.
func (s *settable) ask() (now time.Duration, failure *CallbackError) {
	defer func() {
		if p := recover(); p != nil {
			now = time.Duration(s.high.Load())
			failure = &CallbackError{Callback: "Clock", Panic: p, Stack: debug.Stack()}
		}
	}()
	from := s.base.Load() // before high, and both before the clock: see the comment of timeline
	before := time.Duration(s.high.Load())
	return s.give(s.correct(from, before, s.Clock.Since(from.at))), nil
}

// correct returns the time of a reading that was asked for when the base was from and before was the latest time given out.
func (s *settable) correct(from *origin, before, since time.Duration) time.Duration {
	now := later(since, from.offset)
	switch {
	case now < before-setBack:
		now = before
	case now-before > leap:
		now = before + max(0, min(now-before, (endOfTime-before)/2))
	default:
		return max(now, before)
	}
	if !s.base.CompareAndSwap(from, &origin{at: s.Clock.Now(), offset: now}) {
		return before // somebody else has seen it, and time goes on from there
	}
	return now
}

// give notes that a time is given out, and returns the latest of all.
func (s *settable) give(now time.Duration) time.Duration {
	for {
		high := s.high.Load()
		if int64(now) <= high {
			return time.Duration(high)
		}
		if s.high.CompareAndSwap(high, int64(now)) {
			return now
		}
	}
}

// at returns the time for an operation that asked for it before it got the breaker's lock, which it holds now: one that was
// overtaken meanwhile has the time of the last.
func (t *timeline) at(asked time.Duration) time.Duration {
	t.last = max(t.last, asked)
	return t.last
}
