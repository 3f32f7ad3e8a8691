package model_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
)

// What random inputs hardly reach: rules that depend on how many calls a second there are.

// calls makes so many calls with an outcome, some time apart, and compares after each.
func (r *rig) calls(n int, gap time.Duration, o breaker.Outcome) {
	for range n {
		r.log = append(r.log, "")
		r.apply(op{kind: call, how: recordLatency, outcome: o})
		r.compareEvents()
		r.compareReaders()
		r.clock.elapsed += gap
	}
}

// TestStreakOfABusyBreakerEqualsModel compares the failures in a row that open a breaker with less and with more calls a second
// than a busy one has. They lie so far apart that the least number of them just lasts long enough.
func TestStreakOfABusyBreakerEqualsModel(t *testing.T) {
	streaks := map[int]bool{}
	for _, gap := range []time.Duration{60, 90, 95, 100, 105, 110, 200} {
		r := newRig(breaker.Settings{}, false, true)
		r.calls(700, gap*time.Millisecond, breaker.Success)
		r.calls(40, 22*time.Millisecond, breaker.Transient)
		require.Empty(t, r.faults, "calls %v ms apart", int(gap))
		require.Equal(t, breaker.ReasonConsecutiveFailures, r.events[0].Reason)
		streaks[r.events[0].Counts.ConsecutiveFailures] = true
	}
	require.Greater(t, len(streaks), 1, "the rate never mattered: %v", streaks)
}

// TestBreakOfFewCallsEqualsModel compares the first break after less and after more calls than its rate needs beside the present
// bucket.
func TestBreakOfFewCallsEqualsModel(t *testing.T) {
	s := breaker.Settings{ConsecutiveFailures: 1, Window: time.Second, Failures: breaker.Failures{Window: 50 * time.Second}}
	for n := range 40 {
		r := newRig(s, false, true)
		r.calls(n, time.Millisecond, breaker.Success)
		r.clock.elapsed += 6 * time.Second
		r.calls(1, 0, breaker.Transient)
		require.Empty(t, r.faults, "%d calls", n)
		require.Equal(t, breaker.ReasonConsecutiveFailures, r.events[0].Reason)
	}
}

// TestRampByEvidenceEqualsModel compares ramps of a dependency that fails many of the calls from before and from after a cut, up to
// the cuts in a row that re-open, and ramps on which calls hang, end late and are given up.
func TestRampByEvidenceEqualsModel(t *testing.T) {
	reached := map[breaker.Reason]int{}
	for seed := range uint64(400) {
		random := rand.New(rand.NewPCG(seed, 3))
		s := breaker.Settings{ConsecutiveFailures: 2, BreakDuration: time.Second, Recovery: breaker.Recovery{Initial: 0.4}}
		next := failingCall
		if seed%4 == 0 {
			s.Failures.FalseAlarmEvery = breaker.Disabled
		}
		if seed%2 == 1 {
			s.SlowCallThreshold, s.Recovery.Initial, next = 10*time.Millisecond, 0.2, hangingCall
		}
		r := newRig(s, false, true)
		r.calls(2, 0, breaker.Transient)
		r.clock.elapsed += time.Second
		r.calls(2+random.IntN(80), 0, breaker.Success)
		for range 120 {
			r.log = append(r.log, "")
			o, step := next(random)
			r.apply(o)
			r.compareEvents()
			r.compareReaders()
			r.clock.elapsed += step
		}
		require.Empty(t, r.faults, "seed %d", seed)
		for _, e := range r.events {
			reached[e.Reason]++
		}
	}
	require.Positive(t, reached[breaker.ReasonRampFailed], "%v", reached)
	require.Positive(t, reached[breaker.ReasonRampCompleted], "%v", reached)
}

func failingCall(random *rand.Rand) (o op, step time.Duration) {
	o = op{kind: call, how: recordLatency, latency: time.Duration(random.IntN(3)) * 10 * time.Millisecond}
	if random.IntN(8) > 0 {
		o.outcome = breaker.Transient
	}
	return o, time.Duration(random.IntN(2)) * 10 * time.Millisecond
}

func hangingCall(random *rand.Rand) (o op, step time.Duration) {
	o = op{kind: admit}
	if random.IntN(5) < 2 {
		o = op{kind: end, choice: random.IntN(8), how: done}
		switch random.IntN(4) {
		case 0:
			o.how, o.outcome = doneCancelled, breaker.Transient
		case 1:
			o.outcome = breaker.Transient
		}
	}
	return o, time.Duration(random.IntN(4)) * time.Millisecond
}

// TestCallInFlightAcrossThresholdsEqualsModel compares what becomes of a call in flight when the threshold rises by more and by less
// than the slots can follow.
func TestCallInFlightAcrossThresholdsEqualsModel(t *testing.T) {
	lost := map[bool]int{}
	for ms := range 40 {
		s := breaker.Settings{ConsecutiveFailures: breaker.Disabled}
		s.SlowCalls = breaker.SlowCalls{Multiple: 10, MinSamples: 1, Floor: breaker.Disabled, Window: 5 * time.Minute}
		r := newRig(s, false, true)
		usual := op{kind: call, how: recordLatency, latency: 10 * time.Millisecond}
		slower := usual
		slower.latency = time.Duration(10+ms) * time.Millisecond
		for _, o := range []op{usual, {kind: admit}, {kind: admit}, slower, slower, slower} {
			r.log = append(r.log, "")
			r.apply(o)
		}
		r.clock.elapsed += time.Second
		r.log = append(r.log, "")
		r.apply(op{kind: admit})
		r.compareReaders()
		require.Empty(t, r.faults, "from 10 ms to %v", slower.latency)
		lost[r.model.Snapshot().SlowEvidence == 0]++
	}
	require.Len(t, lost, 2, "lost or not: %v", lost)
}
