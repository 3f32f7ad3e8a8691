package breaker_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
)

func TestDefaults(t *testing.T) {
	assert.Equal(t, breaker.Settings{
		ConsecutiveFailures: 5,
		Failures:            breaker.Failures{Multiple: 5, Window: 5 * time.Minute, MinSamples: 100, Floor: 0.5, FalseAlarmEvery: 30 * 24 * time.Hour},
		MinCalls:            20,
		Window:              30 * time.Second,
		SlowCalls: breaker.SlowCalls{
			Multiple: 3, Quantile: 0.5, Window: 5 * time.Minute, MinSamples: 20,
			Floor: 100 * time.Millisecond, FalseAlarmEvery: 30 * 24 * time.Hour,
		},
		SlowCallRatio:    0.5,
		MaxBreakDuration: 30 * time.Second,
		HalfOpenProbes:   1,
		ProbeSuccesses:   2,
		ProbeTimeout:     30 * time.Second,
		Recovery:         breaker.Recovery{Initial: 0.05},
		MaxWait:          5 * time.Minute,
	}, breaker.Settings{}.WithDefaults())
	assert.Equal(t, breaker.Recovery{Fraction: 0.25, Initial: 0.05, Min: time.Second, Max: 30 * time.Second},
		breaker.Settings{Recovery: breaker.Recovery{Fraction: 0.25}}.WithDefaults().Recovery)
}

// These defaults move out of the way of what is written beside them.
func TestDefaultsThatMove(t *testing.T) {
	type settings = breaker.Settings
	for _, test := range []struct {
		name    string
		written settings
		read    func(settings) time.Duration
		want    time.Duration
	}{
		{"BreakDuration stays measured", settings{MaxBreakDuration: time.Second}, breakDuration, 0},
		{"MaxBreakDuration of a measured break", settings{}, maxBreakDuration, 30 * time.Second},
		{"MaxBreakDuration up to BreakDuration", settings{BreakDuration: time.Hour}, maxBreakDuration, time.Hour},
		{"MaxBreakDuration stays", settings{BreakDuration: time.Minute}, maxBreakDuration, 2 * time.Minute},
		{"ProbeTimeout with MaxBreakDuration", settings{MaxBreakDuration: time.Hour}, probeTimeout, time.Hour},
		{"ProbeTimeout with BreakDuration", settings{BreakDuration: time.Hour}, probeTimeout, time.Hour},
		{"Recovery.Min down to Max", recovery(0, time.Millisecond), recoveryMin, time.Millisecond},
		{"Recovery.Min stays", recovery(0, 2*time.Second), recoveryMin, time.Second},
		{"Recovery.Max up to Min", recovery(time.Hour, 0), recoveryMax, time.Hour},
		{"Recovery.Max stays", recovery(2*time.Second, 0), recoveryMax, 30 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			require.NoError(t, test.written.Validate())
			assert.Equal(t, test.want, test.read(test.written.WithDefaults()))
		})
	}
}

func breakDuration(s breaker.Settings) time.Duration    { return s.BreakDuration }
func maxBreakDuration(s breaker.Settings) time.Duration { return s.MaxBreakDuration }
func probeTimeout(s breaker.Settings) time.Duration     { return s.ProbeTimeout }
func recoveryMin(s breaker.Settings) time.Duration      { return s.Recovery.Min }
func recoveryMax(s breaker.Settings) time.Duration      { return s.Recovery.Max }
func recovery(shortest, longest time.Duration) breaker.Settings {
	return breaker.Settings{Recovery: breaker.Recovery{Fraction: 1, Min: shortest, Max: longest}}
}

