package grid

import (
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/brownout-go/breaker"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tiny is a plan of every kind of cell that takes no time.
func tiny() Plan {
	return Plan{
		Loads:  []Load{{PerSecond: 3, Length: time.Hour}, {PerSecond: 20, Length: 30 * time.Minute}},
		Steady: []float64{0.01, 0.3},
		Shifts: []Shift{{0.01, 1}},
		Runs:   5,
	}
}

func TestLimit(t *testing.T) {
	for _, test := range []struct {
		shift Shift
		rate  float64
		want  float64
	}{
		// ln(100 × 2,592,000) = 19.3732; ln(3 × 2,592,000) = 15.8666
		{Shift{0.01, 1}, 100, 19.3732 / 4.60517},  // nothing but failures: ln(1/0.01)
		{Shift{0.1, 0.5}, 100, 19.3732 / 0.51083}, // 0.5·ln 5 + 0.5·ln(5/9)
		{Shift{0.05, 0.3}, 3, 15.8666 / 0.323755}, // 0.3·ln 6 + 0.7·ln(14/19)
	} {
		assert.InEpsilon(t, test.want, test.shift.Limit(test.rate), 1e-4, "%v at %v/s", test.shift, test.rate)
	}
}

func TestStream(t *testing.T) {
	t.Run("counts an open for every five calls that fail", func(t *testing.T) {
		s := newStream(Classic.Settings, 10, 1)
		calls := 0
		for range 1000 {
			calls++
			if s.call(1) {
				assert.Equal(t, 5, calls)
				s.breaker.Reset()
				calls = 0
			}
		}
	})
	t.Run("keeps the rate and the length", func(t *testing.T) {
		s := newStream(Classic.Settings, 10, 1)
		start := s.clock.now
		assert.Zero(t, s.healthy(0, time.Hour))
		assert.InDelta(t, time.Hour, s.clock.now.Sub(start), float64(10*time.Second))
		assert.InEpsilon(t, 36_000, s.breaker.Snapshot().Totals.Successes, 0.02)
	})
	t.Run("the call that opens is counted", func(t *testing.T) {
		calls, opened := newStream(Classic.Settings, 10, 1).untilOpen(1, time.Minute)
		assert.True(t, opened)
		assert.Equal(t, 5, calls)
	})
	t.Run("what never opens is missed after as long as it may take", func(t *testing.T) {
		calls, opened := newStream(Classic.Settings, 10, 1).untilOpen(0, time.Minute)
		assert.False(t, opened)
		assert.InEpsilon(t, 600, calls, 0.2)
	})
}

func TestRules_judge_failures_only(t *testing.T) {
	assert.Equal(t, breaker.Settings{SlowCalls: breaker.SlowCalls{Off: true}}, ZeroSettings.Settings)
	classic := Classic.Settings
	assert.True(t, classic.SlowCalls.Off)
	assert.Negative(t, classic.Failures.FalseAlarmEvery, "no sequential test")
	for _, rule := range rules {
		require.NoError(t, rule.Settings.Validate(), rule.Name)
	}
}

func TestRun_is_the_same_on_any_number_of_cores(t *testing.T) {
	all := tiny().Run()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	assert.Equal(t, all, tiny().Run())
}

func TestRun_tells_the_rules_apart(t *testing.T) {
	r := tiny().Run()
	require.Len(t, r.Health, 8)
	require.Len(t, r.Detections, 4)
	for _, h := range r.Health {
		if h.Steady == 0.3 {
			assert.Equal(t, h.Rule.Name == Classic.Name, h.Opens > 0, "%s at %v/s", h.Rule.Name, h.Load.PerSecond)
		}
	}
	for _, d := range r.Detections {
		assert.Zero(t, d.Missed)
		assert.LessOrEqual(t, d.Median, 2+max(6, d.Rate), "%s at %v/s: what ends within a moment is one event", d.Rule.Name, d.Rate)
	}
}

// found is a result in which all cells are equal, but for what edit changes.
func found(edit func(r *Result)) Result {
	r := Result{Plan: Plan{Steady: []float64{0.01}, Shifts: []Shift{{0.01, 1}}}}
	for _, rate := range []float64{1.33, 3, 20} {
		for _, rule := range rules {
			r.Health = append(r.Health, Health{Rule: rule, Load: Load{rate, 10 * day}, Steady: 0.01})
			r.Detections = append(r.Detections, Detection{Rule: rule, Rate: rate, Shift: r.Plan.Shifts[0], Median: 5})
		}
	}
	edit(&r)
	return r
}

func TestTargets(t *testing.T) {
	const worst, average, multiple, never = 0, 1, 2, 3
	limit := Shift{0.01, 1}.Limit(3)
	for _, test := range []struct {
		name   string
		edit   func(r *Result)
		missed []int
	}{
		{"all kept", func(*Result) {}, nil},
		{"one false open in ten days is three in 30", func(r *Result) { r.Health[1].Opens = 1 }, nil},
		{"two are six", func(r *Result) { r.Health[1].Opens = 2 }, []int{worst, average}},
		{"the average of 3, 3 and 0", func(r *Result) { r.Health[1].Opens, r.Health[3].Opens = 1, 1 }, []int{average}},
		{"opens of the classic rules are no fault", func(r *Result) { r.Health[0].Opens = 99 }, nil},
		{"just quick enough", func(r *Result) { r.Detections[3].Median = 2.19 * limit }, nil},
		{"just too late", func(r *Result) { r.Detections[3].Median = 2.21 * limit }, []int{multiple}},
		{"late where calls are few", func(r *Result) { r.Detections[1].Median = 99 }, nil},
		{"seldom missed at 3 calls/s", func(r *Result) { r.Detections[3].Missed = 0.1 }, nil},
		{"seldom missed at 20 calls/s", func(r *Result) { r.Detections[5].Missed = 0.01 }, []int{never}},
		{"mostly missed", func(r *Result) { r.Detections[3].Median = math.Inf(1) }, []int{multiple}},
	} {
		r := found(test.edit)
		var missed []int
		for i, target := range r.Targets() {
			if !target.Kept() {
				missed = append(missed, i)
			}
		}
		assert.Equal(t, test.missed, missed, test.name)
		assert.Equal(t, len(test.missed), strings.Count(r.TargetTable(), "| missed |"), test.name)
	}
}

func TestTables(t *testing.T) {
	r := found(func(r *Result) {
		r.Health[0].Opens = 1234
		r.Detections[2].Median, r.Detections[2].Missed = math.Inf(1), 0.6
		r.Detections[4].Missed = 0.1
	})
	assert.Contains(t, r.HealthTable(), "| 1.33 | 10 | classic rules | 3,702 |\n| 1.33 | 10 | zero settings | 0 |\n")
	assert.Equal(t, 8, strings.Count(r.HealthTable(), "\n"), "a row for each rate and rule")
	detections := r.DetectionTable()
	assert.Equal(t, 11, strings.Count(detections, "\n"), "the limits have rows of their own")
	assert.Contains(t, detections, "| 3 | limit | 3.4 |\n| 3 | classic rules | missed by 60 % |\n| 3 | zero settings | 5 (1.5 ×) |\n")
	assert.Contains(t, detections, "| 20 | classic rules | 5 (1.3 ×), missed by 10 % |\n")
}

func TestPlans_cover_the_grid(t *testing.T) {
	full, short := Full(), Short()
	assert.Len(t, full.Loads, 5)
	assert.Len(t, full.Steady, 7)
	assert.Len(t, full.Shifts, 8)
	for i, l := range full.Loads {
		assert.Less(t, short.Loads[i].Length, l.Length)
		assert.LessOrEqual(t, Health{Load: l, Opens: 1}.PerMonth(), 3.0, "a single false open misses no target")
	}
}
