package breaker

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The first break keeps probes to a share of the load, within its bounds; nothing known of the load is no load.
func TestFirstBreakFollowsTheTraffic(t *testing.T) {
	const limit = 30 * time.Second
	atShortest := 1 / (probeShare * shortestFirstBreak.Seconds()) // calls a second
	atLongest := 1 / (probeShare * longestFirstBreak.Seconds())
	for name, test := range map[string]struct {
		rate float64
		want time.Duration
	}{
		"unknown":         {0, longestFirstBreak},
		"next to nothing": {math.SmallestNonzeroFloat64, longestFirstBreak},
		"few":             {atLongest / 2, longestFirstBreak},
		"in between":      {(atShortest + atLongest) / 2, time.Duration(float64(time.Second) / (probeShare * (atShortest + atLongest) / 2))},
		"many":            {2 * atShortest, shortestFirstBreak},
		"no end of them":  {1e12, shortestFirstBreak},
		"infinitely many": {math.Inf(1), shortestFirstBreak},
	} {
		t.Run(name, func(t *testing.T) {
			d, basis := firstBreak(test.rate, 0, limit)
			assert.InDelta(t, test.want, d, float64(time.Microsecond))
			assert.Equal(t, BreakTraffic, basis)
		})
	}
	d, _ := firstBreak(0, 0, time.Second)
	assert.Equal(t, time.Second, d, "at most MaxBreakDuration")
}

// After an incident that was short the next first break is a share of its length, if that is less.
func TestFirstBreakRemembersAShortIncident(t *testing.T) {
	for _, test := range []struct {
		before, want time.Duration
		basis        BreakBasis
	}{
		{1, shortestBreak, BreakIncident},
		{10 * shortestBreak, shortestBreak, BreakIncident},
		{10*shortestBreak + 1000, shortestBreak + 100, BreakIncident},
		{10 * shortestFirstBreak, shortestFirstBreak, BreakTraffic},
		{time.Hour, shortestFirstBreak, BreakTraffic},
		{math.MaxInt64, shortestFirstBreak, BreakTraffic},
	} {
		d, basis := firstBreak(1000, test.before, time.Minute)
		assert.InDelta(t, test.want, d, 1, "%v", test.before)
		assert.Equal(t, test.basis, basis, "%v", test.before)
	}
	d, basis := firstBreak(1000, time.Second, time.Millisecond)
	assert.Equal(t, time.Millisecond, d)
	assert.Equal(t, BreakIncident, basis)
}

// Further breaks are a tenth of the incident so far.
func TestFurtherBreakFollowsTheIncident(t *testing.T) {
	for since, want := range map[time.Duration]time.Duration{
		0: 0, 20 * time.Second: 2 * time.Second, time.Minute: 6 * time.Second, math.MaxInt64: math.MaxInt64 / 10,
	} {
		assert.InDelta(t, float64(want), float64(furtherBreak(since)), 1e3)
	}
}

// opening opens a machine anew at a time, and returns the break before jitter.
func opening(m *machine, now time.Duration) (time.Duration, BreakBasis) {
	m.open(now, ReasonProbeFailed)
	return m.period.breakFor, m.period.basis
}

// unspread is a machine of settings without jitter.
func unspread(s Settings) *machine {
	s.BreakJitter = JitterNone
	return &newBreaker(s).machine
}

// calling counts so many calls a second in the baseline of a machine, from one time to another.
func calling(m *machine, rate int, from, to time.Duration) {
	for at := from; at < to; at += time.Second {
		for range rate {
			m.gauge().baseline.at(at).add(false, false)
		}
	}
}

// The machine serves what the formulas say, from the first open on, and begins anew once it has closed.
func TestBreakOfAnIncident(t *testing.T) {
	m := unspread(Settings{})
	calling(m, 100, 0, time.Minute)
	d, basis := opening(m, time.Minute)
	assert.Equal(t, shortestFirstBreak, d)
	assert.Equal(t, BreakTraffic, basis)
	d, basis = opening(m, time.Minute+10*shortestFirstBreak)
	assert.Equal(t, shortestFirstBreak, d)
	assert.Equal(t, BreakTraffic, basis)
	d, basis = opening(m, 2*time.Minute)
	assert.Equal(t, 6*time.Second, d)
	assert.Equal(t, BreakIncident, basis)
	d, _ = opening(m, time.Hour)
	assert.Equal(t, 30*time.Second, d)
	m.close(time.Hour, ReasonRampCompleted)
	assert.Equal(t, 59*time.Minute, m.incidentBefore(time.Hour))
	assert.Equal(t, 59*time.Minute, m.incidentBefore(time.Hour+remembered))
	assert.Zero(t, m.incidentBefore(time.Hour+remembered+1))
}

