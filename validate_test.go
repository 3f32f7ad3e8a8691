package breaker_test

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
)

type (
	settings  = breaker.Settings
	failures  = breaker.Failures
	slowCalls = breaker.SlowCalls
	ramping   = breaker.Recovery
)

// problemsOf returns the problems of some settings, by field.
func problemsOf(t *testing.T, s settings) map[string]breaker.Problem {
	t.Helper()
	err := s.Validate()
	if err == nil {
		return nil
	}
	var all *breaker.SettingsError
	require.ErrorAs(t, err, &all)
	byField := map[string]breaker.Problem{}
	for _, p := range all.Problems {
		byField[p.Field] = p
	}
	return byField
}

// numberFields calls f with the path and a way to set each numeric field of the settings, those of nested structs included.
func numberFields(f func(path string, set func(*settings, float64), of reflect.Type)) {
	top := reflect.TypeFor[settings]()
	for _, field := range reflect.VisibleFields(top) {
		if field.Type.Kind() != reflect.Struct {
			numberField("Settings", field.Index, field, f)
			continue
		}
		for _, inner := range reflect.VisibleFields(field.Type) {
			numberField(field.Name, append(field.Index, inner.Index...), inner, f)
		}
	}
}

func numberField(owner string, index []int, field reflect.StructField, f func(string, func(*settings, float64), reflect.Type)) {
	set := func(s *settings, v float64) {
		target := reflect.ValueOf(s).Elem().FieldByIndex(index)
		target.Set(reflect.ValueOf(v).Convert(field.Type))
	}
	switch field.Type.Kind() {
	case reflect.Int, reflect.Int64, reflect.Float64:
		f(owner+"."+field.Name, set, field.Type)
	}
}

// onlyConsecutive turns off the trips that measure: a written value is checked also where nothing uses it.
func onlyConsecutive() settings {
	return settings{Failures: failures{Off: true}, SlowCalls: slowCalls{Off: true}}
}

func TestNegativesNaNAndInfinitiesAreProblems(t *testing.T) {
	fields := 0
	numberFields(func(path string, set func(*settings, float64), of reflect.Type) {
		fields++
		bad := []float64{-2, -1e9}
		if of.Kind() == reflect.Float64 {
			bad = append(bad, -1, -math.SmallestNonzeroFloat64, math.NaN(), math.Inf(1), math.Inf(-1))
		}
		for _, v := range bad {
			for _, s := range []settings{{}, onlyConsecutive()} {
				set(&s, v)
				p, ok := problemsOf(t, s)[path]
				require.True(t, ok, "%s = %v is no problem", path, v)
				require.Equal(t, fmt.Sprint(reflect.ValueOf(v).Convert(of)), fmt.Sprint(p.Value), path)
				require.NotEmpty(t, p.Message)
			}
		}
	})
	assert.Greater(t, fields, 25, "the fields were found")
}

// Disabled turns off six fields; elsewhere it is a problem.
func TestDisabled(t *testing.T) {
	mayBe := []string{
		"Settings.ConsecutiveFailures", "Settings.ProbeTimeout", "Settings.MaxWait",
		"Failures.FalseAlarmEvery", "SlowCalls.FalseAlarmEvery", "SlowCalls.Floor",
	}
	numberFields(func(path string, set func(*settings, float64), _ reflect.Type) {
		var s settings
		set(&s, breaker.Disabled)
		_, isProblem := problemsOf(t, s)[path]
		assert.Equal(t, !slices.Contains(mayBe, path), isProblem, path)
	})
}

func TestAllProblemsAtOnce(t *testing.T) {
	var s settings
	want := map[string]bool{}
	numberFields(func(path string, set func(*settings, float64), _ reflect.Type) {
		set(&s, -2)
		want[path] = true
	})
	s.BreakJitter, s.WhenOpen = 200, 200
	want["Settings.BreakJitter"], want["Settings.WhenOpen"] = true, true
	got := map[string]bool{}
	for field := range problemsOf(t, s) {
		got[field] = true
	}
	assert.Equal(t, want, got)
	assert.Equal(t, len(want), strings.Count(s.Validate().Error(), "\n\t"), "each on a line of its own, and none twice")
}

