package main

import (
	"strings"
	"testing"

	"github.com/brownout-go/breaker/benchmarks/internal/protect"
	"github.com/stretchr/testify/assert"
)

// invented are results of two scenarios in which every figure is 1 and each call is regretted by half.
func invented(names ...string) tables {
	t := tables{scenarios: protect.Plan{Pace: protect.Quick, Keys: []string{"healthy-20", "outage-1"}}.All()}
	for _, s := range t.scenarios {
		for _, name := range names {
			r := protect.Result{Scenario: s.Key, Entry: name, Regret: protect.Regret{Offered: 10, GoodRefused: 5, Stake: 20}}
			for range s.Columns {
				r.Figures = append(r.Figures, protect.Figure{Value: 1})
				r.Worst = append(r.Worst, protect.Figure{Note: protect.Never})
			}
			t.results = append(t.results, r)
		}
	}
	return t
}

func TestTargets_of_one_entry(t *testing.T) {
	one := invented(protect.ZeroSettings)
	assert.Len(t, one.all(protect.ZeroSettings), 3, "there is no field to be ranked in")
	assert.Equal(t, 1, one.missed(protect.ZeroSettings))
	text := one.targets(nil)
	assert.Contains(t, text, "| healthy-20 | false opens | ≤ 0 | 1 | never | MISS |")
	assert.Contains(t, text, "| outage-1 | time to open | ≤ 5 | 1 | never | PASS |")
	assert.Contains(t, one.regrets(), "| outage-1 | 5; 25.00 % |")
}

func TestTargets_in_a_field(t *testing.T) {
	const peer = "gobreaker, tuned"
	field := invented(protect.ZeroSettings, peer)
	for i := range field.results {
		if field.results[i].Entry == peer {
			field.results[i].Regret.GoodRefused = 1
		}
	}
	text := field.targets(nil)
	assert.Contains(t, text, "| outage-1 | rank by regret | ≤ 3 | 2 |  | PASS |")
	assert.Equal(t, 3, strings.Count(text, "≤ 1 | 2 |  | MISS |"), "each of the sums has a first")
	assert.Contains(t, field.regrets(), "| regret | "+peer+" | "+protect.ZeroSettings+" |")
	assert.Contains(t, field.regrets(), "| total regret | 2 (1) | 10 (2) |")
}

func TestNames(t *testing.T) {
	assert.Empty(t, names("all"))
	assert.Equal(t, []string{protect.ZeroSettings}, names("zero"))
	assert.Equal(t, protect.ZeroSettings, names("ours")[0])
	assert.Equal(t, []string{"a, b", "c"}, names("a, b;c"))
}

func TestLabel(t *testing.T) {
	assert.Equal(t, "key", label(protect.Scenario{Key: "key", About: "long"}))
	assert.Equal(t, "key~1: long", label(protect.Scenario{Key: "key~1", About: "long", Varied: true}))
}
