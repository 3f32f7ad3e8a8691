package model

import (
	"math"
	"time"

	"github.com/brownout-go/breaker"
)

// test is a sequential test on bad calls of one kind. It keeps all that it was told and replays it.
type test struct {
	on       bool
	bad      func(breaker.Counts) int
	multiple float64 // of the normal share is abnormal
	least    float64 // share of bad calls that is worth an open circuit
	every    time.Duration
	prior    float64
	share    float64 // of the limit, that one event can bring
	known    float64 // a share of bad calls that there is at least
	marks    []mark
	numbers  numbers
}

// mark is what a test was told at a time.
type mark struct {
	at     time.Duration
	period int
	bad    int     // calls; 0: a good one
	weight float64 // of each
	most   float64 // that one event can bring
}

// numbers are what a test goes by until they are worked out anew.
type numbers struct {
	bad   float64 // what a bad call adds to the score
	good  float64
	limit float64
	row   int     // bad calls in a row that are as unlikely as the limit
	rate  float64 // calls a second
	until time.Duration
	seen  int // calls in the bucket of the last one
}

func testOfFailures(s breaker.Settings) test {
	f := s.Failures
	return test{on: !f.Off && f.FalseAlarmEvery > 0, bad: func(c breaker.Counts) int { return c.Failures },
		multiple: f.Multiple, least: f.Floor, every: f.FalseAlarmEvery, prior: priorFailures, share: failureShare}
}

func testOfSlowness(s breaker.Settings) test {
	c := s.SlowCalls
	return test{on: !c.Off && c.FalseAlarmEvery > 0, bad: func(c breaker.Counts) int { return c.Slow },
		multiple: slowMultiple, least: s.SlowCallRatio, every: c.FalseAlarmEvery, prior: priorSlow, share: slowShare}
}

// tell tells a test of a call that has ended, and reports whether it gives the alarm.
func (m *Model) tell(t *test, bad bool) bool {
	if bad {
		return m.tellBad(t, 1)
	}
	if t.on && t.replay(m.period).score > 0 {
		t.numbers = m.numbersOf(t)
		t.marks = append(t.marks, mark{at: m.now, period: m.period, weight: t.numbers.good})
	}
	return false
}

// tellBad tells a test of bad calls, and reports whether it gives the alarm: the score has reached the limit, and so have the bad
// calls their share since it was nothing.
func (m *Model) tellBad(t *test, calls int) bool {
	if !t.on {
		return false
	}
	t.numbers = m.numbersOf(t)
	limit := t.numbers.limit
	t.marks = append(t.marks, mark{m.now, m.period, calls, t.numbers.bad, t.share * limit})
	e := t.replay(m.period)
	return e.score >= limit*(1-rounding) && float64(e.bad) >= t.least*float64(e.calls)
}

// evidence is what has come together since the score was last nothing.
type evidence struct {
	score       float64
	calls, bad  int
	event       float64 // what its last slice has brought
	eventBefore float64 // and the slice that ended where that began
	sliceEnd    time.Duration
}

// replay returns the evidence of a period. Time is cut into slices from the first bad call on, and anew after a slice without any.
// What a call may bring is less by what its slice has brought, and by the part of the slice before that is not a slice ago.
func (t *test) replay(period int) (e evidence) {
	of := 0
	for _, k := range t.marks {
		if k.period != of {
			e, of = evidence{sliceEnd: e.sliceEnd}, k.period
		}
		e = e.after(k)
	}
	if of != period {
		return evidence{}
	}
	return e
}

func (e evidence) after(k mark) evidence {
	if k.bad == 0 {
		e.calls++
		if e.score += k.weight; e.score <= 0 {
			return evidence{sliceEnd: e.sliceEnd}
		}
		return e
	}
	switch {
	case k.at >= e.sliceEnd+slice:
		e.sliceEnd, e.event, e.eventBefore = k.at+slice, 0, 0
	case k.at >= e.sliceEnd:
		e.sliceEnd, e.event, e.eventBefore = e.sliceEnd+slice, 0, e.event
	}
	recent := e.event + e.eventBefore*float64(e.sliceEnd-k.at)/float64(slice)
	brings := min(k.weight*float64(k.bad), max(0, k.most-recent))
	e.score, e.event = e.score+brings, e.event+brings
	e.calls, e.bad = e.calls+k.bad, e.bad+k.bad
	return e
}

