package breaker

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// climb is a ramp by evidence from the first instant on, with no latency known.
func climb() ramp { return newRamp(Recovery{}.withDefaults(), 2, 0, time.Minute, 0) }

// The admitted fraction doubles every so often, starting at the initial one, and ends at exactly 1.
func TestRampByEvidenceDoubles(t *testing.T) {
	r := climb()
	assert.Equal(t, 0.05, r.fraction(0))
	assert.InDelta(t, 0.1, r.fraction(firstDoubling), 1e-12)
	assert.InDelta(t, 0.05*math.Sqrt2, r.fraction(firstDoubling/2), 1e-12)
	assert.InDelta(t, 0.8, r.fraction(4*firstDoubling), 1e-12)
	assert.Equal(t, 1.0, r.fraction(5*firstDoubling))
	assert.Equal(t, 1.0, r.fraction(math.MaxInt64))
}

// The end is the first moment at which the fraction is 1, for any initial fraction and any cut, give or take a nanosecond.
func TestRampByEvidenceEndsWhenItSays(t *testing.T) {
	for _, initial := range []float64{0.5, 0.05, 1.0 / 3, 0.7, 1e-17, 0.999} {
		r := newRamp(Recovery{Initial: initial}.withDefaults(), 2, time.Second, time.Minute, 0)
		assert.Equal(t, 1.0, r.fraction(r.end()), "%v", initial)
		assert.Less(t, r.fraction(r.end()-3), 1.0, "%v", initial)
		assert.LessOrEqual(t, r.end(), time.Second+10*firstDoubling+1, "never longer than from the least step, %v", initial)
		at := time.Second + firstDoubling
		r.weigh(at, at, true)
		if r.cutAt == at {
			assert.Equal(t, 1.0, r.fraction(r.end()), "%v", initial)
			assert.Less(t, r.fraction(r.end()-3), 1.0, "%v", initial)
		}
	}
}

// A slow dependency doubles every few of its latencies, and cuts do not make that faster or a long one slower.
func TestRampByEvidenceDoublesByTheLatency(t *testing.T) {
	for _, test := range []struct{ normal, want time.Duration }{
		{firstDoubling / doublingLatencies, firstDoubling}, {firstDoubling, doublingLatencies * firstDoubling},
		{time.Minute, doublingLatencies * time.Minute},
		{math.MaxInt64, math.MaxInt64},
	} {
		r := newRamp(Recovery{}.withDefaults(), 2, 0, time.Minute, test.normal)
		assert.Equal(t, test.want, r.doubling)
		for range 12 {
			r.reached = 0.8
			r.weigh(r.cutAt, r.cutAt, true)
		}
		assert.Equal(t, max(test.want, lastDoubling), r.doubling, "%v", test.normal)
	}
}

// A bad call cuts the fraction and doubles the time that it takes to double.
func TestRampByEvidenceCuts(t *testing.T) {
	r := climb()
	at := 3 * firstDoubling
	require.InDelta(t, 0.4, r.fraction(at), 1e-12)
	require.False(t, r.weigh(at, at, true))
	assert.InDelta(t, 0.4*cutTo, r.fraction(at), 1e-12)
	assert.InDelta(t, 0.8*cutTo, r.fraction(at+2*firstDoubling), 1e-12)
	at += 2 * firstDoubling
	require.False(t, r.weigh(at, at, true))
	assert.InDelta(t, 0.8*cutTo*cutTo, r.fraction(at), 1e-12)
	assert.Equal(t, 4*firstDoubling, r.doubling)
}

// Calls that began before the last cut say nothing about after it; the one that began with it does.
func TestRampByEvidenceCutsOnceARoundTrip(t *testing.T) {
	r := climb()
	at := 4 * firstDoubling
	require.False(t, r.weigh(at, 3*firstDoubling, true))
	cut := r.fraction(at)
	require.InDelta(t, 0.8*cutTo, cut, 1e-12)
	for began := time.Duration(0); began < at; began += time.Millisecond {
		require.False(t, r.weigh(at, began, true))
	}
	require.False(t, r.weigh(at, at-1, true))
	assert.Equal(t, cut, r.fraction(at))
	require.False(t, r.weigh(at, at, true))
	assert.InDelta(t, cut*cutTo, r.fraction(at), 1e-12)
}

// Calls from before the ramp began say nothing either.
func TestRampByEvidenceIgnoresCallsFromBefore(t *testing.T) {
	r := newRamp(Recovery{}.withDefaults(), 2, time.Minute, time.Minute, 0)
	for range 100 {
		require.False(t, r.weigh(time.Minute, time.Minute-1, true))
	}
	assert.Equal(t, 0.05, r.fraction(time.Minute))
}

