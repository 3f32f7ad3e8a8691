package breaker

import (
	"fmt"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// trial is a machine under test and the time it is asked at.
type trial struct {
	machine
	t   *testing.T
	now time.Duration
}

func try(t *testing.T, s Settings) *trial {
	t.Helper()
	require.NoError(t, s.Validate())
	s = Classically(s).WithDefaults()
	return &trial{machine: newMachine(&s), t: t}
}

// ask is a call that must be admitted.
func (x *trial) ask() (*ticket, *transition) {
	x.t.Helper()
	ticket, ok, change := x.admit(x.now, passing)
	require.True(x.t, ok, "refused while %v", x.state)
	return &ticket, change
}

// end settles an admitted call, whose outcome must count.
func (x *trial) end(ticket *ticket, o Outcome, latency time.Duration) *transition {
	x.t.Helper()
	counted, change := x.settle(x.now, ticket, o, latency)
	require.True(x.t, counted, "not counted")
	return change
}

// call is a call that is admitted without a change and settled at once.
func (x *trial) call(o Outcome, latency time.Duration) *transition {
	x.t.Helper()
	ticket, change := x.ask()
	require.Nil(x.t, change)
	return x.end(ticket, o, latency)
}

// calls are n calls in a row of which none may move the machine.
func (x *trial) calls(n int, o Outcome, latency time.Duration) {
	x.t.Helper()
	for i := range n {
		require.Nil(x.t, x.call(o, latency), "call %d of %d", i+1, n)
	}
}

// trips is a call that must open the circuit.
func (x *trial) trips(reason Reason, o Outcome, latency time.Duration) *transition {
	x.t.Helper()
	change := x.call(o, latency)
	require.NotNil(x.t, change, "the circuit stays %v", x.state)
	require.Equal(x.t, Open, change.to)
	require.Equal(x.t, reason.String(), change.reason.String())
	return change
}

// Latencies: the normal one reads 10.24 ms from the histogram, so three times normal is 30.72 ms.
const (
	normal    = 10 * time.Millisecond
	threshold = 3 * 10240 * time.Microsecond
)

// only returns settings with every trip off, for a test to turn one on.
func only(with func(*Settings)) Settings {
	s := Settings{ConsecutiveFailures: Disabled, BreakJitter: JitterNone}
	s.Failures.Off, s.SlowCalls.Off = true, true
	with(&s)
	return s
}

func TestConsecutiveFailuresTrip(t *testing.T) {
	x := try(t, Settings{BreakJitter: JitterNone})
	for range 4 {
		x.calls(1, Transient, normal)
		x.now += 24 * time.Hour // however far apart
	}
	change := x.trips(ReasonConsecutiveFailures, Transient, normal)
	assert.Equal(t, transition{
		from: Closed, to: Open, reason: ReasonConsecutiveFailures, at: 96 * time.Hour, breakFor: 15 * time.Second, opens: 1,
		counts: Counts{Calls: 1, Failures: 1, ConsecutiveFailures: 5},
	}, *change)
}

func TestOnlyASuccessEndsTheStreak(t *testing.T) {
	for _, test := range []struct {
		name    string
		outcome Outcome
		latency time.Duration
		streak  int
	}{
		{"fast success", Success, normal, 0},
		{"slow success", Success, time.Hour, 0},
		{"throttled", Throttled, normal, 4},
		{"permanent", Permanent, time.Hour, 4},
		{"ignored", Ignored, time.Hour, 4},
	} {
		t.Run(test.name, func(t *testing.T) {
			x := try(t, Settings{SlowCallThreshold: time.Second})
			x.calls(4, Transient, normal)
			x.calls(1, test.outcome, test.latency)
			require.EqualValues(t, test.streak, x.streak)
			x.calls(4-test.streak, Transient, normal)
			x.trips(ReasonConsecutiveFailures, Transient, normal)
		})
	}
}

// A streak that wrapped would open no circuit for another two thousand million failures.
func TestStreakSaturates(t *testing.T) {
	x := try(t, only(func(s *Settings) { s.FailureRatio = 1 }))
	x.calls(1, Success, normal)
	x.streak = math.MaxUint32 - 1
	x.calls(2, Transient, normal)
	assert.Equal(t, clampInt(math.MaxUint32), x.counts(x.now).ConsecutiveFailures)
}

// Rates rounded before they are compared let 99 of 200 trip 0.5, or 7 of 100 miss 0.07. So: every ratio in whole hundredths
// that n calls can meet exactly, as it is written in decimals, trips at exactly its number of calls.
func TestRatiosTripExactly(t *testing.T) {
	for n := 1; n <= 100; n++ {
		for k := 1; k <= n; k++ {
			if k*100%n != 0 {
				continue
			}
			ratio, err := strconv.ParseFloat(fmt.Sprintf("%d.%02d", k*100/n/100, k*100/n%100), 64)
			require.NoError(t, err)
			x := try(t, only(func(s *Settings) { s.FailureRatio, s.MinCalls = ratio, n }))
			tripsAtExactly(x, k, n, ReasonFailureRatio, Transient, 0)
			x = try(t, only(func(s *Settings) { s.SlowCallRatio, s.SlowCallThreshold, s.MinCalls = ratio, time.Second, n }))
			tripsAtExactly(x, k, n, ReasonSlowCalls, Success, time.Second+1)
		}
	}
}

// tripsAtExactly records n calls of which only k−1 are bad, and then, anew, n of which k are.
func tripsAtExactly(x *trial, k, n int, reason Reason, bad Outcome, latency time.Duration) {
	x.t.Helper()
	x.calls(n-k+1, Success, time.Second)
	x.calls(k-1, bad, latency)
	x.reset(x.now)
	x.calls(n-k, Success, time.Second)
	x.calls(k-1, bad, latency)
	change := x.trips(reason, bad, latency)
	require.Equal(x.t, n, change.counts.Calls, "%d of %d", k, n)
}

// Quotients of small numbers that no decimal meets: the same quotient, written as such, must be met.
func TestRatiosOfSmallNumbersTripExactly(t *testing.T) {
	for n := 1; n <= 40; n++ {
		for k := 1; k <= n; k++ {
			x := try(t, only(func(s *Settings) { s.FailureRatio, s.MinCalls = float64(k)/float64(n), n }))
			tripsAtExactly(x, k, n, ReasonFailureRatio, Transient, 0)
		}
	}
}

// The same for a cohort of probes, and for calls that are overdue.
func TestRatiosOfProbesAndOverdueCallsTripExactly(t *testing.T) {
	for n := 1; n <= 40; n++ {
		for k := 1; k <= n; k++ {
			r := float64(k) / float64(n)
			cohort := try(t, Settings{ProbeCohort: n, FailureRatio: r, SlowCallRatio: r, SlowCalls: SlowCalls{Off: true}})
			require.Equal(t, ReasonProbeFailed, cohort.judgeProbes(Counts{Calls: n, Failures: k}), "%d of %d", k, n)
			require.Equal(t, ReasonProbesSucceeded, cohort.judgeProbes(Counts{Calls: n, Failures: k - 1}), "%d of %d", k-1, n)
			require.Equal(t, ReasonProbeSlow, cohort.judgeProbes(Counts{Calls: n, Slow: k}), "%d of %d", k, n)
			require.Equal(t, ReasonProbesSucceeded, cohort.judgeProbes(Counts{Calls: n, Slow: k - 1}), "%d of %d", k-1, n)

			require.Zero(t, reasonOfHang(r, k-1, n), "%d of %d", k-1, n)
			require.Equal(t, ReasonOverdueCalls, reasonOfHang(r, k, n), "%d of %d", k, n)
		}
	}
}

// reasonOfHang returns why so many overdue calls of n open a circuit that a ratio of slow ones opens.
func reasonOfHang(r float64, overdue, n int) Reason {
	s := seeingOverdue(only(func(s *Settings) { s.SlowCallThreshold, s.SlowCallRatio, s.MinCalls = time.Second, r, 1 })).WithDefaults()
	m, now := newMachine(&s), time.Minute
	for range overdue {
		m.flights.begin(0)
	}
	for range n - overdue {
		m.gauge().window.at(now).add(false, false)
	}
	return m.overdueReason(now, m.testFlights(now))
}

// The same for what trips relative to the measured failure rate. The measured calls are so many that the ratio is the floor.
func TestRelativeRatiosTripExactly(t *testing.T) {
	for n := 2; n <= 40; n++ {
		for k := 2; k <= n; k++ { // never on one
			x := try(t, only(func(s *Settings) {
				s.Failures, s.MinCalls = Failures{Floor: float64(k) / float64(n), MinSamples: 1000}, n
			}))
			for range 1000 {
				x.gauge().baseline.at(0).add(false, false)
			}
			tripsAtExactly(x, k, n, ReasonRelativeFailures, Transient, 0)
		}
	}
}

func TestRatiosWaitForMinCalls(t *testing.T) {
	x := try(t, only(func(s *Settings) { s.FailureRatio = 0.25 }))
	x.calls(19, Transient, normal)
	x.calls(20, Throttled, normal) // neutral outcomes are no calls
	x.trips(ReasonFailureRatio, Transient, normal)
}

// A fast success never trips, though it is the call that completes the evidence: the next bad one does.
func TestFastSuccessNeverTrips(t *testing.T) {
	x := try(t, only(func(s *Settings) { s.FailureRatio, s.SlowCallThreshold = 0.25, time.Second }))
	x.calls(19, Transient, normal)
	x.calls(1, Success, time.Second)
	require.Equal(t, Closed, x.state)
	x.trips(ReasonFailureRatio, Transient, normal)

	x.reset(x.now)
	x.calls(19, Transient, normal)
	x.trips(ReasonFailureRatio, Success, time.Second+1) // a slow one does, and for the first condition that is met
}

// The conditions are asked in order, so the reason is the first that is met.
func TestFirstConditionIsTheReason(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*Settings)
		want   Reason
	}{
		{"all on", func(*Settings) {}, ReasonConsecutiveFailures},
		{"not in a row", func(s *Settings) { s.ConsecutiveFailures = 21 }, ReasonFailureRatio},
		{"no constant ratio", func(s *Settings) { s.ConsecutiveFailures, s.FailureRatio = Disabled, 0 }, ReasonRelativeFailures},
		{"slow alone", func(s *Settings) {
			s.ConsecutiveFailures, s.FailureRatio, s.Failures.Off = Disabled, 0, true
		}, ReasonSlowCalls},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := Settings{
				ConsecutiveFailures: 20, FailureRatio: 0.9, SlowCallThreshold: time.Second, SlowCallRatio: 0.9,
				Failures: Failures{MinSamples: 20, Floor: 0.9},
			}
			test.change(&s)
			x := try(t, s)
			x.calls(19, Transient, 2*time.Second)
			x.trips(test.want, Transient, 2*time.Second)
		})
	}
}

