package protect

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Regret is what a run cost, against an oracle that knows the fate of each call before it is admitted. The oracle admits the
// good calls and refuses the bad ones, and regrets nothing.
//
// The fate of a call is drawn from the seed when it is offered, whether it is then admitted or not:
//
//   - moot: its own caller ends it before it would have ended and before it would have been slow. What becomes of it says nothing
//     about the dependency, and it costs nothing either way.
//   - bad: it fails, or takes longer than the caller's standard, which is three times the dependency's p99 in health.
//   - good: all others.
//
// A good call refused costs 1. A bad call admitted costs 1 + the seconds it was held / the dependency's p99 in seconds, so a
// failure at once costs 1 and a hang of a minute costs thousands. A good call admitted and a bad one refused cost nothing.
//
// What its own process does to a call while it stands still is no part of its fate: the dependency had answered in time.
//
// Where the capacity is limited, fates depend on what else was admitted. There, calls that were admitted are bad as they ended.
// Every call refused before the incident was good; from then on the good calls refused are what the oracle of the capacity serves at
// the same seed, less what the entry served, and at most all that it refused.
type Regret struct {
	Offered     int
	GoodRefused float64
	BadAdmitted float64 // the sum of 1 + held / p99
	// Stake is all that could have been regretted: every good call refused and every bad call admitted and held to its end. In a
	// closed loop the offered calls, and so the stake, depend on the entry.
	Stake float64
}

// Total is the regret.
func (r Regret) Total() float64 { return r.GoodRefused + r.BadAdmitted }

// PerCall is the regret of each call that was offered, on average.
func (r Regret) PerCall() float64 { return r.Total() / float64(max(1, r.Offered)) }

// Share is the regret as a share of the stake: 0 for the oracle, 1 for whoever does everything wrong. It gives each scenario
// the same weight.
func (r Regret) Share() float64 {
	if r.Stake == 0 {
		return 0
	}
	return r.Total() / r.Stake
}

// fate is what would become of a call.
type fate uint8

const (
	good fate = iota
	bad
	moot
)

// fateOf tells the fate of a planned call whose caller is gone after leaves.
func fateOf(c plan, leaves, standard time.Duration) fate {
	switch {
	case leaves < min(c.latency, standard):
		return moot
	case c.fails || c.latency > standard:
		return bad
	default:
		return good
	}
}

// slowStandard is how many times the healthy p99 a caller waits before a call is bad.
const slowStandard = 3

// cost is that of a bad call that was held for a while.
func (r *Record) cost(held time.Duration) float64 { return 1 + held.Seconds()/r.p99.Seconds() }

// regretted adds one call.
func (r *Record) regretted(o outcome) {
	g := &r.Regret
	g.Offered++
	if r.scenario.Oracle {
		r.regrettedUnderLoad(o)
		return
	}
	switch {
	case o.fate == good:
		g.Stake++
		g.GoodRefused += float64(count(!o.admitted))
	case o.fate == bad:
		g.Stake += r.cost(o.whole)
		if o.admitted {
			g.BadAdmitted += r.cost(o.took)
		}
	}
}

// regrettedUnderLoad adds a call whose fate depends on the load: as it ended.
func (r *Record) regrettedUnderLoad(o outcome) {
	healthy := o.at < r.scenario.incident().After
	switch wrong := o.failed || o.took > slowStandard*r.p99; {
	case o.admitted && wrong:
		r.Regret.BadAdmitted += r.cost(o.took)
	case healthy:
		r.Regret.GoodRefused += float64(count(!o.admitted))
		r.Regret.Stake++
	case o.admitted:
		r.served++
	default:
		r.turnedAway++
	}
}

// against settles the regret of a run under limited capacity with that of the oracle at the same seed.
func (r *Record) against(oracle *Record) {
	missed := max(0, oracle.served-r.served)
	r.Regret.GoodRefused += float64(min(r.turnedAway, missed))
	r.Regret.Stake += float64(max(oracle.served, r.served)) + r.Regret.BadAdmitted
}

// healthyP99 is the 99th percentile of the dependency's latency over the length of a scenario, without its incidents.
func healthyP99(l Latency, length time.Duration) time.Duration {
	const draws = 10_000
	r := rand.New(rand.NewPCG(99, 0))
	all := make([]time.Duration, draws)
	for i := range all {
		all[i] = l(r, length*time.Duration(i)/draws)
	}
	slices.Sort(all)
	return all[draws*99/100]
}

// medianRegret is the run in the middle, by its total.
func medianRegret(runs []Regret) Regret {
	sorted := slices.SortedStableFunc(slices.Values(runs), func(a, b Regret) int {
		return count(a.Total() > b.Total()) - count(a.Total() < b.Total())
	})
	return sorted[len(sorted)/2]
}
