package breaker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSlowIsStrictlyLongerThanTheThreshold(t *testing.T) {
	x := try(t, only(func(s *Settings) { s.SlowCallThreshold, s.SlowCallRatio = time.Second, 1 }))
	x.calls(40, Success, time.Second)
	require.Zero(t, x.totals.Slow)
	x.reset(x.now)
	x.calls(19, Success, time.Second+1)
	x.trips(ReasonSlowCalls, Success, time.Second+1)
}

// A slow failure counts once as a call and once in each numerator.
func TestSlowFailureCountsInBothNumerators(t *testing.T) {
	x := try(t, Settings{SlowCallThreshold: time.Second})
	x.calls(1, Transient, 2*time.Second)
	x.calls(1, Success, 2*time.Second)
	x.calls(1, Success, time.Second)
	assert.Equal(t, Counts{Calls: 3, Failures: 1, Slow: 2}, x.counts(x.now))
	assert.Equal(t, uint64(2), x.totals.Slow)
}

// The lower of the constant and the measured threshold is in force.
func TestMeasurementMayOnlyTightenTheConstant(t *testing.T) {
	for _, test := range []struct {
		constant, want time.Duration
	}{
		{0, threshold}, {threshold - 1, threshold - 1}, {threshold, threshold}, {threshold + 1, threshold}, {time.Hour, threshold},
	} {
		t.Run(test.constant.String(), func(t *testing.T) {
			x := try(t, Settings{SlowCallThreshold: test.constant})
			x.calls(19, Success, normal)
			assert.Equal(t, test.constant, x.snapshot(x.now).SlowThreshold, "not armed yet")
			x.calls(1, Success, normal)
			assert.Equal(t, test.want, x.snapshot(x.now).SlowThreshold)
			x.calls(1, Success, test.want)
			require.Zero(t, x.counts(x.now).Slow)
			x.calls(1, Success, test.want+1)
			assert.Equal(t, 1, x.counts(x.now).Slow)
		})
	}
}

// healthy lets a minute pass with a call every 20 ms, every twentieth of which takes eight times as long.
func (x *trial) healthy() {
	x.t.Helper()
	for i := range 3000 {
		latency := normal
		if i%20 == 0 {
			latency *= 8
		}
		x.now += 20 * time.Millisecond
		x.calls(1, Success, latency)
	}
}

// In a brownout every call succeeds and takes eight times as long: nothing but the measured threshold sees it.
func TestBrownoutOfTheMedianTrips(t *testing.T) {
	x := try(t, Settings{})
	x.healthy()
	began := x.now
	for {
		x.now += 20 * time.Millisecond
		require.Less(t, x.now-began, 30*time.Second, "the trip window has filled")
		if change := x.call(Success, 8*normal); change != nil {
			assert.Equal(t, ReasonSlowCalls, change.reason)
			assert.Greater(t, x.now-began, 10*time.Second, "half of the window must be slow")
			return
		}
	}
}

// When two calls in five are slow for good, that is how the dependency is: the median stands, and so does the circuit.
func TestBrownoutOfATailDoesNotTrip(t *testing.T) {
	x := try(t, Settings{})
	x.healthy()
	for i := range 6000 {
		x.now += 20 * time.Millisecond
		latency := normal
		if i%5 < 2 {
			latency *= 8
		}
		x.calls(1, Success, latency)
	}
	assert.InDelta(t, 0.4, x.counts(x.now).SlowRatio(), 0.01)
}

// The first twenty calls of a process fill caches and open connections. They must not make everything after them look fast.
func TestFirstCallsUnlikeTheRest(t *testing.T) {
	x := try(t, Settings{})
	x.calls(20, Success, 20*normal)
	x.calls(19, Success, normal)
	require.Greater(t, x.snapshot(x.now).SlowThreshold, 20*normal)
	x.calls(1, Success, normal)
	assert.Equal(t, threshold, x.snapshot(x.now).SlowThreshold)
}