// numbersOf returns the numbers that a call now is weighed by: those worked out last while they serve.
func (m *Model) numbersOf(t *test) numbers {
	end, seen := m.lastBucket()
	if m.now < t.numbers.until && seen-t.numbers.seen < min(numbersServe, max(priorCalls, t.numbers.seen)) {
		return t.numbers
	}
	n := m.workOut(t)
	n.seen, n.until = seen, min(end, m.now+width(m.baselineWindow(), 10)/4)
	return n
}

// lastBucket returns the end of the bucket of the last call in the baseline, and how many calls are in it.
func (m *Model) lastBucket() (end time.Duration, calls int) {
	last, window := int64(-1), m.baselineWindow()
	for _, o := range m.outcomes {
		if o.gaveUp {
			continue
		}
		if at := bucket(o.at, window, 10); at != last {
			last, calls = at, 0
		}
		calls++
	}
	return time.Duration(last+1) * width(window, 10), calls
}

// workOut tests the share that the baseline allows, on the careful side, against the share that would be a fault. The baseline is
// read without its last two buckets, unless they hold too much of it.
func (m *Model) workOut(t *test) numbers {
	c, covered := m.without(2)
	if all, whole := m.without(0); c.Calls < m.settings.Failures.MinSamples && c.Calls < all.Calls/2 {
		c, covered = all, whole
	}
	n := float64(c.Calls) + priorCalls
	p := max(t.known, (float64(t.bad(c))+priorCalls*t.prior)/n)
	p0 := min(careful, p+2*math.Sqrt(p*(1-p)/n))
	half := (1 + p0) / 2
	p1 := min(half, max(t.least, t.multiple*p0))
	if p1 < 1.5*p0 {
		p1 = half
	}
	streakShare := p0
	if c.Calls < m.settings.Failures.MinSamples {
		streakShare = min(p0, mostUnknown)
	}
	rate := float64(c.Calls) / max(covered, rateOver).Seconds()
	limit := math.Log(max(leastAlarm, rate*t.every.Seconds()))
	return numbers{
		bad: math.Log(p1 / p0), good: math.Log((1 - p1) / (1 - p0)), limit: limit,
		row: int(math.Ceil(limit / math.Log(1/streakShare))), rate: rate,
	}
}

// shareOf is the share of the limit that the score has reached, by the numbers that the next call would find.
func (m *Model) shareOf(t *test) float64 {
	score := t.replay(m.period).score
	if score == 0 {
		return 0
	}
	return min(1, score/m.numbersOf(t).limit)
}

// streakLimit is how many failures in a row open the circuit, 0 for any number. Where it is not written a streak must have lasted.
func (m *Model) streakLimit() int {
	limit := m.settings.ConsecutiveFailures
	if limit == breaker.Disabled {
		return 0
	}
	if !m.unwrittenStreak || !m.failing.on {
		return limit
	}
	if m.now-m.streakBegan() < streakLasts {
		return 0
	}
	limit += int(busyExtra * min(1, m.failing.numbers.rate/busyRate))
	return max(limit, m.failing.numbers.row)
}

// streakBegan is when the first failure of those in a row ended.
func (m *Model) streakBegan() (at time.Duration) {
	inRow := false
	for _, o := range m.outcomes {
		if o.period != m.period || o.gaveUp {
			continue
		}
		if o.failed && !inRow {
			at = o.at
		}
		inRow = o.failed
	}
	return at
}

// shareAbove is the share of the latencies in the window that are above a threshold, and not in the same counter.
func (m *Model) shareAbove(threshold time.Duration) float64 {
	samples, above := m.latencies(), 0
	for _, latency := range samples {
		if threshold > 0 && upperBound(latency) > upperBound(threshold) {
			above++
		}
	}
	if len(samples) == 0 {
		return 0
	}
	return float64(above) / float64(len(samples))
}