var above, below = math.Nextafter(1, 2), math.Nextafter(1, 0)

// Each bound is tried on both sides. A field that is empty means that the settings are valid.
var ranges = []struct {
	settings settings
	field    string
}{
	{settings{FailureRatio: math.SmallestNonzeroFloat64}, ""},
	{settings{FailureRatio: 1}, ""},
	{settings{FailureRatio: above}, "Settings.FailureRatio"},
	{settings{SlowCallRatio: 1}, ""},
	{settings{SlowCallRatio: above}, "Settings.SlowCallRatio"},
	{settings{Failures: failures{Multiple: above}}, ""},
	{settings{Failures: failures{Multiple: 1}}, "Failures.Multiple"},
	{settings{Failures: failures{Multiple: math.MaxFloat64, Off: true}}, ""},
	{settings{Failures: failures{Floor: 1}}, ""},
	{settings{Failures: failures{Floor: above}}, "Failures.Floor"},
	{settings{Failures: failures{FalseAlarmEvery: time.Hour}}, ""},
	{settings{Failures: failures{FalseAlarmEvery: time.Hour - 1}}, "Failures.FalseAlarmEvery"},
	{settings{SlowCalls: slowCalls{Multiple: above}}, ""},
	{settings{SlowCalls: slowCalls{Multiple: 1}}, "SlowCalls.Multiple"},
	{settings{SlowCalls: slowCalls{Quantile: 0.5}}, ""},
	{settings{SlowCalls: slowCalls{Quantile: math.Nextafter(0.5, 1)}}, "SlowCalls.Quantile"},
	{settings{SlowCalls: slowCalls{Quantile: math.SmallestNonzeroFloat64, Off: true}}, ""},
	{settings{SlowCalls: slowCalls{TailQuantile: below, Window: time.Hour, Off: true}}, ""},
	{settings{SlowCalls: slowCalls{TailQuantile: 1, Off: true}}, "SlowCalls.TailQuantile"},
	{settings{SlowCalls: slowCalls{TailQuantile: 0.5}}, "SlowCalls.TailQuantile"},
	{settings{SlowCalls: slowCalls{Quantile: 0.3, TailQuantile: 0.3, Off: true}}, "SlowCalls.TailQuantile"},
	{settings{Window: time.Millisecond}, ""},
	{settings{Window: time.Millisecond - 1}, "Settings.Window"},
	{settings{MinCalls: 1, HalfOpenProbes: 1, ProbeSuccesses: 1, ProbeCohort: 1, MaxWaiting: 1, ConsecutiveFailures: 1}, ""},
	{settings{SlowCallThreshold: 1, BreakDuration: 1, MaxBreakDuration: 1, ProbeTimeout: 1, MaxWait: 1, RejectionDelay: 1}, ""},
	{settings{Recovery: ramping{Fraction: math.SmallestNonzeroFloat64}}, ""},
	{settings{Recovery: ramping{Fraction: math.MaxFloat64}}, ""},
	{settings{Recovery: ramping{Fraction: 1, Initial: below, Min: 1, Max: 1}}, ""},
	{settings{Recovery: ramping{Fraction: 1, Initial: 1}}, "Recovery.Initial"},
	{settings{BreakJitter: breaker.JitterNone}, ""},
	{settings{BreakJitter: 3}, "Settings.BreakJitter"},
	{settings{WhenOpen: breaker.Wait}, ""},
	{settings{WhenOpen: 2}, "Settings.WhenOpen"},
}

func TestRanges(t *testing.T) {
	for _, test := range ranges {
		got := problemsOf(t, test.settings)
		if test.field == "" {
			assert.Empty(t, got, "%+v", test.settings)
			continue
		}
		assert.Len(t, got, 1, "%+v", test.settings)
		assert.Contains(t, got, test.field)
	}
}