// An unwritten baseline window is five minutes, or what its race needs plus a second; past an hour an unmentioned trip is off.
func TestDerivedWindows(t *testing.T) {
	const fiveMinutes = 5 * time.Minute
	for _, test := range []struct {
		name                      string
		written                   breaker.Settings
		failures, slow            time.Duration
		failuresOff, slowCallsOff bool
	}{
		{"default", breaker.Settings{}, fiveMinutes, fiveMinutes, false, false},
		{"met exactly", breaker.Settings{Window: 150 * time.Second}, fiveMinutes, fiveMinutes, false, false},
		{"just more than met exactly", breaker.Settings{Window: 150*time.Second + 1},
			fiveMinutes + time.Second + 2, fiveMinutes + time.Second + 2, false, false},
		{"both up", breaker.Settings{Window: 200 * time.Second}, 401 * time.Second, 401 * time.Second, false, false},
		{"an hour exactly", breaker.Settings{Window: 30 * time.Minute}, 3601 * time.Second, 3601 * time.Second, false, false},
		{"more than an hour", breaker.Settings{Window: 30*time.Minute + 1}, fiveMinutes, fiveMinutes, true, true},
		{"far more", breaker.Settings{Window: time.Hour}, fiveMinutes, fiveMinutes, true, true},
		{"more than an hour for one", breaker.Settings{Window: 30*time.Minute + 1, SlowCallRatio: 0.25},
			fiveMinutes, 1801*time.Second + 1, true, false},
		{"a multiple, just more than met exactly", breaker.Settings{Window: 30*time.Second + 1, Failures: multiplied(0)},
			fiveMinutes + time.Second + 10, fiveMinutes, false, false},
		{"a multiple, an hour exactly", breaker.Settings{Window: 360 * time.Second, Failures: multiplied(0)},
			3601 * time.Second, 721 * time.Second, false, false},
		{"a lower multiple", breaker.Settings{
			Window: time.Minute, Failures: breaker.Failures{Multiple: 2.5, FalseAlarmEvery: breaker.Disabled},
		}, fiveMinutes, fiveMinutes, false, false},
		{"a lower quantile", breaker.Settings{SlowCalls: breaker.SlowCalls{Quantile: 0.05}},
			fiveMinutes, 601 * time.Second, false, false},
		{"a higher slow ratio", breaker.Settings{SlowCallRatio: 1, Window: 90 * time.Second},
			fiveMinutes, 361 * time.Second, false, false},
		{"turned off", breaker.Settings{Window: time.Hour, Failures: breaker.Failures{Off: true}}, fiveMinutes, fiveMinutes, true, true},
		{"written", breaker.Settings{
			Failures: breaker.Failures{Window: time.Hour}, SlowCalls: breaker.SlowCalls{Window: 2 * time.Hour},
		}, time.Hour, 2 * time.Hour, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			require.NoError(t, test.written.Validate())
			s := test.written.WithDefaults()
			assert.Equal(t, test.failures, s.Failures.Window)
			assert.Equal(t, test.failuresOff, s.Failures.Off)
			assert.Equal(t, test.slow, s.SlowCalls.Window)
			assert.Equal(t, test.slowCallsOff, s.SlowCalls.Off)
		})
	}
}

// Nothing that is not written is made up: functions, the monitor and the clock stay as they are.
func TestDefaultsLeaveFunctionsAlone(t *testing.T) {
	s := breaker.Settings{}.WithDefaults()
	assert.Nil(t, s.Classify)
	assert.Nil(t, s.OnStateChange)
	assert.Nil(t, s.OnCallbackError)
	assert.Nil(t, s.BreakDurationFunc)
	assert.Nil(t, s.Random)
	assert.Nil(t, s.Clock)
	assert.Nil(t, s.Monitor)

	m := new(breaker.Monitor)
	s = breaker.Settings{Monitor: m, OnStateChange: func(context.Context, breaker.StateChange) {}}.WithDefaults()
	assert.Same(t, m, s.Monitor)
	assert.NotNil(t, s.OnStateChange)
}