func TestRelativeFailuresTrip(t *testing.T) {
	for _, test := range []struct {
		name            string
		failures, calls int     // that make the baseline
		ratio           float64 // that trips beside it
		trips           int     // of 20 calls; 0: not even all of them
	}{
		{"no failure: the floor, but never on one", 0, 980, 0.05, 2},
		{"too few samples", 0, 79, 0, 0},
		{"just enough samples", 0, 80, 0.05, 2},
		{"one per cent", 10, 980, 0.05, 2},
		{"two per cent: five times normal", 16, 980, 0.1, 2},
		{"five per cent: the incident raises its own baseline", 44, 980, 0.25, 6},
		{"a third: everything must fail", 320, 980, 1, 20},
	} {
		t.Run(test.name, func(t *testing.T) {
			x := try(t, Settings{ConsecutiveFailures: Disabled, SlowCalls: SlowCalls{Off: true}, MinCalls: 20})
			for i := range test.calls {
				x.gauge().baseline.at(0).add(i < test.failures, false)
			}
			x.now = 45 * time.Second
			if test.trips == 0 {
				x.calls(20, Transient, normal)
				return
			}
			x.calls(20-test.trips, Success, normal)
			x.calls(test.trips-1, Transient, normal)
			change := x.trips(ReasonRelativeFailures, Transient, normal)
			assert.Equal(t, test.trips, change.counts.Failures)
		})
	}
}