// A conflict names both fields, so that nobody has to guess what the value was held against.
func TestConflicts(t *testing.T) {
	for _, test := range []struct {
		name         string
		settings     settings
		field, other string
	}{
		{"breaks", settings{BreakDuration: time.Minute, MaxBreakDuration: time.Minute - 1},
			"Settings.BreakDuration", "Settings.MaxBreakDuration"},
		{"ramp lengths", settings{Recovery: ramping{Fraction: 1, Min: time.Minute, Max: time.Minute - 1}},
			"Recovery.Min", "Recovery.Max"},
		{"a shortest ramp without a length", settings{Recovery: ramping{Min: 1}}, "Recovery.Fraction", "Recovery.Min"},
		{"a longest ramp without a length", settings{Recovery: ramping{Max: 1}}, "Recovery.Fraction", "Recovery.Max"},
		{"both without a length", settings{Recovery: ramping{Initial: 0.1, Min: 1, Max: 1}}, "Recovery.Fraction", "Recovery.Min"},
		{"tail and ratio", settings{SlowCalls: slowCalls{TailQuantile: 0.74}}, "SlowCalls.TailQuantile", "Settings.SlowCallRatio"},
		{"no trip", settings{
			ConsecutiveFailures: breaker.Disabled, Failures: failures{Off: true}, SlowCalls: slowCalls{Off: true},
		}, "Settings.ConsecutiveFailures", "every trip is off"},
		{"no trip, because both step aside", settings{ConsecutiveFailures: breaker.Disabled, Window: time.Hour},
			"Settings.ConsecutiveFailures", "every trip is off"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := problemsOf(t, test.settings)
			require.Len(t, got, 1)
			require.Contains(t, got, test.field)
			assert.Contains(t, got[test.field].Message, test.other)
		})
	}
}

// The fraction at the start is that of every ramp, and what is off needs no length.
func TestRecoveryWithoutALength(t *testing.T) {
	for _, r := range []ramping{
		{Initial: 0.1},
		{Off: true, Min: 1},
		{Off: true, Max: 1},
		{Off: true, Initial: 0.1, Min: 1, Max: 2},
	} {
		s := settings{Recovery: r}
		require.NoError(t, s.Validate(), "%+v", r)
		assert.NoError(t, s.WithDefaults().Validate(), "%+v", r)
	}
}

// One trip is enough.
func TestOneTripIsEnough(t *testing.T) {
	for _, turnOn := range []func(*settings){
		func(s *settings) { s.ConsecutiveFailures = 0 },
		func(s *settings) { s.FailureRatio = 1 },
		func(s *settings) { s.Failures.Off = false },
		func(s *settings) { s.SlowCallThreshold = 1 },
		func(s *settings) { s.SlowCalls.Off = false },
	} {
		s := settings{ConsecutiveFailures: breaker.Disabled, Failures: failures{Off: true}, SlowCalls: slowCalls{Off: true}}
		turnOn(&s)
		assert.NoError(t, s.Validate())
	}
}

// multiplied is the trip at a multiple of the measured rate, without the test.
func multiplied(window time.Duration) failures {
	return failures{Window: window, FalseAlarmEvery: breaker.Disabled}
}