// A cut never goes below the initial fraction; three of them there, with no good call between, and the dependency bears nothing.
func TestRampByEvidenceGivesUpAtTheThirdCut(t *testing.T) {
	r := climb()
	for n := 1; n < lastCut; n++ {
		require.False(t, worsen(&r), "cut %d", n)
		require.Equal(t, 0.05, r.fraction(0))
	}
	assert.True(t, worsen(&r))

	r = climb()
	for n := 1; n < 10; n++ {
		require.False(t, worsen(&r), "cut %d", n)
		r.weigh(0, 0, false)
	}
}

// worsen makes bad calls at the initial fraction, where all had been good, until there is a cut, and reports whether that was one
// too many.
func worsen(r *ramp) (gone bool) {
	r.leastCalls, r.leastBad, r.bad = 1000, 0, 0
	for range 3 {
		was := r.cuts
		if gone = r.weigh(0, 0, true); r.cuts != was {
			return gone
		}
	}
	panic("no cut")
}

// Cuts well above the initial fraction never count towards giving up, however many there are in a row.
func TestRampByEvidenceCutsAboveDoNotGiveUp(t *testing.T) {
	r := climb()
	for n := range 20 {
		at := later(r.end(), time.Duration(n))
		require.Equal(t, 1.0, r.fraction(at))
		require.False(t, r.weigh(at, at, true), "cut %d", n)
		require.InDelta(t, cutTo, r.fraction(at), 1e-12)
	}
}

// The share of bad calls that there is at the initial fraction anyway is not for less load to cure: only more than that cuts.
func TestRampByEvidenceBearsWhatItBeganWith(t *testing.T) {
	r := climb()
	for i := range 100 {
		r.weigh(0, 0, i%10 == 9)
	}
	require.InDelta(t, 0.1, r.base(), 0.001)
	r.calls, r.bad, r.cutAt, r.reached, r.doubling = 0, 0, 0, 0.05, firstDoubling
	at := 3 * firstDoubling
	for i := range 300 {
		r.weigh(at, at, i%10 == 9) // as many as before
		require.Zero(t, r.cutAt, "call %d", i)
	}
	for i := 0; r.cutAt == 0; i++ {
		r.weigh(at, at, i%2 == 0) // half
		require.Less(t, i, 100)
	}
	assert.InDelta(t, 0.4*cutTo, r.fraction(at), 1e-12)
}

// Where most calls are bad even at the initial fraction, nothing is borne: such a ramp closed on a dependency of which every call
// was slow.
func TestRegression_RampOfBadCallsAloneGivesUp(t *testing.T) {
	r, at := climb(), time.Duration(0)
	for n := 1; n < lastCut; n++ {
		require.False(t, r.weigh(at, at, true), "cut %d", n)
	}
	assert.True(t, r.weigh(at, at, true))
}

// The first bad call cuts exactly where one more than the share that is borne is reached.
func TestRampByEvidenceCutsAtTheBorneShare(t *testing.T) {
	seen := map[bool]bool{}
	for calls := 2; calls < 20; calls++ {
		r := climb()
		r.leastCalls, r.leastBad = 1_000_000, 200_000
		at := 3 * firstDoubling
		for range calls - 2 {
			r.weigh(at, at, false)
		}
		r.weigh(at, at, true)
		require.Zero(t, r.cutAt, "one is not more than 1 + something")
		r.weigh(at, at, true)
		want := 2 >= 1+borne*0.2*float64(calls)
		seen[want] = true
		assert.Equal(t, want, r.cutAt == at, "two of %d", calls)
	}
	require.Len(t, seen, 2)
}

// Initial fractions too small to count begin at the least step, so that every ramp ends.
func TestRampByEvidenceOfNextToNothing(t *testing.T) {
	r := newRamp(Recovery{Initial: 1e-17}.withDefaults(), 2, 0, time.Minute, 0)
	assert.Equal(t, leastStep, r.fraction(0))
	assert.Equal(t, 1.0, r.fraction(10*firstDoubling))
}

// The credit that calls bring spreads those admitted: of calls at once, as many as the fraction says, and none early.
func TestRampByEvidenceAdmitsItsFraction(t *testing.T) {
	r := climb()
	admitted := 0
	for i := range 1000 {
		r.accrue(0)
		if r.spend() {
			admitted++
		}
		require.LessOrEqual(t, float64(admitted), 0.05*float64(i+1)+1e-9)
	}
	assert.InDelta(t, 50, admitted, 1)
}
