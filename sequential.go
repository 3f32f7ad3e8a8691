package breaker

import (
	"math"
	"time"
)

// sequential is a sequential test on bad calls: failures, or slow ones. It answers two questions at once.
//
// Is it abnormal for this dependency? Page's cumulative sum (E. S. Page, Biometrika 41, 1954), which detects a given shift as fast
// as any test with the same rate of false alarms (G. Lorden, Ann. Math. Statist. 42, 1971; G. V. Moustakides, Ann. Statist. 14,
// 1986). It adds up by how much each outcome is likelier under the share of bad calls of an incident, p1, than under the
// dependency's own, p0, never going below 0, up to a limit. For independent outcomes of which at most p0 are bad, the mean number
// of calls between false alarms is at least e^limit.
//
// Is refusing worth it? An open circuit refuses good calls as well, so the share of bad calls since the score last left 0, which is
// when by Page's estimate the change began, must reach a ratio.
//
// Calls that end together share a cause, and are one event: what a slice of time adds is bounded.
type sequential struct {
	rule testRule

	// The numbers, worked out now and then.
	bad, good float64 // what a bad call adds, ln(p1/p0), and a good one, ln((1 − p1)/(1 − p0)), below 0
	limit     float64
	row       int     // bad calls in a row that are as unlikely as the limit
	rate      float64 // calls a second, as the baseline has it
	least     float64 // the share of bad calls is no less, as something else than the baseline tells
	until     time.Duration
	seen      uint32 // calls in the present bucket of the baseline when they were worked out

	// The evidence.
	score    float64
	calls    uint32        // since the score left 0
	badCalls uint32        // among them
	sliceEnd time.Duration // of the slice that the last bad call fell into
	gained   float64       // in it
	before   float64       // gained in the slice that ended where this one began
}

// testRule is what a sequential test goes by.
type testRule struct {
	multiple float64 // p1 ≥ multiple × p0
	floor    float64 // p1 ≥ floor
	ratio    float64 // of bad calls that makes refusing worth it
	every    float64 // seconds between false alarms
	samples  int     // calls that the lagged baseline needs
	prior    float64 // share of bad calls among those imagined
	share    float64 // of the limit, that one slice can add
	slow     bool    // bad calls are the slow ones, not those that failed
}

const (
	// imagined is how many calls a baseline is taken to have seen before the first, so that this is judged by the same rule.
	imagined = 20
	// slice is how far calls may end apart and still be one event, such as a reset of the connection that they shared.
	slice = 250 * time.Millisecond
	// refreshCalls is how many calls the numbers of a test serve at the most; at first they serve until the calls have doubled.
	refreshCalls = 500
	// leastAlarm is the least number of calls between false alarms, whatever the rate: limits of less are met by chance bursts.
	leastAlarm = 1e6
	// mostUnknown is the most that a share of bad calls is taken for in judging a streak, while little is known.
	mostUnknown = 0.3
	// leastCovered is the least time that a rate is measured over.
	leastCovered = 30 * time.Second
)

// count counts a call, and reports whether it raises the alarm. A nil test counts none.
func (s *sequential) count(now time.Duration, bad bool, baseline *ring) (alarm bool) {
	switch {
	case s == nil:
	case bad:
		return s.fail(now, 1, baseline)
	case s.hasEvidence():
		s.pass(now, baseline)
	}
	return false
}

// hasEvidence reports whether a good call changes anything. It is small enough to be inlined: it is asked for nearly every call.
func (s *sequential) hasEvidence() bool { return s != nil && s.score > 0 }

// fail counts n bad calls at now, and reports whether they raise the alarm. They have entered the baseline, or are in flight still.
func (s *sequential) fail(now time.Duration, n uint32, baseline *ring) (alarm bool) {
	s.refresh(now, baseline)
	gain := min(float64(n)*s.bad, max(0, s.rule.share*s.limit-s.within(now)))
	s.gained += gain
	s.score += gain
	s.calls, s.badCalls = saturated(s.calls, n), saturated(s.badCalls, n)
	return s.score >= s.limit*(1-rounding) && float64(s.badCalls) >= s.rule.ratio*float64(s.calls)
}

// rounding is by how much a sum of parts may miss the whole.
const rounding = 1e-9

