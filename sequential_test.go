package breaker

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const month = 30 * 24 * time.Hour

// tested is a trial of the sequential test alone at 5 min, beside a baseline of ten buckets of 30 s that began 4.5 min ago: all
// calls in it are old enough to count as normal, over exactly four minutes.
func tested(t *testing.T, failures, calls int, f Failures) *trial {
	t.Helper()
	setDefault(&f.FalseAlarmEvery, month)
	x := try(t, only(func(s *Settings) { s.Failures = f }))
	for i := range calls {
		x.failures.at(30*time.Second).add(i < failures, false)
	}
	x.now = 5 * time.Minute
	return x
}

// The numbers, worked out by hand.
func TestSequentialNumbers(t *testing.T) {
	for _, test := range []struct {
		name                    string
		settings                Failures
		failures, calls         int
		p0, p1, up, down, limit float64
		streak                  int
	}{
		{"no failures: the floor", Failures{}, 0, 800, 0.002389, 0.05, 3.041052, -0.048901, 15.971913, 3},
		{"one per cent: the multiple", Failures{}, 10, 1000, 0.016930, 0.084649, 1.609438, -0.071373, 16.195057, 4},
		{"ten per cent: halfway to all", Failures{}, 100, 1000, 0.119397, 0.559699, 1.544941, -0.693147, 16.195057, 8},
		{"thirty per cent", Failures{}, 300, 1000, 0.329174, 0.664587, 0.702580, -0.693147, 16.195057, 15},
		{"seventy per cent", Failures{}, 700, 1000, 0.728774, 0.864387, 0.170657, -0.693147, 16.195057, 52},
		{"nothing works: p0 ends at 0.95", Failures{}, 1000, 1000, 0.95, 0.975, 0.025975, -0.693147, 16.195057, 316},
		{"a low multiple: the floor", Failures{Multiple: 1.2}, 10, 1000, 0.016930, 0.05, 1.082952, -0.034219, 16.195057, 4},
		{"a low multiple and floor: halfway", Failures{Multiple: 1.2, Floor: 0.01}, 10, 1000,
			0.016930, 0.508465, 3.402325, -0.693147, 16.195057, 4},
		{"a multiple of a half more, met exactly", Failures{Multiple: 1.5, Floor: 0.01}, 10, 1000,
			0.016930, 0.025395, 0.405465, -0.008648, 16.195057, 4},
		{"a high floor: halfway", Failures{Floor: 1}, 0, 100, 0.018918, 0.509459, 3.293240, -0.693147, 13.892472, 4},
		{"90 calls an hour: as if they were 100", Failures{FalseAlarmEvery: time.Hour, MinSamples: 6}, 1, 6,
			0.524463, 0.762231, 0.373876, -0.693147, 4.605170, 8},
	} {
		t.Run(test.name, func(t *testing.T) {
			x := tested(t, test.failures, test.calls, test.settings)
			x.calls(1, Success, normal)
			c, _ := x.failures.readLagged(x.now, 2)
			p0, p1 := x.test.rates(c)
			assert.InDelta(t, test.p0, p0, 1e-6)
			assert.InDelta(t, test.p1, p1, 1e-6)
			assert.InDelta(t, test.up, x.test.failure, 1e-6)
			assert.InDelta(t, test.down, x.test.success, 1e-6)
			assert.InDelta(t, test.limit, x.test.limit, 1e-6)
			assert.Equal(t, test.streak, x.test.streak)
		})
	}
}

// At one per cent, ten failures among few successes weigh 16.09 and the eleventh alarms: the limit is 16.20.
func TestSequentialScore(t *testing.T) {
	x := tested(t, 10, 1000, Failures{})
	x.calls(1000, Success, normal)
	require.Zero(t, x.test.score, "never below 0")
	x.calls(5, Transient, normal)
	assert.InDelta(t, 5*1.609438, x.test.score, 1e-5)
	x.calls(10, Success, normal)
	assert.InDelta(t, 5*1.609438-10*0.071373, x.test.score, 1e-5)
	x.calls(20, Throttled, normal) // neutral outcomes say nothing
	x.calls(5, Transient, normal)
	assert.InDelta(t, (10*1.609438-10*0.071373)/16.195057, x.snapshot(x.now).Evidence, 1e-5)
	x.trips(ReasonRelativeFailures, Transient, normal)
	assert.Zero(t, x.snapshot(x.now).Evidence)
}

