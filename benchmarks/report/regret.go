package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/brownout-go/breaker/benchmarks/internal/entry"
	"github.com/brownout-go/breaker/benchmarks/internal/figure"
	"github.com/brownout-go/breaker/benchmarks/internal/markdown"
	"github.com/brownout-go/breaker/benchmarks/internal/protect"
)

// byRegret are the entries of the field, the least share of the stake first.
func (m *measurements) byRegret() []entry.Entry {
	sums := m.results.Sums(m.scenarios, protect.ShareTotal)
	return slices.SortedStableFunc(slices.Values(entry.Field()), func(a, b entry.Entry) int {
		return cmp.Compare(sums[a.Name()], sums[b.Name()])
	})
}

// regretTable sums the regrets of each entry up over all scenarios.
func (m *measurements) regretTable() string {
	sums := []map[string]float64{}
	for _, of := range []func(protect.Regret) float64{protect.ShareTotal, protect.PlainTotal, protect.CallTotal} {
		sums = append(sums, m.results.Sums(m.scenarios, of))
	}
	ranks := m.ranks()
	var rows [][]string
	for i, e := range m.byRegret() {
		row := []string{strconv.Itoa(i + 1), e.Name()}
		share := 100 * sums[0][e.Name()] / float64(len(m.scenarios))
		row = append(row, fmt.Sprintf("%s %% (%d)", figure.Significant(share), protect.Rank(e.Name(), sums[0])),
			fmt.Sprintf("%s (%d)", markdown.Grouped(int(sums[1][e.Name()])), protect.Rank(e.Name(), sums[1])),
			fmt.Sprintf("%s (%d)", figure.Significant(sums[2][e.Name()]), protect.Rank(e.Name(), sums[2])))
		of := ranks[e.Name()]
		firstThree := len(of) - len(slices.DeleteFunc(slices.Clone(of), func(rank int) bool { return rank <= 3 }))
		rows = append(rows, append(row, strconv.Itoa(slices.Max(of)), strconv.Itoa(firstThree)))
	}
	return markdown.Table(2, []string{"", "", "share of the stake, mean", "regret", "regret per call, sum", "worst rank",
		"scenarios in the first three"}, rows)
}

// ranks are those of each entry, in the order of the scenarios.
func (m *measurements) ranks() map[string][]int {
	ranks := map[string][]int{}
	for _, s := range m.scenarios {
		figures := m.results.Regrets(s.Key)
		for _, e := range entry.Field() {
			ranks[e.Name()] = append(ranks[e.Name()], protect.Rank(e.Name(), figures))
		}
	}
	return ranks
}

func (m *measurements) rankTable() string {
	header := []string{"scenario"}
	ranks := m.ranks()
	for i := range m.byRegret() {
		header = append(header, strconv.Itoa(i+1))
	}
	var rows [][]string
	for i, s := range m.scenarios {
		row := []string{s.Title}
		for _, e := range m.byRegret() {
			row = append(row, strconv.Itoa(ranks[e.Name()][i]))
		}
		rows = append(rows, row)
	}
	return markdown.Table(1, header, rows)
}

// regretRows compares the zero settings with the best of the peers and simple rules in each scenario.
func (m *measurements) regretRows() string {
	var rows [][]string
	for _, s := range m.scenarios {
		figures := m.results.Regrets(s.Key)
		rows = append(rows, append([]string{s.Title, m.best(figures)},
			m.regret(s, m.best(figures)), m.regret(s, protect.ZeroSettings), strconv.Itoa(protect.Rank(protect.ZeroSettings, figures))))
	}
	return markdown.Table(2, []string{"scenario", "least regret", "its", "zero settings'", "their rank"}, rows)
}

// best is the peer or simple rule with the least figure.
func (m *measurements) best(figures map[string]float64) string {
	best := ""
	for _, e := range entry.Field() {
		contends := e.Kind == entry.Peer || e.Kind == entry.Rule
		if contends && (best == "" || figures[e.Name()] < figures[best]) {
			best = e.Name()
		}
	}
	return best
}

func (m *measurements) regret(s protect.Scenario, name string) string {
	r, _ := m.results.Find(s.Key, name)
	return fmt.Sprintf("%s, %s %%", markdown.Grouped(int(r.Regret.Total())), figure.Significant(100*r.Regret.Share()))
}

// targetTable shows what the zero settings must reach. Ranks are in the tables of regret.
func (m *measurements) targetTable() string {
	var rows [][]string
	for _, target := range protect.Targets(m.scenarios) {
		s, r := m.targeted(target)
		c, i := s.Column(target.Column)
		verdict := "missed"
		if c.Met(r.Figures[i], target.Bound) {
			verdict = "kept"
		}
		rows = append(rows, []string{s.Title + ": " + c.Name, c.Bound(target.Bound), figure.Format(c, r.Figures[i]),
			figure.Format(c, r.Worst[i]), verdict})
	}
	return markdown.Table(1, []string{"", "target", "median", "worst seed", ""}, rows)
}

// targeted returns the scenario of a target and how the zero settings did in it.
func (m *measurements) targeted(t protect.Target) (protect.Scenario, protect.Result) {
	i := slices.IndexFunc(m.scenarios, func(s protect.Scenario) bool { return s.Key == t.Scenario })
	r, _ := m.results.Find(t.Scenario, protect.ZeroSettings)
	return m.scenarios[i], r
}

func (m *measurements) targetCount() string {
	kept, targets := 0, protect.Targets(m.scenarios)
	for _, target := range targets {
		s, r := m.targeted(target)
		if c, i := s.Column(target.Column); c.Met(r.Figures[i], target.Bound) {
			kept++
		}
	}
	return fmt.Sprintf("%d of %d targets", kept, len(targets))
}