// within returns what the last slice of time before now has gained, as far as two slices tell: the one that now falls into, and of the
// one before the part that is not yet a slice ago.
func (s *sequential) within(now time.Duration) float64 {
	if now >= s.sliceEnd+slice {
		s.sliceEnd, s.gained, s.before = now+slice, 0, 0
	} else if now >= s.sliceEnd {
		s.sliceEnd, s.gained, s.before = s.sliceEnd+slice, 0, s.gained
	}
	return s.gained + s.before*float64(s.sliceEnd-now)/float64(slice)
}

// pass counts a good call. Where there is no evidence it changes nothing, and need not be asked.
func (s *sequential) pass(now time.Duration, baseline *ring) {
	s.refresh(now, baseline)
	s.calls = saturated(s.calls, 1)
	if s.score += s.good; s.score <= 0 {
		s.clear()
	}
}

// expect notes that the share of bad calls is at least this, and works the numbers out anew with the next call.
func (s *sequential) expect(least float64) { s.least, s.until = least, 0 }

// streak returns how many failures in a row open the circuit where a number is not written: least, and more the more calls there are,
// because chance brings a row the sooner: five in a row at 30 % come every two minutes at 3 calls/s, and every few seconds at 100.
func (s *sequential) streak(least int) int {
	return max(least+int(busyExtra*min(1, s.rate/busy)), s.row)
}

// From so many calls a second on a streak has so many failures more; fewer in proportion below.
const (
	busy      = 10
	busyExtra = 9
)

// clear forgets the evidence, not the numbers.
func (s *sequential) clear() { s.score, s.calls, s.badCalls, s.gained, s.before = 0, 0, 0, 0, 0 }

// evidence returns the score as a fraction of the limit, in [0, 1], by the numbers that a call at now would find. It changes
// nothing.
func (s *sequential) evidence(now time.Duration, baseline *ring) float64 {
	if s.score == 0 {
		return 0
	}
	found := *s
	found.refresh(now, baseline)
	return min(1, found.score/found.limit)
}

// refresh works the numbers out anew, if they are old. The baseline leaves out its current and its previous bucket, in which an
// incident that has just begun would count as normal, unless that leaves too few samples.
func (s *sequential) refresh(now time.Duration, baseline *ring) {
	present := baseline.buckets[baseline.slot].calls
	if now < s.until && present-s.seen < min(refreshCalls, max(imagined, s.seen)) {
		return
	}
	s.seen, s.until = present, min(baseline.end, now+baseline.width/4)
	c, covered := baseline.readLagged(now, 2)
	if all, whole := baseline.readLagged(now, 0); c.Calls < min(s.rule.samples, all.Calls/2) {
		c, covered = all, whole
	}
	p0, p1 := s.rule.rates(c, s.least)
	s.bad, s.good = math.Log(p1/p0), math.Log((1-p1)/(1-p0))
	s.rate = float64(c.Calls) / max(covered, leastCovered).Seconds()
	s.limit = math.Log(max(leastAlarm, s.rate*s.rule.every))
	s.row = int(math.Ceil(s.limit / -math.Log(s.streakShare(p0, c))))
}

// streakShare returns the share of bad calls by which a streak is judged. Few calls may be all from an incident that the process began
// beside: then no more than mostUnknown is believed.
func (s *sequential) streakShare(p0 float64, c Counts) float64 {
	if c.Calls < s.rule.samples {
		return min(p0, mostUnknown)
	}
	return p0
}

// rates returns the share p0 of bad calls that the baseline allows for, two standard errors on the careful side, and the share p1
// of the incident that the test looks for.
func (r *testRule) rates(c Counts, least float64) (p0, p1 float64) {
	n := float64(c.Calls) + imagined
	bad := c.Failures
	if r.slow {
		bad = c.Slow
	}
	p := max(least, (float64(bad)+imagined*r.prior)/n)
	p0 = min(0.95, p+2*math.Sqrt(p*(1-p)/n))
	halfway := (1 + p0) / 2
	if p1 = min(halfway, max(r.floor, r.multiple*p0)); p1 < 1.5*p0 {
		p1 = halfway
	}
	return p0, p1
}

// saturated returns a + b, or the largest number.
func saturated(a, b uint32) uint32 {
	if a > math.MaxUint32-b {
		return math.MaxUint32
	}
	return a + b
}
