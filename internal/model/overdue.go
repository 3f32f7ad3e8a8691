package model

import (
	"math/bits"
	"slices"
	"time"

	"github.com/brownout-go/breaker"
)

// watch is the calls in flight that are looked at for being overdue. Time is cut into slots, and a call is taken to have begun at
// the end of its slot, so that none counts early. It is looked at once in each slot.
type watch struct {
	slot  time.Duration // how wide
	due   time.Duration // when the calls are looked at next
	calls []*Permit
}

// slotFor is the width of the slots for a threshold: the widest power of two nanoseconds within a tenth of it, but about a millisecond
// at the least.
func slotFor(threshold time.Duration) time.Duration {
	tenth := uint64(threshold / overdueTenth)
	return max(narrowest, time.Duration(1)<<max(0, bits.Len64(tenth)-1))
}

// suits reports whether the slots are narrow enough for a threshold, and wide enough.
func (w *watch) suits(threshold time.Duration) bool {
	narrow := w.slot == narrowest || w.slot <= threshold/overdueTenth
	return narrow && threshold/w.slot < overdueSlots
}

// endOf is the end of the slot of a time.
func (w *watch) endOf(at time.Duration) time.Duration { return (at/w.slot + 1) * w.slot }

// watchAnew looks at other calls from now on, if the threshold asks for other slots.
func (m *Model) watchAnew() {
	switch {
	case m.settings.SlowCalls.EndedOnly || m.limit == 0:
		m.watch = nil
	case m.watch == nil || !m.watch.suits(m.limit):
		m.watch = &watch{slot: slotFor(m.limit), due: m.now}
	}
}

// watchCall looks at a call that begins, unless it is time to look at those before it.
func (m *Model) watchCall(p *Permit) {
	if w := m.watch; w != nil && p.start < w.due {
		w.calls = append(w.calls, p)
	}
}

func (m *Model) unwatchCall(p *Permit) {
	if w := m.watch; w != nil {
		w.calls = slices.DeleteFunc(w.calls, func(q *Permit) bool { return q == p })
	}
}

func (m *Model) lookDue() bool { return m.watch != nil && m.now >= m.watch.due }

// look returns how many calls have crossed the threshold since they were looked at last; none while that is not due.
func (m *Model) look() (calls int) {
	if !m.lookDue() {
		return 0
	}
	w := m.watch
	w.due = w.endOf(m.now)
	for _, p := range w.calls {
		if !p.crossed && m.now-w.endOf(p.start) >= m.limit {
			p.crossed = true
			calls++
		}
	}
	return calls
}

// lookAtFlights tells the test on slow calls of those that have crossed the threshold, and reports whether it gives the alarm.
func (m *Model) lookAtFlights() bool {
	calls := m.look()
	return calls > 0 && m.tellBad(&m.slowing, calls)
}

// rampOverdue tells a ramp by evidence alone that calls have crossed the threshold, as one of them, and reports whether it is over.
func (m *Model) rampOverdue() bool {
	return m.look() > 0 && m.settings.Recovery.Fraction == 0 && m.land(m.now-m.limit, true)
}

// overdue counts the calls in flight that have crossed the threshold.
func (m *Model) overdue() (calls int) {
	for _, p := range m.watch.calls {
		if p.crossed {
			calls++
		}
	}
	return calls
}

// offerClosed admits, unless the circuit opens because calls do not return.
func (m *Model) offerClosed(r Reading) *Refusal {
	if m.watch == nil {
		return nil
	}
	m.See(r)
	m.needsTime("an admission")
	if !m.lookDue() {
		return nil
	}
	if reason := m.overdueTrip(m.lookAtFlights()); reason != 0 {
		m.open(reason, nil)
		return m.refuse()
	}
	return nil
}

// overdueTrip is the trip condition on calls that have not returned: the alarm of the test, or without one the ratio.
func (m *Model) overdueTrip(alarm bool) breaker.Reason {
	if alarm {
		return breaker.ReasonOverdueCalls
	}
	if m.watch == nil || m.slowing.on {
		return 0
	}
	overdue, c := m.overdue(), m.counts()
	c.Calls += overdue
	c.Slow += overdue
	if overdue > 0 && c.Calls >= m.settings.MinCalls && c.SlowRatio() >= m.settings.SlowCallRatio {
		return breaker.ReasonOverdueCalls
	}
	return 0
}