// A baseline that absorbs the incident before the trip window has filled cannot trip: both sides and the knobs are named.
func TestRaces(t *testing.T) {
	for _, test := range []struct {
		name     string
		settings settings
		field    string // empty: the race is won
		says     []string
	}{
		{"the test, met exactly", settings{Failures: failures{Window: time.Minute}}, "", nil},
		{"the test, missed by a nanosecond", settings{Failures: failures{Window: time.Minute - 1}}, "Failures.Window", nil},
		{"the test", settings{Failures: failures{Window: 40 * time.Second}}, "Failures.Window",
			[]string{"Failures.Window is 40 s", "2 × Settings.Window is 60 s", "raise Failures.Window or lower Settings.Window"}},
		{"the test, not derived past an hour", settings{Window: 30*time.Minute + 1, Failures: failures{MinSamples: 50}},
			"Failures.Window", []string{"3600", "raise Failures.Window or lower Settings.Window"}},
		{"failures, met exactly", settings{Failures: multiplied(5 * time.Minute)}, "", nil},
		{"failures, missed by a nanosecond", settings{Failures: multiplied(5*time.Minute - 1)}, "Failures.Window", nil},
		{"failures", settings{Failures: multiplied(time.Minute)}, "Failures.Window",
			[]string{"Failures.Window / Failures.Multiple is 12 s", "2 × Settings.Window is 60 s",
				"raise Failures.Window", "lower Failures.Multiple or Settings.Window"}},
		{"failures, off", settings{Failures: failures{Window: time.Minute, Off: true}}, "", nil},
		{"failures, not derived past an hour", settings{Window: 360*time.Second + 1, Failures: multiplied(0)},
			"Failures.Window",
			[]string{"3600", "Failures.Multiple", "Settings.Window"}},
		{"latency, met exactly", settings{SlowCalls: slowCalls{Window: time.Minute}}, "", nil},
		{"latency, missed by a nanosecond", settings{SlowCalls: slowCalls{Window: time.Minute - 1}}, "SlowCalls.Window", nil},
		{"latency", settings{SlowCalls: slowCalls{Window: 40 * time.Second}}, "SlowCalls.Window",
			[]string{"SlowCalls.Quantile × SlowCalls.Window is 20 s", "2 × Settings.SlowCallRatio × Settings.Window is 30 s",
				"raise SlowCalls.Window", "lower Settings.SlowCallRatio or Settings.Window"}},
		{"latency, off", settings{SlowCalls: slowCalls{Window: time.Second, Off: true}}, "", nil},
		{"latency, not derived past an hour", settings{SlowCalls: slowCalls{Quantile: 0.001}}, "SlowCalls.Window",
			[]string{"30000 s", "3600 s", "Settings.SlowCallRatio", "Settings.Window"}},
		{"a product that overflows", settings{
			Failures: failures{Multiple: math.MaxFloat64, FalseAlarmEvery: breaker.Disabled},
		}, "Failures.Window", nil},
		{"the longest window of all", settings{Window: math.MaxInt64, Failures: failures{Window: math.MaxInt64}}, "Failures.Window", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := problemsOf(t, test.settings)
			if test.field == "" {
				require.Empty(t, got)
				return
			}
			require.Len(t, got, 1)
			require.Contains(t, got, test.field)
			for _, text := range test.says {
				assert.Contains(t, got[test.field].Message, text)
			}
		})
	}
}

// A race is not judged by a number that is wrong in itself: one mistake is one problem.
func TestRacesWaitForSoundNumbers(t *testing.T) {
	for _, s := range []settings{
		{Window: -time.Hour, Failures: failures{Window: time.Second}, SlowCalls: slowCalls{Window: time.Second}},
		{Failures: failures{Multiple: math.NaN(), Window: time.Second}},
		{SlowCalls: slowCalls{Quantile: 7, Window: time.Second}},
		{SlowCallRatio: -1, SlowCalls: slowCalls{Window: time.Second}},
	} {
		assert.Len(t, problemsOf(t, s), 1, "%+v", s)
	}
}

// A problem elsewhere hides no conflict.
func TestConflictsBesideOtherProblems(t *testing.T) {
	for _, s := range []settings{
		{MaxWaiting: -2, Failures: failures{Window: time.Second}},
		{MaxWaiting: -2, SlowCalls: slowCalls{Window: time.Second}},
		{MaxWaiting: -2, SlowCalls: slowCalls{Quantile: 0.3, TailQuantile: 0.3, Off: true}},
	} {
		assert.Len(t, problemsOf(t, s), 2, "%+v", s)
	}
}

// The race that is lost is named by the share that decides it: the smaller one.
func TestRaceNamesTheShareThatDecides(t *testing.T) {
	tail := slowCalls{Quantile: 0.5, TailQuantile: 0.75, Window: time.Second}
	low := slowCalls{Quantile: 0.2, TailQuantile: 0.75, Window: time.Second}
	assert.Contains(t, problemsOf(t, settings{SlowCalls: tail})["SlowCalls.Window"].Message, "(1 − SlowCalls.TailQuantile) × SlowCalls.Window")
	assert.Contains(t, problemsOf(t, settings{SlowCalls: low})["SlowCalls.Window"].Message, "SlowCalls.Quantile × SlowCalls.Window")
}
