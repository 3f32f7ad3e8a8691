package speed

import (
	"time"

	"github.com/brownout-go/breaker"
	"github.com/brownout-go/breaker/benchmarks/internal/entry"
)

// SettingCost is what ours costs with a setting on, as multiples of zero settings in the same run.
type SettingCost struct {
	Name                       string
	Success, Parallel, Refused float64
	Allocs                     float64 // per successful call
}

// settingCosts are the settings to measure beside zero settings: the classic rules, and what the tests and the calls in flight cost.
func settingCosts() (names []string, benches []entry.Bench) {
	off := time.Duration(breaker.Disabled)
	for _, s := range []struct {
		name     string
		settings breaker.Settings
	}{
		{"zero settings", breaker.Settings{}},
		{"`Classic()`", breaker.Classic()},
		{"`SlowCalls.EndedOnly`", breaker.Settings{SlowCalls: breaker.SlowCalls{EndedOnly: true}}},
		{"without tests", breaker.Settings{
			Failures: breaker.Failures{FalseAlarmEvery: off}, SlowCalls: breaker.SlowCalls{FalseAlarmEvery: off},
		}},
	} {
		names, benches = append(names, s.name), append(benches, entry.OursBench(s.settings))
	}
	return names, benches
}

// MeasureSettings times ours with each of the settings, all interleaved in one run.
func MeasureSettings(plan Plan) []SettingCost {
	names, benches := settingCosts()
	var contestants []Contestant
	for i, b := range benches {
		contestants = append(contestants, Contestant{Name: names[i], Loop: b.Success},
			Contestant{Name: names[i], Loop: b.Success, Parallel: true}, Contestant{Name: names[i], Loop: b.Refused})
	}
	timings := plan.Measure(contestants)
	ratio := func(setting, what int) float64 {
		return timings[3*setting+what].Nanoseconds / timings[what].Nanoseconds
	}
	costs := make([]SettingCost, len(names))
	for i, name := range names {
		costs[i] = SettingCost{name, ratio(i, 0), ratio(i, 1), ratio(i, 2), timings[3*i].Allocs}
	}
	return costs
}