// The limit itself alarms. Evidence stays within 1, also where the limit has fallen since.
func TestSequentialLimit(t *testing.T) {
	x := tested(t, 10, 1000, Failures{})
	x.calls(1, Success, normal)
	x.test.limit = 2 * x.test.failure
	x.calls(1, Transient, normal)
	assert.Equal(t, 0.5, x.snapshot(x.now).Evidence)
	x.test.limit /= 3
	assert.Equal(t, 1.0, x.snapshot(x.now).Evidence)
	x.test.limit = 2 * x.test.failure
	x.trips(ReasonRelativeFailures, Transient, normal)
}

// A rate over no time at all is that of a millisecond.
func TestSequentialOfAFirstInstant(t *testing.T) {
	x := try(t, only(func(s *Settings) { s.Failures = Failures{FalseAlarmEvery: month} }))
	x.calls(100, Success, normal)
	assert.InDelta(t, math.Log(100_000*month.Seconds()), x.test.limit, 1e-9)
}

// MinCalls does not apply. Three failures weigh 9.88, against a limit of ln(100 calls / 240 s × 1 h) = 7.31.
func TestSequentialNeedsNoCalls(t *testing.T) {
	x := tested(t, 0, 100, Failures{Floor: 1, FalseAlarmEvery: time.Hour})
	x.rules.MinCalls = 1000
	x.calls(2, Transient, normal)
	change := x.trips(ReasonRelativeFailures, Transient, normal)
	assert.Equal(t, Counts{Calls: 3, Failures: 3, ConsecutiveFailures: 3}, change.counts)
}

// Fewer samples than MinSamples arm nothing, whatever they say. The outcome that completes them is the first to be weighed.
func TestSequentialArms(t *testing.T) {
	x := try(t, only(func(s *Settings) { s.Failures = Failures{FalseAlarmEvery: month, Floor: 0.5} }))
	x.now = time.Second
	x.calls(49, Success, normal)
	x.calls(50, Transient, normal)
	require.False(t, x.test.armed)
	require.Zero(t, x.snapshot(x.now).Evidence)
	x.calls(1, Transient, normal)
	require.True(t, x.test.armed)
	assert.Equal(t, x.test.failure, x.test.score)
	assert.InDelta(t, math.Log(100*month.Seconds()), x.test.limit, 1e-9, "a hundred calls in the one second there was")
	x.now = time.Hour
	assert.Zero(t, x.snapshot(x.now).Evidence, "nothing is known of a dependency that was idle")
	x.calls(1, Transient, normal)
	assert.False(t, x.test.armed)
	assert.Zero(t, x.test.score)
}

// An incident that has just begun is no part of what is normal, unless there is too little else.
func TestSequentialBaselineLags(t *testing.T) {
	x := try(t, only(func(s *Settings) { s.Failures = Failures{FalseAlarmEvery: month} }))
	x.calls(100, Success, normal)
	for _, step := range []struct {
		at       time.Duration
		failures int // in the baseline after one more
		calls    int
	}{
		{30 * time.Second, 1, 101},     // nothing is older than the bucket before
		{time.Minute - 1, 2, 102},      // still
		{time.Minute, 0, 100},          // the first bucket is
		{90*time.Second - 1, 0, 100},   // all of a bucket alike
		{90 * time.Second, 2, 102},     // and now the second
		{5*time.Minute - 1, 4, 104},    // the last bucket before the first one leaves
		{5*time.Minute + 1, 1 + 6, 7},  // it has left, and without the lag there is too little
		{10*time.Minute + 1, 1 + 0, 1}, // everything has left
	} {
		x.now = step.at
		x.calls(1, Transient, normal)
		assert.Equal(t, step.calls >= 100, x.test.armed, "%v", step.at)
		if !x.test.armed {
			continue
		}
		p0, p1 := x.test.rates(Counts{Calls: step.calls, Failures: step.failures})
		assert.Equal(t, math.Log(p1/p0), x.test.failure, "%v", step.at)
	}
}

