package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/brownout-go/breaker/benchmarks/internal/entry"
	"github.com/brownout-go/breaker/benchmarks/internal/figure"
	"github.com/brownout-go/breaker/benchmarks/internal/grid"
	"github.com/brownout-go/breaker/benchmarks/internal/protect"
	"github.com/brownout-go/breaker/benchmarks/internal/speed"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// invented are measurements in which all are equal, but for what edit changes.
func invented(edit func(scenario, entry string, figures []protect.Figure)) *measurements {
	m := &measurements{scenarios: protect.Plan{Pace: protect.Short}.All()}
	timing := func(ns float64) *speed.Timing { return &speed.Timing{Nanoseconds: ns} }
	m.rows = []speed.Row{{Name: "floor: empty call", Success: timing(1)}, {Name: "floor: two clock reads", Success: timing(50)}}
	for _, name := range []string{"ours, zero settings", "ours, consecutive failures only", "peer"} {
		m.rows = append(m.rows, speed.Row{Name: name, Success: timing(60), Parallel: timing(70), Fresh: 100, Warm: 200})
	}
	m.settings = []speed.SettingCost{{Name: "zero settings", Success: 1, Parallel: 1, Refused: 1}}
	m.grid = grid.Plan{
		Loads: []grid.Load{{PerSecond: 1, Length: time.Hour}}, Steady: []float64{0}, Shifts: []grid.Shift{{From: 0.01, To: 1}}, Runs: 1,
	}.Run()
	for _, s := range m.scenarios {
		for _, e := range s.Entries() {
			r := protect.Result{Scenario: s.Key, Entry: e.Name(), Figures: make([]protect.Figure, len(s.Columns)),
				Worst: make([]protect.Figure, len(s.Columns)), Regret: protect.Regret{Offered: 10, GoodRefused: 5, Stake: 20}}
			for i := range r.Figures {
				r.Figures[i].Value = 7
			}
			if s.Timeline {
				r.Timeline = make([]protect.Second, 1000)
			}
			edit(s.Key, e.Name(), r.Figures)
			m.results = append(m.results, r)
		}
	}
	return m
}

func TestLosses(t *testing.T) {
	const zero, peer, none = "ours, zero settings", "gobreaker, tuned", "no breaker, for scale"
	figure := func(v float64) protect.Figure { return protect.Figure{Value: v} }
	never := protect.Figure{Note: protect.Never}
	for _, test := range []struct {
		name, entry string
		figure      protect.Figure
		want        string // the winner, if it is a loss
	}{
		{"a peer is better", peer, figure(6), peer},
		{"a peer is worse", peer, figure(8), ""},
		{"a peer is better by less than a tie", peer, figure(6.95), ""},
		{"no breaker does not contend", none, figure(0), ""},
		{"ours is better", zero, figure(6), ""},
		{"ours never opened", zero, never, "gobreaker, as it comes"},
		{"ours has no figure", zero, protect.Figure{Note: protect.Refused0}, ""},
	} {
		m := invented(func(scenario, entry string, figures []protect.Figure) {
			if scenario == "outage-100" && entry == test.entry {
				figures[0] = test.figure
			}
		})
		losses := m.losses()
		if test.want == "" {
			assert.Empty(t, losses, test.name)
			continue
		}
		require.Len(t, losses, 1, test.name)
		assert.Equal(t, "outage-100: time to open", losses[0].key, test.name)
		assert.Equal(t, test.want, losses[0].winners[0], test.name)
		assert.Len(t, losses[0].ours, len(ourConfigs()), test.name)
	}
}

func TestChanges(t *testing.T) {
	const zero, classic = "ours, zero settings", "ours, classic"
	figure := func(v float64) protect.Figure { return protect.Figure{Value: v} }
	for _, test := range []struct {
		name, entry, scenario string
		column                int
		figure                protect.Figure
		want                  string // the verdict, if they differ
	}{
		{"the same", zero, "outage-100", 0, figure(7), ""},
		{"within a tie", zero, "outage-100", 0, figure(7.05), ""},
		{"opens sooner", zero, "outage-100", 0, figure(6), better},
		{"opens later", zero, "outage-100", 0, figure(8), worse},
		{"serves more, where more is better", zero, "flapping", 0, figure(8), better},
		{"serves less", zero, "flapping", 0, figure(6), worse},
		{"never opens", zero, "outage-100", 0, protect.Figure{Note: protect.Never}, worse},
		{"opens where the classic rules did not", classic, "outage-100", 0, protect.Figure{Note: protect.Never}, better},
		{"has nothing to recover from", zero, "outage-100", 2, protect.Figure{Note: protect.Refused0}, "neither"},
		{"another entry differs", "ours, tuned", "outage-100", 0, figure(6), ""},
	} {
		m := invented(func(scenario, entry string, figures []protect.Figure) {
			if scenario == test.scenario && entry == test.entry {
				figures[test.column] = test.figure
			}
		})
		changes := m.changes()
		if test.want == "" {
			assert.Empty(t, changes, test.name)
			continue
		}
		require.Len(t, changes, 1, test.name)
		assert.Equal(t, test.want, changes[0].verdict, test.name)
		assert.Contains(t, m.changeTable(), "| "+test.want+" |", test.name)
		assert.Contains(t, m.changeCount(), fmt.Sprintf("1 of the %d measurements", m.measured()-len(speedColumns)), test.name)
	}
}