// An incident of two seconds makes the next first break short, for as long as it is remembered.
func TestBreakAfterAShortIncident(t *testing.T) {
	m := unspread(Settings{})
	calling(m, 100, 0, time.Minute)
	opening(m, time.Minute)
	m.close(time.Minute+2*time.Second, ReasonProbesSucceeded)
	d, basis := opening(m, 2*time.Minute)
	assert.Equal(t, shortestBreak, d)
	assert.Equal(t, BreakIncident, basis)
	m.close(2*time.Minute+2*time.Second, ReasonProbesSucceeded)
	_, basis = opening(m, 2*time.Minute+2*time.Second+remembered+1)
	assert.Equal(t, BreakTraffic, basis)
}

// A circuit that was isolated and let go has had no incident.
func TestBreakAfterIsolation(t *testing.T) {
	m := unspread(Settings{})
	calling(m, 1, 0, time.Minute)
	m.isolate(time.Minute)
	m.reset(61 * time.Second)
	assert.Zero(t, m.incidentBefore(62*time.Second))
}

// What is written doubles, whatever the traffic and the incident.
func TestWrittenBreakDoubles(t *testing.T) {
	m := unspread(Settings{BreakDuration: 4 * time.Second, MaxBreakDuration: 20 * time.Second})
	calling(m, 100, 0, time.Minute)
	for i, want := range []time.Duration{4 * time.Second, 8 * time.Second, 16 * time.Second, 20 * time.Second, 20 * time.Second} {
		d, basis := opening(m, time.Minute+time.Duration(i)*time.Hour)
		assert.Equal(t, want, d)
		assert.Equal(t, BreakWritten, basis)
	}
}

// The normal rate leaves out the bucket of now, in which the incident may have changed it, where the others tell enough.
func TestRateIsThatOfBefore(t *testing.T) {
	m := unspread(Settings{})
	assert.Zero(t, m.rate(0))
	assert.Zero(t, m.rate(time.Hour))
	calling(m, 10, 0, 2*time.Minute)
	assert.InDelta(t, 10, m.rate(2*time.Minute), 1e-9)
	calling(m, 1000, 2*time.Minute, 2*time.Minute+10*time.Second)
	assert.InDelta(t, 10, m.rate(2*time.Minute+10*time.Second), 1e-9)
	young := unspread(Settings{})
	calling(young, 50, 0, 5*time.Second)
	assert.InDelta(t, 50, young.rate(5*time.Second), 1e-9, "all there is")
	assert.InDelta(t, 250, young.rate(time.Millisecond), 1e-9, "no rate is that of less than a second")
	off := unspread(Settings{Failures: Failures{Off: true}, SlowCalls: SlowCalls{Off: true}})
	assert.Zero(t, off.rate(time.Minute))
}

// A basis has its word in text, and what is no basis has none.
func TestBreakBasisTexts(t *testing.T) {
	words := []string{"none", "written", "traffic", "incident", "dynamic"}
	for i, word := range words {
		b := BreakBasis(i)
		assert.Equal(t, word, b.String())
		text, err := b.MarshalText()
		require.NoError(t, err)
		var back BreakBasis
		require.NoError(t, back.UnmarshalText(text))
		assert.Equal(t, b, back)
	}
	kept := BreakIncident
	require.Error(t, kept.UnmarshalText([]byte("Traffic")))
	assert.Equal(t, BreakIncident, kept)
	_, err := BreakBasis(len(words)).MarshalText()
	require.Error(t, err)
}

// A snapshot shows the break and its basis from opening to closing, after jitter, and neither while closed or isolated.
func TestSnapshotShowsTheBreakAndItsBasis(t *testing.T) {
	s := Settings{}
	s.BreakJitter = JitterEqual
	m := &newBreaker(s).machine
	m.random = 0.5
	calling(m, 100, 0, time.Minute)
	assert.Zero(t, m.snapshot(time.Minute).Break)
	assert.Zero(t, m.snapshot(time.Minute).BreakBasis)
	m.open(time.Minute, ReasonRelativeFailures)
	shown := func(at time.Duration) [2]any { s := m.snapshot(at); return [2]any{s.Break, s.BreakBasis} }
	want := [2]any{shortestFirstBreak * 3 / 4, BreakTraffic}
	assert.Equal(t, want, shown(time.Minute))
	assert.Equal(t, want, shown(2*time.Minute), "half-open for the next call")
	require.True(t, m.redirect(time.Minute, m.epoch, 7*time.Second))
	assert.Equal(t, [2]any{7 * time.Second, BreakDynamic}, shown(time.Minute))
	m.admit(2*time.Minute, passing)
	m.recover(2 * time.Minute)
	assert.Equal(t, [2]any{7 * time.Second, BreakDynamic}, shown(2*time.Minute))
	m.close(2*time.Minute, ReasonRampCompleted)
	assert.Equal(t, [2]any{time.Duration(0), BreakBasis(0)}, shown(2*time.Minute))
	m.isolate(3 * time.Minute)
	assert.Equal(t, [2]any{time.Duration(0), BreakBasis(0)}, shown(3*time.Minute))
}