// The numbers stand within a bucket of the baseline, but for no more than 500 outcomes.
func TestSequentialRefreshes(t *testing.T) {
	x := try(t, only(func(s *Settings) { s.Failures = Failures{FalseAlarmEvery: month} }))
	x.now = time.Second
	x.calls(100, Success, normal)
	armed := *x.test
	x.calls(499, Success, normal)
	require.Equal(t, armed.failure, x.test.failure)
	x.calls(1, Success, normal)
	refreshed := *x.test
	require.Greater(t, refreshed.failure, armed.failure, "600 calls without a failure say more than 100")
	x.now = 30*time.Second - 1
	x.calls(1, Success, normal)
	require.Equal(t, refreshed.limit, x.test.limit)
	x.now = 30 * time.Second
	x.calls(1, Success, normal)
	assert.Less(t, x.test.limit, refreshed.limit, "as many calls in more time")
}

// Evidence is read by the numbers that an outcome would find, at the turn of a bucket those of the next one.
func TestSequentialEvidenceAtTheTurnOfABucket(t *testing.T) {
	x := try(t, only(func(s *Settings) { s.Failures = Failures{FalseAlarmEvery: month} }))
	x.calls(100, Success, normal)
	x.now = 30 * time.Second
	x.calls(100, Success, normal)
	x.calls(1, Transient, normal)
	last := 60*time.Second - 1
	require.Equal(t, x.test.score/x.test.limit, x.test.evidence(last, x.failures))
	next := *x.test
	next.refresh(60*time.Second, x.failures)
	require.NotEqual(t, next.limit, x.test.limit)
	assert.Equal(t, x.test.score/next.limit, x.test.evidence(60*time.Second, x.failures))
}

// A change of state ends the evidence, whichever it is, and keeps what is normal.
func TestSequentialScoreStartsAnew(t *testing.T) {
	for name, change := range map[string]func(*trial){
		"open":            func(x *trial) { x.open(x.now, ReasonFailureRatio) },
		"isolate":         func(x *trial) { x.isolate(x.now) },
		"reset":           func(x *trial) { x.isolate(x.now); x.test.score = 1; x.reset(x.now) },
		"reset of closed": func(x *trial) { x.reset(x.now) },
		"half-open": func(x *trial) {
			x.open(x.now, ReasonFailureRatio)
			x.test.score = 1
			x.enter(x.now, HalfOpen, ReasonBreakElapsed)
		},
		"close by a probe": func(x *trial) {
			x.open(x.now, ReasonFailureRatio)
			x.test.score = 1
			x.close(x.now, ReasonProbesSucceeded)
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := tested(t, 10, 1000, Failures{})
			x.calls(5, Transient, normal)
			require.Positive(t, x.snapshot(x.now).Evidence)
			change(x)
			assert.Zero(t, x.snapshot(x.now).Evidence)
			assert.True(t, x.test.armed)
		})
	}
}

// Five failures in a row are nothing at ten per cent. A limit that nobody wrote gives way; one that was written stands.
func TestSequentialRaisesTheStreak(t *testing.T) {
	for _, test := range []struct {
		name     string
		settings Settings
		failures int // of all calls in the baseline
		trips    int // failures in a row that open the circuit
		reason   Reason
	}{
		{"not written", Settings{}, 100, 8, ReasonConsecutiveFailures},
		{"not written, at no failures", Settings{}, 0, 5, ReasonConsecutiveFailures},
		{"not written, at 30 %", Settings{}, 300, 15, ReasonConsecutiveFailures},
		{"written as it is by default", Settings{ConsecutiveFailures: 5}, 100, 5, ReasonConsecutiveFailures},
		{"written", Settings{ConsecutiveFailures: 9}, 100, 9, ReasonConsecutiveFailures},
		{"off", Settings{ConsecutiveFailures: Disabled}, 100, 11, ReasonRelativeFailures},
		{"written by WithDefaults", Settings{}.WithDefaults(), 100, 5, ReasonConsecutiveFailures},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.settings.Failures.FalseAlarmEvery = month
			x := trialOf(t, newBreaker(test.settings))
			for i := range 1000 {
				x.failures.at(30*time.Second).add(i < test.failures, false)
			}
			x.now = 5 * time.Minute
			x.calls(test.trips-1, Transient, normal)
			x.trips(test.reason, Transient, normal)
		})
	}
}

// Until the test is armed, the streak is what it always was.
func TestSequentialStreakUntilArmed(t *testing.T) {
	x := trialOf(t, newBreaker(Settings{Failures: Failures{FalseAlarmEvery: month}}))
	x.calls(4, Transient, normal)
	x.trips(ReasonConsecutiveFailures, Transient, normal)
}

// trialOf is a trial of a breaker's machine.
func trialOf(t *testing.T, b *Breaker) *trial { return &trial{machine: b.machine, t: t} }
