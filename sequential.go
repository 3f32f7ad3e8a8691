package breaker

import (
	"math"
	"time"
)

// sequential is a sequential test on failures: Page's cumulative sum (E. S. Page, Biometrika 41, 1954), which detects a given
// shift as fast as any test with the same rate of false alarms (G. Lorden, Ann. Math. Statist. 42, 1971; G. V. Moustakides, Ann.
// Statist. 14, 1986). It adds up by how much each outcome is likelier under the failure rate of an incident, p1, than under
// the dependency's own, p0, never going below 0, and alarms at a limit. For independent outcomes with a failure rate of at most
// p0, the mean number of calls between false alarms is at least e^limit.
type sequential struct {
	samples   int     // outcomes that the baseline needs
	multiple  float64 // p1 ≥ multiple × p0
	floor     float64 // p1 ≥ floor
	every     float64 // seconds between false alarms
	raises    bool    // the limit of a failure streak, if armed
	armed     bool
	failure   float64 // what a failure adds, ln(p1/p0)
	success   float64 // what a success adds, ln((1 − p1)/(1 − p0)), below 0
	limit     float64
	streak    int // failures in a row that are as unlikely as the limit
	score     float64
	remaining int           // outcomes until the numbers are worked out anew
	until     time.Duration // end of the baseline bucket they were worked out in
}

// refreshOutcomes is how many outcomes the numbers of a sequential test serve at the most.
const refreshOutcomes = 500

func newSequential(f Failures) *sequential {
	return &sequential{
		samples: f.MinSamples, multiple: f.Multiple, floor: f.Floor, every: f.FalseAlarmEvery.Seconds(),
	}
}

// record counts one outcome at now, which has entered the baseline, and reports whether it raises the alarm.
func (s *sequential) record(now time.Duration, failed bool, baseline *ring) (alarm bool) {
	if s.remaining--; s.remaining < 0 || now >= s.until || !s.armed {
		s.refresh(now, baseline)
	}
	if !s.armed {
		return false
	}
	if !failed {
		s.score = max(0, s.score+s.success)
		return false
	}
	s.score += s.failure
	return s.score >= s.limit
}

// clear forgets the evidence, not the numbers.
func (s *sequential) clear() { s.score = 0 }

// raisesStreak reports whether the limit of a failure streak rises with the measured failure rate.
func (s *sequential) raisesStreak() bool { return s.raises && s.armed }

// evidence returns the score as a fraction of the limit, in [0, 1], by the numbers that an outcome at now would find. It changes
// nothing.
func (s *sequential) evidence(now time.Duration, baseline *ring) float64 {
	found := *s
	if now >= found.until {
		found.refresh(now, baseline)
	}
	if !found.armed {
		return 0
	}
	return min(1, found.score/found.limit)
}

// refresh works the numbers out anew. The baseline leaves out its current and its previous bucket, in which an incident that
// has just begun would count as normal, unless that leaves too few samples.
func (s *sequential) refresh(now time.Duration, baseline *ring) {
	s.remaining, s.until = refreshOutcomes-1, baseline.end
	c, covered := baseline.readLagged(now, 2)
	if c.Calls < s.samples {
		c, covered = baseline.readLagged(now, 0)
	}
	if s.armed = c.Calls >= s.samples; !s.armed {
		s.score = 0
		return
	}
	p0, p1 := s.rates(c)
	s.failure, s.success = math.Log(p1/p0), math.Log((1-p1)/(1-p0))
	rate := float64(c.Calls) / max(covered, time.Millisecond).Seconds()
	s.limit = math.Log(max(100, rate*s.every))
	s.streak = int(math.Ceil(s.limit / -math.Log(p0)))
}

// rates returns the failure rate p0 that the baseline allows for, two standard errors on the careful side, and the rate p1 of the
// incident that the test looks for.
func (s *sequential) rates(c Counts) (p0, p1 float64) {
	n := float64(c.Calls) + 1
	p := (float64(c.Failures) + 0.5) / n
	p0 = min(0.95, p+2*math.Sqrt(p*(1-p)/n))
	halfway := (1 + p0) / 2
	if p1 = min(halfway, max(s.floor, s.multiple*p0)); p1 < 1.5*p0 {
		p1 = halfway
	}
	return p0, p1
}
