package model

import (
	"time"

	"github.com/brownout-go/breaker"
)

func (m *Model) countsOverdue() bool {
	s := m.settings
	return s.SlowCalls.Overdue && (s.SlowCallThreshold > 0 || !s.SlowCalls.Off)
}

// overdue counts the calls of this epoch that have been in flight for longer than the slow threshold. A call is taken to have
// started at the end of its tenth of the trip window, so that none counts early.
func (m *Model) overdue() int {
	threshold := m.slowThreshold()
	if !m.countsOverdue() || threshold == 0 {
		return 0
	}
	n, tenth := 0, width(m.settings.Window, 10)
	for _, p := range m.permits {
		started := time.Duration(bucket(p.admitted, m.settings.Window, 10)+1) * tenth
		if !p.unsampled && p.epoch == m.epoch && m.now-started >= threshold {
			n++
		}
	}
	return n
}

// offerClosed admits, unless the circuit opens because calls do not return. That is judged once in each tenth of the window.
func (m *Model) offerClosed(r Reading) *Refusal {
	if !m.countsOverdue() {
		return nil
	}
	m.See(r)
	m.needsTime("an admission")
	tenth := bucket(m.now, m.settings.Window, 10)
	if tenth == m.judged {
		return nil
	}
	m.judged = tenth
	if overdue := m.overdue(); overdue > 0 && m.tooSlow(m.counts(), overdue) {
		m.open(breaker.ReasonOverdueCalls, nil)
		return m.refuse()
	}
	return nil
}

// slowTrip is the trip condition on slow calls, those that have not returned among them.
func (m *Model) slowTrip(c breaker.Counts) breaker.Reason {
	switch {
	case m.tooSlow(c, 0):
		return breaker.ReasonSlowCalls
	case m.tooSlow(c, m.overdue()):
		return breaker.ReasonOverdueCalls
	default:
		return 0
	}
}

func (m *Model) tooSlow(c breaker.Counts, overdue int) bool {
	c.Calls += overdue
	c.Slow += overdue
	return c.Calls >= m.settings.MinCalls && c.SlowRatio() >= m.settings.SlowCallRatio
}
