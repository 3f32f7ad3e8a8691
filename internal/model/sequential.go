package model

import (
	"math"
	"time"

	"github.com/brownout-go/breaker"
)

// refreshEvery is how many outcomes of a closed circuit the numbers of the sequential test serve at most.
const refreshEvery = 500

// numbers are what the sequential test goes by until they are worked out anew.
type numbers struct {
	armed   bool
	failure float64 // what one adds to the score
	success float64
	limit   float64
	streak  int   // the limit for consecutive failures, where none is written
	bucket  int64 // of the failure baseline, in which they were worked out
	served  int   // outcomes since then
}

func (m *Model) sequential() bool {
	return !m.settings.Failures.Off && m.settings.Failures.FalseAlarmEvery > 0
}

// weigh gives the call just listed its part in the score of the sequential test.
func (m *Model) weigh() {
	if !m.sequential() {
		return
	}
	m.numbers.served++
	current := bucket(m.now, m.settings.Failures.Window, 10)
	if !m.numbers.armed || m.numbers.bucket != current || m.numbers.served == refreshEvery {
		m.numbers = m.workOut(current)
	}
	last := &m.outcomes[len(m.outcomes)-1]
	last.weighed, last.weight = m.numbers.armed, m.numbers.success
	if last.failed {
		last.weight = m.numbers.failure
	}
}

// workOut tests the rate that the baseline allows, on the careful side, against the rate that would be a fault.
func (m *Model) workOut(current int64) numbers {
	f := m.settings.Failures
	c, covered := m.lagged(current)
	if c.Calls < f.MinSamples {
		return numbers{bucket: current}
	}
	n := float64(c.Calls)
	p := (float64(c.Failures) + 0.5) / (n + 1)
	p0 := min(0.95, p+2*math.Sqrt(p*(1-p)/(n+1)))
	half := (1 + p0) / 2
	p1 := min(half, max(f.Floor, f.Multiple*p0))
	if p1 < 1.5*p0 {
		p1 = half
	}
	rate := n / max(covered, time.Millisecond).Seconds()
	limit := math.Log(max(100, rate*f.FalseAlarmEvery.Seconds()))
	return numbers{
		armed: true, failure: math.Log(p1 / p0), success: math.Log((1 - p1) / (1 - p0)), limit: limit,
		streak: max(5, int(math.Ceil(limit/math.Log(1/p0)))), bucket: current,
	}
}

// lagged counts the baseline without its current and its previous bucket, or all of it while that is too little, and returns
// the time that those buckets cover.
func (m *Model) lagged(current int64) (breaker.Counts, time.Duration) {
	oldest := max(0, current-9)
	c, covered := m.between(oldest, current-2)
	if c.Calls < m.settings.Failures.MinSamples {
		return m.between(oldest, current)
	}
	return c, covered
}

func (m *Model) between(oldest, newest int64) (breaker.Counts, time.Duration) {
	var c breaker.Counts
	window := m.settings.Failures.Window
	for _, o := range m.outcomes {
		if at := bucket(o.at, window, 10); oldest <= at && at <= newest && !o.gaveUp {
			c = counted(c, o)
		}
	}
	w := width(window, 10)
	return c, min(m.now, time.Duration(newest+1)*w) - time.Duration(oldest)*w
}

// score replays the outcomes of the period. One that the test was not armed for starts it afresh.
func (m *Model) score() float64 {
	score := 0.0
	for _, o := range m.outcomes {
		switch {
		case o.period != m.period || o.gaveUp:
		case !o.weighed:
			score = 0
		default:
			score = max(0, score+o.weight)
		}
	}
	return score
}

// evidenceOfFailure is the share of the limit that the score has reached, by the numbers that the next call would find.
func (m *Model) evidenceOfFailure() float64 {
	now := m.numbers
	if current := bucket(m.now, m.settings.Failures.Window, 10); now.bucket != current {
		now = m.workOut(current)
	}
	if !m.sequential() || !now.armed {
		return 0
	}
	return min(1, m.score()/now.limit)
}

// alarmed judges a failure by the sequential test.
func (m *Model) alarmed() bool {
	return m.sequential() && m.numbers.armed && m.score() >= m.numbers.limit
}

// streakLimit is how many failures in a row open the circuit, 0 for any number.
func (m *Model) streakLimit() int {
	switch limit := m.settings.ConsecutiveFailures; {
	case limit == breaker.Disabled:
		return 0
	case m.unwrittenStreak && m.numbers.armed:
		return m.numbers.streak
	default:
		return limit
	}
}
