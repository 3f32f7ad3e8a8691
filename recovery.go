package breaker

import (
	"cmp"
	"math"
	"time"
)

// Recovery is how a circuit goes from half-open to closed: along a ramp, which does not hand the whole load back at once.
//
// The zero value is a ramp by evidence alone. The admitted fraction starts at Initial and doubles every 100 ms, or every three normal
// latencies if that is longer. A call that fails, is slow or is overdue cuts it to 35 % and doubles the doubling time, up to 2 s; but
// only if it began after the last such cut, because calls from before say nothing about after: slow start and multiplicative
// decrease, once per round trip (V. Jacobson, Congestion Avoidance and Control, SIGCOMM 1988). A share of bad calls that there is
// even at the initial fraction is borne up to one and a half times, because less load does not cure it. No single failure re-opens
// the circuit: the test on failures does, or three cuts in a row at the initial fraction.
//
// With a Fraction the admitted fraction is the smaller of two, and one failure re-opens the circuit:
//
//   - the clock's: Initial + (1 − Initial) × elapsed / length, and 1 at the end;
//   - the evidence's: 1 at the start; a slow call sets it to half of the admitted fraction, at least Initial and 1/1024; every
//     Settings.ProbeSuccesses fast calls in a row add Initial, or 1/1024 if that is more.
//
// The clock alone would push on while the dependency struggles; the evidence alone would let a fast dependency have
// everything at once.
type Recovery struct {
	// Fraction is the length of the ramp as a fraction of the break just served, positive and finite; 0: by evidence alone.
	Fraction float64
	// Initial is the admitted fraction at the start, in (0, 1); 0: 0.05. The evidence moves by 1/1024 at least.
	Initial float64
	// Min is the shortest ramp with a Fraction; 0: 1 s, or Max if that is shorter.
	Min time.Duration
	// Max is the longest ramp with a Fraction; 0: 30 s, or Min if that is longer.
	Max time.Duration
	// Off hands the whole load back at once.
	Off bool
}

// RampFor returns the length of the ramp after a break: Fraction × breakServed, within Min and Max. It is 0 without a Fraction.
func (r Recovery) RampFor(breakServed time.Duration) time.Duration {
	if r.Off || !(r.Fraction > 0) {
		return 0
	}
	r = r.withDefaults()
	return min(max(scaled(float64(breakServed), r.Fraction), r.Min), r.Max)
}

func (r Recovery) withDefaults() Recovery {
	if r.Off {
		return r
	}
	r.Initial = cmp.Or(r.Initial, 0.05)
	if r.Fraction == 0 {
		return r
	}
	unwrittenMax := r.Max == 0
	if r.Min == 0 {
		r.Min = time.Second
		if !unwrittenMax {
			r.Min = min(r.Min, r.Max)
		}
	}
	if unwrittenMax {
		r.Max = max(30*time.Second, r.Min)
	}
	return r
}

// ramp is one recovery in progress: the fraction it admits, the credit it admits by, and the evidence it goes on.
type ramp struct {
	initial float64
	credit  float64 // what the offered calls have added up to; each whole one admits a call
	start   time.Duration

	// By the clock and evidence.
	length   time.Duration // 0: by evidence alone
	row      int           // fast calls in a row that raise the evidence
	evidence float64       // the fraction that the calls justify
	fast     int           // fast calls in a row so far

	// By evidence alone.
	reached              float64       // the fraction at the last cut
	cutAt                time.Duration // when that was; the start before
	doubling             time.Duration // how long the fraction takes to double
	slowest              time.Duration // the longest that it may take
	cuts                 int           // in a row at the initial fraction
	calls                int           // that began after the last cut
	bad                  int           // among them
	leastCalls, leastBad int           // likewise of those at the initial fraction, in the whole ramp
}

