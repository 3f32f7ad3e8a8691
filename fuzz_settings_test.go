package breaker

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// FuzzSettings checks that New succeeds exactly when Validate finds nothing, that it finds something exactly when a rule is
// broken, and that WithDefaults is idempotent and breaks no rule.
func FuzzSettings(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0, 4, 255, 4, 128, 0, 0, 0, 0, 0, 7, 0, 5, 35, 0, 0, 0, 0, 0, 0, 0, 7})
	f.Add([]byte{1, 97, 0, 0, 5, 1, 5, 38, 4, 10, 4, 20, 5, 42, 0, 0, 5, 33, 0, 0, 0, 4, 127, 0, 0, 4, 191, 0, 0, 5, 200})
	f.Fuzz(func(t *testing.T, input []byte) {
		s := filled[Settings](input)
		invalid := s.Validate()
		b, err := New(s)
		require.Equal(t, fmt.Sprint(invalid), fmt.Sprint(err), "as text, for NaN does not equal itself")
		require.Equal(t, invalid == nil, b != nil)
		if kept, sure := keepsRules(s); sure {
			require.Equal(t, kept, invalid == nil, "%+v: %v", s, invalid)
		}
		if invalid != nil {
			requireProblems(t, invalid)
		}
		d := s.WithDefaults()
		require.Equal(t, fmt.Sprint(d), fmt.Sprint(d.WithDefaults()), "WithDefaults is idempotent")
		if invalid == nil {
			require.NoError(t, d.Validate(), "the defaults of %+v", s)
		}
	})
}

// requireProblems checks that every problem names a field that there is.
func requireProblems(t *testing.T, err error) {
	t.Helper()
	var invalid *SettingsError
	require.ErrorAs(t, err, &invalid)
	require.NotEmpty(t, invalid.Error())
	for _, p := range invalid.Problems {
		var in, field string
		_, err := fmt.Sscanf(p.Error(), "%s is", &field)
		require.NoError(t, err)
		require.Equal(t, p.Field, field)
		for i, r := range field {
			if r == '.' {
				in, field = field[:i], field[i+1:]
				break
			}
		}
		of := reflect.TypeFor[Settings]()
		if in != "Settings" {
			nested, ok := of.FieldByName(in)
			require.True(t, ok, p.Field)
			of = nested.Type
		}
		_, ok := of.FieldByName(field)
		require.True(t, ok, p.Field)
	}
}

// keepsRules restates what the specification asks of settings. It is not sure where rounding decides.
func keepsRules(s Settings) (kept, sure bool) {
	if outOfRange(s) || outOfRecoveryRange(s.Recovery) {
		return false, true
	}
	failures, failuresOn, sure := race(s.Failures.Window, s.Failures.Off, s.Failures != Failures{}, failureNeed(s))
	latency, latencyOn, sureToo := race(s.SlowCalls.Window, s.SlowCalls.Off, s.SlowCalls != SlowCalls{}, latencyNeed(s))
	sure = sure && sureToo
	if tail := s.SlowCalls.TailQuantile; latencyOn && tail > 0 {
		spare := or(s.SlowCallRatio, 0.5)/2 - (1 - tail)
		sure = sure && math.Abs(spare) > 1e-9
		latency = latency && spare > 0
	}
	trips := s.ConsecutiveFailures != Disabled || s.FailureRatio > 0 || failuresOn || s.SlowCallThreshold > 0 || latencyOn
	return failures && latency && trips, sure
}

func or[T comparable](v, unwritten T) T {
	setDefault(&v, unwritten)
	return v
}

func failureNeed(s Settings) float64 {
	need := 2 * float64(or(s.Window, 30*time.Second))
	if s.Failures.FalseAlarmEvery == Disabled {
		need *= or(s.Failures.Multiple, 5)
	}
	return need
}

func latencyNeed(s Settings) float64 {
	share := or(s.SlowCalls.Quantile, 0.5)
	if s.SlowCalls.TailQuantile > 0 {
		share = min(share, 1-s.SlowCalls.TailQuantile)
	}
	return 2 * or(s.SlowCallRatio, 0.5) * float64(or(s.Window, 30*time.Second)) / share
}

// race tells whether a baseline window is as long as it needs to be, and whether its trip is on. A window that is not written
// is derived up to an hour; beyond it a trip that is not mentioned is off.
func race(window time.Duration, off, mentioned bool, need float64) (won, on, sure bool) {
	longest := float64(window)
	if window == 0 {
		longest = float64(time.Hour)
	}
	sure = math.Abs(longest-need) > 1+1e-9*need
	switch won = longest >= need; {
	case off:
		return true, false, true
	case window == 0 && !mentioned:
		return true, won, sure
	default:
		return won, true, sure
	}
}

func outOfRange(s Settings) bool {
	f, c := s.Failures, s.SlowCalls
	return slices.Contains([]bool{
		s.ConsecutiveFailures < Disabled, s.ProbeTimeout < Disabled, s.MaxWait < Disabled,
		s.MinCalls < 0, s.HalfOpenProbes < 0, s.ProbeSuccesses < 0, s.ProbeCohort < 0, s.MaxWaiting < 0,
		f.MinSamples < 0, c.MinSamples < 0,
		s.SlowCallThreshold < 0, s.BreakDuration < 0, s.MaxBreakDuration < 0, s.RejectionDelay < 0, f.Window < 0, c.Window < 0,
		s.Window != 0 && s.Window < time.Millisecond,
		tooOften(f.FalseAlarmEvery), tooOften(c.FalseAlarmEvery), c.Floor < Disabled,
		s.MaxBreakDuration > 0 && s.BreakDuration > s.MaxBreakDuration,
		!(s.FailureRatio >= 0 && s.FailureRatio <= 1), !(s.SlowCallRatio >= 0 && s.SlowCallRatio <= 1),
		!(f.Floor >= 0 && f.Floor <= 1), !(c.Quantile >= 0 && c.Quantile <= 0.5),
		f.Multiple != 0 && !(f.Multiple > 1 && !math.IsInf(f.Multiple, 1)),
		c.Multiple != 0 && !(c.Multiple > 1 && !math.IsInf(c.Multiple, 1)),
		c.TailQuantile != 0 && !(c.TailQuantile > or(c.Quantile, 0.5) && c.TailQuantile < 1),
		s.BreakJitter > JitterNone, s.WhenOpen > Wait,
	}, true)
}

func tooOften(every time.Duration) bool { return every != 0 && every != Disabled && every < time.Hour }

func outOfRecoveryRange(r Recovery) bool {
	return slices.Contains([]bool{
		!(r.Fraction >= 0 && !math.IsInf(r.Fraction, 1)),
		r.Fraction == 0 && !r.Off && (r.Min != 0 || r.Max != 0),
		!(r.Initial >= 0 && r.Initial < 1),
		r.Min < 0, r.Max < 0, r.Max > 0 && r.Min > r.Max,
	}, true)
}