func TestRegret_tables(t *testing.T) {
	const peer = "gobreaker, tuned"
	m := invented(func(string, string, []protect.Figure) {})
	for i, r := range m.results {
		if r.Entry == peer && r.Scenario == "brownout" {
			m.results[i].Regret.GoodRefused = 1
		}
	}
	ranks := m.ranks()
	at := slices.IndexFunc(m.scenarios, func(s protect.Scenario) bool { return s.Key == "brownout" })
	assert.Equal(t, 2, ranks[protect.ZeroSettings][at])
	assert.Equal(t, 1, ranks[protect.ZeroSettings][at+1])
	assert.Equal(t, 1, slices.Max(ranks[peer]))
	assert.Equal(t, peer, m.byRegret()[0].Name())
	assert.Contains(t, m.regretTable(), "| 1 | "+peer+" | 24 % (1) |")
	assert.Contains(t, m.regretTable(), "| "+protect.ZeroSettings+" | 25 % (2) |")
	assert.Contains(t, m.regretRows(), "| "+peer+" | 1, 5 % | 5, 25 % | 2 |")
	assert.Equal(t, 2+len(m.scenarios), strings.Count(m.rankTable(), "\n"))
}

func TestTarget_table(t *testing.T) {
	m := invented(func(_, _ string, figures []protect.Figure) { clear(figures) })
	assert.Contains(t, m.targetTable(), "time to open | ≤ 0.3 | 0 s | 0 s | kept |")
	assert.Contains(t, m.targetTable(), "served in the 45 s after | ≥ 6000 | 0 | 0 | missed |")
	assert.Equal(t, strings.Count(m.targetTable(), "| missed |"), 3, "those where more is better")
	total := len(protect.Targets(m.scenarios))
	assert.Equal(t, fmt.Sprintf("%d of %d targets", total-3, total), m.targetCount())
}

func TestLosses_of_speed(t *testing.T) {
	m := invented(func(string, string, []protect.Figure) {})
	m.rows[4].Success = &speed.Timing{Nanoseconds: 30}
	losses := m.losses()
	require.Len(t, losses, 1)
	assert.Equal(t, "speed: success", losses[0].key)
	assert.Equal(t, []string{"2 ×"}, losses[0].ours)
	assert.Equal(t, 1, losses[0].ahead)
}

func TestReasons_are_complete_and_known(t *testing.T) {
	known := map[string]bool{}
	for _, c := range speedColumns {
		known["speed: "+c.name] = true
	}
	for _, s := range (protect.Plan{Pace: protect.Full}).All() {
		for _, c := range s.Columns {
			known[s.Key+": "+c.Name] = true
		}
	}
	for _, r := range readReasons(written) {
		assert.Contains(t, []string{"rule", "default", "neither"}, r.blame, r.keys)
		assert.NotEmpty(t, r.text, r.keys)
		for _, key := range r.keys {
			assert.True(t, known[key], "%s is no measurement", key)
		}
	}
}

func TestCheckReasons(t *testing.T) {
	reasons := readReasons("a: b\nc: d\n| rule\nBecause.\n\ne: f\n| default\nSo.")
	require.Len(t, reasons, 2)
	losses := []loss{{key: "a: b"}, {key: "c: d"}, {key: "e: f"}}
	require.NoError(t, checkReasons(losses, reasons))
	require.ErrorContains(t, checkReasons(append(losses, loss{key: "g: h"}), reasons), "no reason is written for g: h")
	require.ErrorContains(t, checkReasons(losses[1:], reasons), "a reason is written for a: b")
}

func TestPage_has_every_scenario_and_every_entry(t *testing.T) {
	m := invented(func(string, string, []protect.Figure) {})
	var page strings.Builder
	require.NoError(t, m.writePage(&page))
	for _, s := range m.scenarios {
		assert.Contains(t, page.String(), "### "+s.Title)
	}
	for _, e := range entry.Field() {
		assert.Contains(t, page.String(), "- **"+e.Name()+"**")
	}
	for _, text := range []string{
		"| classic | tuned | to blame |", fmt.Sprintf("0 of the %d measurements of protection", m.measured()-len(speedColumns)),
		"| zero settings | 1.00 | 1.00 | 1.00 | 0 |", "| 1 | 0.0417 | classic rules | 0 |", "| 1 | limit | 3.2 |", "median of 1 run",
	} {
		assert.Contains(t, page.String(), text)
	}
	require.NoError(t, m.draw(t.TempDir()))
}

func TestFormat(t *testing.T) {
	for _, test := range []struct {
		unit  protect.Unit
		value float64
		want  string
	}{
		{protect.Number, 1234567, "1,234,567"}, {protect.Number, 999, "999"}, {protect.Seconds, 0.0627, "0.063 s"},
		{protect.Seconds, 9.94, "9.9 s"}, {protect.Seconds, 57.06, "57 s"}, {protect.Seconds, 0, "0 s"},
		{protect.Percent, 99.3, "99 %"}, {protect.PerSecond, 246.9, "247/s"},
	} {
		assert.Equal(t, test.want, figure.Format(protect.Column{Unit: test.unit}, protect.Figure{Value: test.value}))
	}
	assert.Equal(t, "never", figure.Format(protect.Column{}, protect.Figure{Note: protect.Never}))
	assert.Equal(t, "a; b; 2 more", leaders([]string{"a", "b", "c", "d"}))
	assert.Equal(t, "a; b; c", leaders([]string{"a", "b", "c"}))
}
