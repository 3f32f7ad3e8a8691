package ledger

import (
	"cmp"
	"slices"
	"time"

	"github.com/brownout-go/breaker"
)

// Row is what the breakers of one name show together.
type Row struct {
	Name   string
	Gauges Gauges         // zero if the breakers are gone, and only the counters are left
	Totals breaker.Totals // of all breakers that had the name
	Moves  []Moves        // in order
}

// Gauges are the figures that go up and down. Of several breakers they are the worst, or the sum where that has a meaning.
type Gauges struct {
	Breakers          int           // that have the name; 0: nothing else holds
	State             breaker.State // the worst
	NormalLatency     time.Duration // the longest; 0: unknown
	SlowThreshold     time.Duration // the shortest in force; 0: none
	NormalFailureRate *float64      // the highest; nil: unknown
	TripRatio         float64       // the lowest in force; 0: none
	Evidence          float64       // the most
	AdmittedFraction  float64       // the least
	Waiting           int           // the sum
	ProbesInFlight    int           // the sum
	RetryAfter        time.Duration // the longest; 0 unless one is Open
}

// Move is a kind of change of state.
type Move struct {
	From, To breaker.State
	Reason   breaker.Reason
}

// Moves is how often a change of one kind happened.
type Moves struct {
	Move
	Count uint64
}

// add takes one breaker into the figures.
func (g *Gauges) add(s breaker.Snapshot) {
	g.AdmittedFraction = firstOrMin(g.Breakers, g.AdmittedFraction, s.AdmittedFraction)
	g.Breakers++
	g.State = max(g.State, s.State)
	g.NormalLatency = max(g.NormalLatency, s.NormalLatency)
	g.SlowThreshold = minInForce(g.SlowThreshold, s.SlowThreshold)
	g.TripRatio = minInForce(g.TripRatio, s.TripRatio)
	g.Evidence = max(g.Evidence, s.Evidence)
	g.Waiting += s.Waiting
	g.ProbesInFlight += s.ProbesInFlight
	g.RetryAfter = max(g.RetryAfter, s.RetryAfter)
	if rate := s.NormalFailureRate; rate != nil && (g.NormalFailureRate == nil || *rate > *g.NormalFailureRate) {
		g.NormalFailureRate = rate
	}
}

// firstOrMin returns the smaller of two, and the second if there was none before.
func firstOrMin(before int, a, b float64) float64 {
	if before == 0 {
		return b
	}
	return min(a, b)
}

// minInForce returns the smaller of two limits, 0 being none.
func minInForce[T time.Duration | float64](a, b T) T {
	if a == 0 || b == 0 {
		return a + b
	}
	return min(a, b)
}

// addSince adds to sum what a breaker has counted since it was last seen.
func addSince(sum *breaker.Totals, last, now breaker.Totals) {
	add := func(sum *uint64, last, now uint64) { *sum += max(last, now) - last }
	add(&sum.Successes, last.Successes, now.Successes)
	add(&sum.Transient, last.Transient, now.Transient)
	add(&sum.Throttled, last.Throttled, now.Throttled)
	add(&sum.Permanent, last.Permanent, now.Permanent)
	add(&sum.Ignored, last.Ignored, now.Ignored)
	add(&sum.Slow, last.Slow, now.Slow)
	add(&sum.Discarded, last.Discarded, now.Discarded)
	add(&sum.Rejected, last.Rejected, now.Rejected)
	add(&sum.Opens, last.Opens, now.Opens)
}

func (a *account) sortedMoves() []Moves {
	moves := make([]Moves, 0, len(a.moves))
	for m, count := range a.moves {
		moves = append(moves, Moves{m, count})
	}
	slices.SortFunc(moves, func(m, o Moves) int {
		return cmp.Or(cmp.Compare(m.From, o.From), cmp.Compare(m.To, o.To), cmp.Compare(m.Reason, o.Reason))
	})
	return moves
}

func compareRows(r, o Row) int { return cmp.Compare(r.Name, o.Name) }
