package protect

import (
	"slices"
	"sync"
	"time"
)

// Second is what became of the calls that were made in one second.
type Second struct {
	Offered, Admitted, Succeeded int
	Late                         int // admitted ones that took longer than a second
	Good, GoodRefused            int // calls that the dependency would have served, and those of them that were refused
}

// Refused is how many calls the breaker refused.
func (s Second) Refused() int { return s.Offered - s.Admitted }

// Record is what happened in one run. Times count from the start of the load.
type Record struct {
	scenario Scenario
	sheds    bool          // the entry has no open state
	p99      time.Duration // of the dependency in health
	Peak     int           // of calls in the dependency at once

	mu                 sync.Mutex // protects the following fields
	Seconds            []Second
	Opens              []time.Duration // when a breaker that was closed was found not to be
	Closes             []time.Duration
	Probes             []time.Duration // admitted by a breaker that was open or half-open
	refused            []time.Duration // one time a second at most: of its last refusal
	Regret             Regret
	served, turnedAway int // under limited capacity: calls served in time, and refused
}

type outcome struct {
	at, took                      time.Duration
	whole                         time.Duration // how long it would have been held
	fate                          fate
	admitted, probe, failed, good bool
}

func newRecord(s Scenario, sheds bool) *Record {
	return &Record{scenario: s, sheds: sheds, p99: healthyP99(s.Dependency.Latency, s.Length), Seconds: make([]Second, s.Length/time.Second+1)}
}

func (r *Record) add(o outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.Seconds[o.at/time.Second]
	s.Offered++
	s.Admitted += count(o.admitted)
	s.Succeeded += count(o.admitted && !o.failed)
	s.Late += count(o.admitted && o.took > time.Second)
	s.Good += count(o.good)
	s.GoodRefused += count(o.good && !o.admitted)
	r.regretted(o)
	if o.probe {
		r.Probes = append(r.Probes, o.at)
	}
	if !o.admitted {
		r.noteRefusal(o.at)
	}
}

// noteRefusal keeps the last refusal of each second.
func (r *Record) noteRefusal(at time.Duration) {
	if n := len(r.refused); n > 0 && r.refused[n-1]/time.Second == at/time.Second {
		r.refused[n-1] = max(r.refused[n-1], at)
		return
	}
	r.refused = append(r.refused, at)
}

func (r *Record) change(at time.Duration, closed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if closed {
		r.Closes = append(r.Closes, at)
	} else {
		r.Opens = append(r.Opens, at)
	}
}

// sum adds up a number of the seconds from from to to.
func (r *Record) sum(from, to time.Duration, number func(Second) int) float64 {
	total := 0
	for _, s := range r.Seconds[min(int(from/time.Second), len(r.Seconds)):min(int(to/time.Second), len(r.Seconds))] {
		total += number(s)
	}
	return float64(total)
}

// firstOpen returns the first open in the incident. It is not fair if a breaker was open in the minute before it.
func (r *Record) firstOpen(i Incident) (after time.Duration, opened, fair bool) {
	fair = len(r.Opens) == 0 || r.closedSince(i.After) >= time.Minute
	for _, at := range r.Opens {
		if i.covers(at) {
			return at - i.After, true, fair
		}
	}
	return 0, false, fair
}

// closedSince returns for how long all breakers had been closed at a time.
func (r *Record) closedSince(at time.Duration) time.Duration {
	last, open := time.Duration(0), 0
	for _, t := range r.Opens {
		open += count(t < at)
	}
	for _, t := range r.Closes {
		if t < at {
			open--
			last = max(last, t)
		}
	}
	if open > 0 {
		return 0
	}
	return at - last
}

// lastRefusal returns when the last call was refused, counted from from; 0 if none was after it.
func (r *Record) lastRefusal(from time.Duration) time.Duration {
	if n := len(r.refused); n > 0 {
		return max(0, slices.Max(r.refused)-from)
	}
	return 0
}

// worstSecond returns the most of the times that fall into one sliding second.
func worstSecond(times []time.Duration) int {
	sorted := slices.Sorted(slices.Values(times))
	worst, first := 0, 0
	for i, at := range sorted {
		for at-sorted[first] >= time.Second {
			first++
		}
		worst = max(worst, i-first+1)
	}
	return worst
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}