// randomSettings writes each field with a probability of a third, with values on and around every bound.
func randomSettings(r *rand.Rand) (s breaker.Settings) {
	durations := []time.Duration{-1, 1, time.Millisecond - 1, time.Millisecond, time.Second, 30 * time.Second, time.Minute,
		5 * time.Minute, time.Hour, 2 * time.Hour, 24 * time.Hour, math.MaxInt64}
	numbers := []int{-1, 1, 2, 20, math.MaxInt32}
	ratios := []float64{1e-9, 0.007, 0.05, 0.07, 0.25, 0.3, 0.5, 0.75, 0.95, 1, 1.5}
	multiples := []float64{1, math.Nextafter(1, 2), 1.1, 3, 7, 100, math.MaxFloat64}
	duration := func() time.Duration { return sometimes(r, durations) }
	number := func() int { return sometimes(r, numbers) }
	ratio := func() float64 { return sometimes(r, ratios) }
	multiple := func() float64 { return sometimes(r, multiples) }
	off := func() bool { return r.IntN(4) == 0 }
	return breaker.Settings{
		ConsecutiveFailures: number(), FailureRatio: ratio(), MinCalls: number(), Window: duration(),
		Failures: breaker.Failures{
			Multiple: multiple(), Window: duration(), MinSamples: number(), Floor: ratio(), FalseAlarmEvery: duration(), Off: off(),
		},
		SlowCallThreshold: duration(), SlowCallRatio: ratio(),
		SlowCalls: breaker.SlowCalls{
			Multiple: multiple(), Quantile: ratio(), Window: duration(), MinSamples: number(), TailQuantile: ratio(),
			Floor: duration(), FalseAlarmEvery: duration(), EndedOnly: off(), Off: off(),
		},
		BreakDuration: duration(), MaxBreakDuration: duration(), BreakJitter: breaker.Jitter(r.IntN(3)),
		HalfOpenProbes: number(), ProbeSuccesses: number(), ProbeCohort: number(), ProbeTimeout: duration(),
		Recovery: breaker.Recovery{Fraction: ratio(), Initial: ratio(), Min: duration(), Max: duration(), Off: off()},
		MaxWait:  duration(), MaxWaiting: number(), RejectionDelay: duration(),
	}
}

// sometimes returns one of the values, and zero four times in five, so that some settings are valid.
func sometimes[T any](r *rand.Rand, values []T) (v T) {
	if r.IntN(5) > 0 {
		return v
	}
	return values[r.IntN(len(values))]
}

// WithDefaults is idempotent, and what it returns is valid whenever the settings are.
func TestDefaultsOfValidSettingsAreValid(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 9))
	valid := 0
	for range 8_000 {
		s := randomSettings(random)
		d := s.WithDefaults()
		require.Equal(t, fmt.Sprintf("%+v", d), fmt.Sprintf("%+v", d.WithDefaults()))
		if s.Validate() == nil {
			valid++
			require.NoError(t, d.Validate(), "%+v", s)
		}
	}
	assert.Greater(t, valid, 200)
}

// A race that is met exactly must not be lost to the rounding of its product. Some of these were refused; others were valid as
// they were written, and what WithDefaults made of them was not.
func TestRegression_RaceMetExactly(t *testing.T) {
	for _, s := range []breaker.Settings{
		{Window: 15 * time.Second, SlowCallRatio: 0.07, SlowCalls: breaker.SlowCalls{Quantile: 0.007}},
		{Window: 2150 * time.Second, SlowCallRatio: 0.012, SlowCalls: breaker.SlowCalls{Quantile: 0.172}},
		{SlowCallRatio: 0.1, SlowCalls: breaker.SlowCalls{TailQuantile: 0.95}},
		{SlowCallRatio: 0.07, SlowCalls: breaker.SlowCalls{Quantile: 0.001, Window: 4200 * time.Second}},
		{Window: 15 * time.Second, Failures: breaker.Failures{
			Multiple: 1.08, Window: 32400 * time.Millisecond, FalseAlarmEvery: breaker.Disabled,
		}},
	} {
		assert.NoError(t, s.Validate())
		assert.NoError(t, s.WithDefaults().Validate())
		for _, window := range []*time.Duration{&s.SlowCalls.Window, &s.Failures.Window} {
			if *window > 0 {
				*window--
				assert.Error(t, s.Validate(), "a nanosecond less is too little")
				*window++
			}
		}
	}
}
