package breaker

import (
	"cmp"
	"time"
)

// Recovery is how a circuit goes from half-open to closed. With a Fraction it does not hand the whole load back at once, but
// along a ramp whose admitted fraction is the smaller of two:
//
//   - the clock's: Initial + (1 − Initial) × elapsed / length, and 1 at the end;
//   - the evidence's: 1 at the start; a slow call sets it to half of the admitted fraction, at least Initial and 1/1024; every
//     Settings.ProbeSuccesses fast calls in a row add Initial, or 1/1024 if that is more.
//
// The clock alone would push on while the dependency struggles; the evidence alone would let a fast dependency have
// everything at once. The zero value is no ramp.
type Recovery struct {
	// Fraction is the length of the ramp as a fraction of the break just served, positive and finite; 0: no ramp.
	Fraction float64
	// Initial is the admitted fraction at the start, in (0, 1); 0: 0.05. The evidence moves by 1/1024 at least.
	Initial float64
	// Min is the shortest ramp; 0: 1 s, or Max if that is shorter.
	Min time.Duration
	// Max is the longest ramp; 0: 30 s, or Min if that is longer.
	Max time.Duration
}

// RampFor returns the length of the ramp after a break: Fraction × breakServed, within Min and Max. It is 0 without a ramp.
func (r Recovery) RampFor(breakServed time.Duration) time.Duration {
	if !(r.Fraction > 0) {
		return 0
	}
	r = r.withDefaults()
	return min(max(scaled(float64(breakServed), r.Fraction), r.Min), r.Max)
}

func (r Recovery) withDefaults() Recovery {
	if r.Fraction == 0 {
		return r
	}
	r.Initial = cmp.Or(r.Initial, 0.05)
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
	start, length time.Duration
	initial       float64
	row           int     // fast calls in a row that raise the evidence
	evidence      float64 // the fraction that the calls justify
	fast          int     // fast calls in a row so far
	credit        float64 // what the offered calls have added up to; each whole one admits a call
}

// leastStep is what the evidence rises by, and does not fall below, where Initial is less: a step too small to count would never
// end the ramp.
const leastStep = 1.0 / 1024

func newRamp(r Recovery, row int, now, breakServed time.Duration) ramp {
	return ramp{start: now, length: r.RampFor(breakServed), initial: r.Initial, row: row, evidence: 1}
}

// fraction returns the admitted fraction at now: the smaller of the clock's and the evidence's, exactly 1 at the end.
func (r *ramp) fraction(now time.Duration) float64 {
	elapsed := now - r.start
	if elapsed >= r.length {
		return r.evidence
	}
	clock := r.initial + (1-r.initial)*float64(elapsed)/float64(r.length)
	return min(clock, r.evidence)
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

// record counts a success that landed at now.
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
