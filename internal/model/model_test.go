package model_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
)

// TestBreakerEqualsModel plays random inputs of many seeds, and checks that they reach every reason for a change there is.
func TestBreakerEqualsModel(t *testing.T) {
	const seeds = 2000
	invalid := 0
	reached := map[breaker.Reason]int{}
	alarms, slowAlarms := 0, 0 // of the sequential tests
	for seed := range uint64(seeds) {
		input := randomInput(seed)
		r, ops := prepare(input)
		if r == nil {
			invalid++
			continue
		}
		if !r.run(ops) {
			t.Fatalf("seed %d, shortened:\n%s", seed, shortest(input))
		}
		for _, e := range r.events {
			reached[e.Reason]++
			d := r.settings.WithDefaults()
			if e.Reason == breaker.ReasonRelativeFailures && d.Failures.FalseAlarmEvery > 0 {
				alarms++
			}
			if e.Reason == breaker.ReasonSlowCalls && d.SlowCalls.FalseAlarmEvery > 0 && d.SlowCallThreshold == 0 {
				slowAlarms++
			}
		}
	}
	require.Less(t, invalid, seeds/10, "inputs whose settings are not valid")
	for reason := breaker.ReasonConsecutiveFailures; reason <= breaker.ReasonOverdueCalls; reason++ {
		require.Greater(t, reached[reason], seeds/100, "changes with reason %v", reason)
	}
	require.Greater(t, alarms, seeds/500, "alarms of the test on failures")
	require.Greater(t, slowAlarms, seeds/500, "alarms of the test on slow calls")
}

// TestQuantileRankEqualsModel compares the ranks that two quantiles fall on, for products of quantile and number that are
// whole, nearly whole by the rounding of binary fractions either way, and in between. Each sample falls into a counter of its
// own.
func TestQuantileRankEqualsModel(t *testing.T) {
	const counters = 200
	for _, q := range []float64{0.01, 0.05, 0.07, 0.1, 0.14, 0.29, 0.3, 1.0 / 3, 0.35, 0.5} {
		for n := 1; n <= counters; n += 1 + n/40 {
			s := breaker.SlowCalls{Quantile: q, MinSamples: n, Multiple: math.Nextafter(1, 2), Window: 24 * time.Hour}
			if q < 0.5 {
				s.TailQuantile = 1 - q
			}
			r := newRig(breaker.Settings{SlowCallRatio: 1, SlowCalls: s}, false, true)
			for i := range n {
				latency := time.Duration(i) * time.Microsecond
				if octave := i/8 - 1; octave > 0 {
					latency = time.Duration(8+i%8) << octave * time.Microsecond
				}
				r.log = append(r.log, "")
				r.apply(op{kind: call, how: recordLatency, latency: latency})
			}
			r.compareReaders()
			require.Empty(t, r.faults, "quantile %v of %d samples", q, n)
		}
	}
}

func randomInput(seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	return randomBytes(r, 60+r.IntN(900))
}

func randomBytes(r *rand.Rand, n int) []byte {
	bytes := make([]byte, n)
	for i := range bytes {
		bytes[i] = byte(r.Uint32())
	}
	return bytes
}

// shortest leaves out of a failing input whatever can be left out, in ever smaller pieces, turns to zero what cannot, and
// describes what is left.
func shortest(input []byte) string {
	for size := len(input) / 2; size > 0; size /= 2 {
		for at := 0; at+size <= len(input); {
			shorter := slices.Concat(input[:at], input[at+size:])
			if fails(shorter) {
				input = shorter
			} else {
				at += size
			}
		}
	}
	for i := range input {
		simpler := slices.Clone(input)
		simpler[i] = 0
		if fails(simpler) {
			input = simpler
		}
	}
	failure, _ := play(input)
	return failure
}

func fails(input []byte) bool {
	failure, _ := play(input)
	return failure != ""
}