func TestWindowForgetsWhatIsOld(t *testing.T) {
	x := try(t, only(func(s *Settings) { s.FailureRatio = 0.5 }))
	x.calls(10, Transient, normal)
	x.now = 30*time.Second - 1
	x.calls(9, Success, normal)
	require.Equal(t, Counts{Calls: 19, Failures: 10}, withoutStreak(x.counts(x.now)))
	x.now = 30 * time.Second
	require.Equal(t, Counts{Calls: 9}, withoutStreak(x.counts(x.now)), "a read drops what is old")
	x.calls(10, Success, normal)
	x.calls(18, Transient, normal)
	x.trips(ReasonFailureRatio, Transient, normal)
	assert.Zero(t, x.gauges.window.read(x.now), "the evidence served one decision")
}

func withoutStreak(c Counts) Counts {
	c.ConsecutiveFailures = 0
	return c
}

func TestSettingsPayForWhatTheyConfigure(t *testing.T) {
	for _, test := range []struct {
		name                      string
		settings                  Settings
		window, failures, latency bool
	}{
		{"default", Settings{}, true, true, true},
		{"consecutive alone", only(func(s *Settings) { s.ConsecutiveFailures = 5 }), false, false, false},
		{"a failure ratio", only(func(s *Settings) { s.FailureRatio = 1 }), true, false, false},
		{"a constant threshold", only(func(s *Settings) { s.SlowCallThreshold = 1 }), true, false, false},
		{"measured failures", only(func(s *Settings) { s.Failures.Off = false }), true, true, false},
		{"measured latency", only(func(s *Settings) { s.SlowCalls.Off = false }), true, false, true},
		{"both thresholds", only(func(s *Settings) { s.SlowCalls.Off, s.SlowCallThreshold = false, 1 }), true, false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			x := try(t, test.settings)
			g := x.gauge()
			assert.Equal(t, test.window, g != nil, "trip window")
			assert.Equal(t, test.failures, g != nil && g.baseline != nil, "failure baseline")
			assert.False(t, g != nil && (g.failures != nil || g.slowness != nil), "tests")
			assert.Equal(t, test.latency, x.gauge() != nil && x.gauge().latency != nil, "latency baseline")
		})
	}
}

// A long outage opens the circuit a thousand times in a row. No break overflows, and none is longer than the maximum.
func TestBreaksOfALongOutage(t *testing.T) {
	for _, limit := range []time.Duration{2 * time.Minute, longest - 1, longest} {
		x := try(t, only(func(s *Settings) {
			s.ConsecutiveFailures, s.BreakDuration, s.MaxBreakDuration = 1, time.Nanosecond, limit
		}))
		change := x.trips(ReasonConsecutiveFailures, Transient, 0)
		for opens := 1; opens <= 1000; opens++ {
			require.Equal(t, opens, change.opens)
			require.Equal(t, grownModel(time.Nanosecond, limit, opens), change.breakFor, "open %d", opens)
			x.period.breakFor = 0 // nobody lives to see it end
			probe, begins := x.ask()
			require.Equal(t, ReasonBreakElapsed, begins.reason)
			change = x.end(probe, Transient, 0)
		}
	}
}
