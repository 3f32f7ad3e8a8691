package protect

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTargets_name_columns_that_there_are(t *testing.T) {
	scenarios := Plan{Pace: Full}.All()
	columns := 0
	for _, target := range Targets(scenarios) {
		if _, named := bounds[target.Scenario][target.Column]; named {
			columns++
		}
	}
	want := 0
	for _, of := range bounds {
		want += len(of)
	}
	assert.Equal(t, want, columns, "each bound finds its column")
}

func TestTargets_ask_every_healthy_scenario_for_no_false_open(t *testing.T) {
	asked := map[string]float64{}
	scenarios := Plan{Pace: Full}.All()
	for _, target := range Targets(scenarios) {
		if target.Column == falseOpensName {
			asked[target.Scenario] = target.Bound
		}
	}
	for _, s := range scenarios {
		bound, found := asked[s.Key]
		assert.Equal(t, s.Healthy, found, s.Key)
		assert.Zero(t, bound, s.Key)
	}
}

func TestColumn_met(t *testing.T) {
	lower, higher := Column{}, Column{Higher: true}
	for _, test := range []struct {
		name string
		c    Column
		f    Figure
		want bool
	}{
		{"at the most", lower, number(2), true},
		{"over the most", lower, number(2.01), false},
		{"at the least", higher, number(2), true},
		{"below the least", higher, number(1.99), false},
		{"never", lower, Figure{Note: Never}, false},
		{"nothing to recover from", lower, Figure{Note: Refused0}, false},
	} {
		assert.Equal(t, test.want, test.c.Met(test.f, 2), test.name)
	}
}

func TestPlan_halves(t *testing.T) {
	keys := func(p Plan) (keys []string) {
		for _, s := range p.All() {
			keys = append(keys, s.Key)
		}
		return keys
	}
	all := keys(Plan{Pace: Full})
	tuning, report := keys(Plan{Pace: Full, Scenarios: Tuning}), keys(Plan{Pace: Full, Scenarios: Report})
	assert.ElementsMatch(t, all, append(tuning, report...), "no scenario is in both halves, and each is in one")
	assert.InDelta(t, len(tuning), len(report), 1)
	assert.Equal(t, []string{"collapse"}, keys(Plan{Pace: Full, Keys: []string{"collapse"}}))
	assert.NotEqual(t, Plan{Seeds: Tuning}.FirstSeed(), Plan{}.FirstSeed())
	for _, s := range (Plan{Pace: Full}).All() {
		assert.GreaterOrEqual(t, s.Runs, 5, "a figure is the median of five seeds at least: %s", s.Key)
	}
}

func TestProgressLines(t *testing.T) {
	var told []string
	l := &progressLines{tell: func(scenario, entry string) { told = append(told, scenario+"/"+entry) }}
	for _, part := range []string{"outage: ours, ze", "ro\n    a fault: here\nok\n"} {
		n, err := l.Write([]byte(part))
		assert.NoError(t, err)
		assert.Equal(t, len(part), n)
	}
	assert.Equal(t, []string{"outage/ours, zero"}, told)
	assert.Equal(t, "    a fault: here\nok\n", l.other.String())
}

func TestPlan_validate(t *testing.T) {
	assert.NoError(t, Plan{Pace: Quick, Keys: []string{"collapse"}, Entries: []string{ZeroSettings}, Seeds: Tuning}.Validate())
	for want, p := range map[string]Plan{
		`pace ""`: {}, `half "x"`: {Pace: Full, Seeds: "x"}, `half "y"`: {Pace: Full, Scenarios: "y"},
		`scenario "z"`: {Pace: Full, Keys: []string{"z"}}, `entry "e"`: {Pace: Full, Entries: []string{"e"}},
	} {
		assert.ErrorContains(t, p.Validate(), want)
	}
}
