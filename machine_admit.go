package breaker

import (
	"math"
	"time"
)

// What a call that asks for admission does to the machine.

// caller is who asks for admission.
type caller uint8

const (
	passing  caller = iota // goes away when it is not admitted
	arriving               // nobody waits, and it will wait when it is not admitted
	first                  // the first of those who wait, asking again
	behind                 // others wait before it
)

// admit asks for admission at now.
func (m *machine) admit(now time.Duration, who caller) (t ticket, ok bool, change *transition) {
	if change = m.judgeFlights(now); change != nil {
		return t, false, change
	}
	switch m.stateAt(now) {
	case Closed:
		if m.state == Recovering {
			change = m.close(now, ReasonRampCompleted)
		}
		return m.ticket(noSlot), true, change
	case Recovering:
		if !m.admitRamp(now, who) {
			return t, false, nil
		}
		m.period.inFlight++
		m.period.admitted = now
		return m.ticket(rampSlot), true, nil
	case HalfOpen:
		return m.admitProbe(now, who)
	default:
		return t, false, nil
	}
}

// admitRamp spends ramp credit. Every call that arrives adds to the credit; the first of those who wait also goes when
// nothing is in flight, so that a ramp with nobody but waiting callers goes on.
func (m *machine) admitRamp(now time.Duration, who caller) bool {
	p := m.period
	if who != first {
		p.ramp.accrue(now)
	}
	if who == behind {
		return false
	}
	if p.ramp.spend() {
		return true
	}
	return who != passing && (p.inFlight == 0 || now >= m.timeoutOf(p.admitted)) && p.ramp.lend()
}

// admitProbe asks for a probe at now, of a machine that is half-open or whose break has elapsed.
func (m *machine) admitProbe(now time.Duration, who caller) (t ticket, ok bool, change *transition) {
	if m.probesLost(now) {
		return t, false, m.open(now, ReasonProbeTimeout)
	}
	if who == behind || m.state == HalfOpen && !m.hasProbeSlot() {
		return t, false, nil
	}
	if m.state == Open {
		change = m.enter(now, HalfOpen, ReasonBreakElapsed)
	}
	return m.ticket(m.period.probes.admit(now)), true, change
}

func (m *machine) ticket(slot uint32) ticket { return ticket{epoch: m.epoch, slot: slot} }

func (m *machine) hasProbeSlot() bool {
	p, inFlight := m.period, len(m.period.probes.flying)
	if cohort := m.rules.ProbeCohort; cohort > 0 {
		return p.counts.Calls+inFlight < cohort
	}
	return inFlight < m.rules.HalfOpenProbes
}

// probesLost reports whether the oldest probe in flight at now has been there for too long.
func (m *machine) probesLost(now time.Duration) bool {
	if m.state != HalfOpen {
		return false
	}
	oldest, ok := m.period.probes.oldest()
	return ok && now >= m.timeoutOf(oldest)
}

// timeoutOf returns when a call admitted at since is as old as the probe time-out.
func (m *machine) timeoutOf(since time.Duration) time.Duration {
	timeout := m.rules.ProbeTimeout
	if timeout == Disabled {
		return math.MaxInt64
	}
	if usual := m.period.usual; m.patience && usual > 0 {
		timeout = max(leastTimeout, scaled(float64(usual), usualMultiple))
	}
	return later(since, timeout)
}

// A probe counts as lost, where that is derived, once it takes so many times longer than usual, and at least so long.
const (
	usualMultiple = 10
	leastTimeout  = time.Second
)

// owesTurn reports whether the calls that have arrived have brought the first of those who wait its credit.
func (m *machine) owesTurn() bool { return m.state == Recovering && m.period.ramp.credit >= 1 }

// nextAsk returns when the first of those who wait should ask again, if nothing else happens before; false if time alone
// changes nothing for it. That may have been before now: time has gone on since it asked.
func (m *machine) nextAsk(now time.Duration) (at time.Duration, ok bool) {
	switch m.state {
	case Open:
		return m.breakEnd(), true
	case HalfOpen:
		oldest, ok := m.period.probes.oldest()
		return m.timeoutOf(oldest), ok
	case Recovering:
		at = m.timeoutOf(m.period.admitted)
		if end := m.period.ramp.end(); end > now || m.stateAt(now) == Closed {
			at = min(at, end)
		}
		return at, true
	default:
		return 0, false
	}
}