const (
	// leastStep is what the evidence rises by, and does not fall below, where Initial is less: a step too small to count would
	// never end the ramp.
	leastStep = 1.0 / 1024
	// The time that a fraction takes to double, at first and after cuts.
	firstDoubling, lastDoubling = 100 * time.Millisecond, 2 * time.Second
	// doublingLatencies is how many normal latencies it takes at the least: the calls of one fraction tell about the next.
	doublingLatencies = 3
	// cutTo is what a cut leaves of the fraction.
	cutTo = 0.35
	// borne is how many times the share of bad calls at the initial fraction a ramp bears.
	borne = 1.5
	// lastCut is how many cuts in a row at the initial fraction re-open the circuit.
	lastCut = 3
)

// newRamp begins a ramp after a break. The normal latency is 0 where it is not known.
func newRamp(r Recovery, row int, now, breakServed, normal time.Duration) ramp {
	doubling := max(firstDoubling, scaled(float64(normal), doublingLatencies))
	return ramp{
		initial: r.Initial, start: now,
		length: r.RampFor(breakServed), row: row, evidence: 1,
		reached: max(r.Initial, leastStep), cutAt: now, doubling: doubling, slowest: max(lastDoubling, doubling),
	}
}

// fraction returns the admitted fraction at now, exactly 1 at the end.
func (r *ramp) fraction(now time.Duration) float64 {
	if r.length == 0 {
		return min(1, r.reached*math.Exp2(float64(now-r.cutAt)/float64(r.doubling)))
	}
	elapsed := now - r.start
	if elapsed >= r.length {
		return r.evidence
	}
	clock := r.initial + (1-r.initial)*float64(elapsed)/float64(r.length)
	return min(clock, r.evidence)
}

// end returns when time alone may have brought the fraction to 1.
func (r *ramp) end() time.Duration {
	if r.length == 0 {
		return later(r.cutAt, scaled(float64(r.doubling), -math.Log2(r.reached))+1)
	}
	return later(r.start, r.length)
}

// accrue adds one offered call at now to the credit. A credit spreads the admitted calls evenly; a coin would admit them in
// bursts.
func (r *ramp) accrue(now time.Duration) { r.credit += r.fraction(now) }

// spend admits a call for one whole credit, if there is one.
func (r *ramp) spend() bool {
	if r.credit < 1 {
		return false
	}
	r.credit--
	return true
}

// lend admits a call that has waited for a credit not yet whole, and takes what there is.
func (r *ramp) lend() bool {
	r.credit = 0
	return true
}

// record counts a success that landed at now, on a ramp by the clock and evidence.
func (r *ramp) record(now time.Duration, slow bool) {
	if slow {
		r.evidence = max(r.initial, leastStep, r.fraction(now)/2)
		r.fast = 0
		return
	}
	if r.fast++; r.fast >= r.row {
		r.evidence = min(1, r.evidence+max(r.initial, leastStep))
		r.fast = 0
	}
}

// weigh counts a call that began and landed, or became overdue, on a ramp by evidence alone. It reports whether the dependency does
// not bear even the initial fraction.
func (r *ramp) weigh(now, began time.Duration, bad bool) (gone bool) {
	if !bad {
		r.cuts = 0
	}
	if began < r.cutAt {
		return false
	}
	fraction, least := r.fraction(now), max(r.initial, leastStep)
	atLeast := fraction <= 1.5*least
	r.count(bad, atLeast)
	if !bad || float64(r.bad) < 1+borne*r.base()*float64(r.calls) {
		return false
	}
	r.calls, r.bad = 0, 0
	if atLeast {
		r.cuts++
	} else {
		r.cuts = 0
	}
	r.reached, r.cutAt = max(least, cutTo*fraction), now
	r.doubling = min(r.slowest, later(r.doubling, r.doubling))
	return r.cuts >= lastCut
}

// count counts a call that began after the last cut.
func (r *ramp) count(bad, atLeast bool) {
	r.calls++
	if bad {
		r.bad++
	}
	if atLeast {
		r.leastCalls++
		if bad {
			r.leastBad++
		}
	}
}

// base returns the share of bad calls at the initial fraction: they are not for less load to cure. Where it is half or more, the
// dependency is not one to hand the load back to, and nothing is borne.
func (r *ramp) base() float64 {
	if 2*r.leastBad >= r.leastCalls {
		return 0
	}
	return ratio(r.leastBad, r.leastCalls)
}
