package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/brownout-go/breaker/benchmarks/internal/entry"
	"github.com/brownout-go/breaker/benchmarks/internal/markdown"
	"github.com/brownout-go/breaker/benchmarks/internal/protect"
)

// tables writes what was measured.
type tables struct {
	scenarios []protect.Scenario
	results   protect.Results
}

// row is one target and how an entry did.
type row struct {
	scenario, what, bound, median, worst string
	met                                  bool
}

// names are the entries that ran, in the order of the field.
func (t tables) names() (names []string) {
	for _, e := range entry.Field() {
		if slices.ContainsFunc(t.results, func(r protect.Result) bool { return r.Entry == e.Name() }) {
			names = append(names, e.Name())
		}
	}
	return names
}

// all are the targets of an entry: those of columns, then those of ranks if there is a field to be ranked in.
func (t tables) all(name string) (rows []row) {
	for _, target := range protect.Targets(t.scenarios) {
		if r, ran := t.results.Find(target.Scenario, name); ran {
			rows = append(rows, t.figures(target, r))
		}
	}
	if len(t.names()) > 1 {
		rows = append(rows, t.ranks(name)...)
	}
	return rows
}

func (t tables) figures(target protect.Target, r protect.Result) row {
	s := t.scenarios[slices.IndexFunc(t.scenarios, func(s protect.Scenario) bool { return s.Key == target.Scenario })]
	c, i := s.Column(target.Column)
	return row{s.Key, c.Name, c.Bound(target.Bound), figure(r.Figures[i]), figure(r.Worst[i]), c.Met(r.Figures[i], target.Bound)}
}

// ranks are the targets for regret: among the first three in each scenario, and the first in total.
func (t tables) ranks(name string) (rows []row) {
	for _, s := range t.scenarios {
		rows = append(rows, ranked(s.Key, "rank by regret", name, t.results.Regrets(s.Key), 3))
	}
	for _, total := range totals {
		rows = append(rows, ranked("all", "rank by "+total.name, name, t.results.Sums(t.scenarios, total.of), 1))
	}
	return rows
}

var totals = []struct {
	name string
	of   func(protect.Regret) float64
}{{"total regret", protect.PlainTotal}, {"sum of regrets per call", protect.CallTotal}, {"sum of shares of the stake", protect.ShareTotal}}

func ranked(scenario, what, name string, figures map[string]float64, most int) row {
	rank := protect.Rank(name, figures)
	return row{scenario, what, "≤ " + strconv.Itoa(most), strconv.Itoa(rank), "", rank <= most}
}

func (t tables) missed(name string) (n int) {
	for _, r := range t.all(name) {
		if !r.met {
			n++
		}
	}
	return n
}

// targets shows each target of the entries; of zero settings if the whole field ran.
func (t tables) targets(names []string) string {
	if len(names) == 0 {
		names = []string{protect.ZeroSettings}
	}
	text := ""
	for _, name := range names {
		var rows [][]string
		for _, r := range t.all(name) {
			rows = append(rows, []string{r.scenario, r.what, r.bound, r.median, r.worst, verdict(r.met)})
		}
		text += markdown.Table(2, []string{name, "", "target", "median", "worst seed", ""}, rows)
	}
	return text
}

func verdict(met bool) string {
	if met {
		return "PASS"
	}
	return "MISS"
}

// regrets shows what each entry regrets: in total, and by scenario as a share of the stake, with the rank.
func (t tables) regrets() string {
	names := t.names()
	slices.SortStableFunc(names, func(a, b string) int {
		return cmp.Compare(t.results.Sum(t.scenarios, a, protect.ShareTotal), t.results.Sum(t.scenarios, b, protect.ShareTotal))
	})
	header := []string{"regret"}
	var rows [][]string
	for _, s := range t.scenarios {
		rows = append(rows, []string{label(s)})
	}
	for _, total := range totals {
		rows = append(rows, []string{total.name})
	}
	for _, name := range names {
		header = append(header, name)
		for i, s := range t.scenarios {
			rows[i] = append(rows[i], t.regret(s, name))
		}
		for i, total := range totals {
			sums := t.results.Sums(t.scenarios, total.of)
			j := len(t.scenarios) + i
			rows[j] = append(rows[j], fmt.Sprintf("%s%s", plain(sums[name]), t.rank(name, sums)))
		}
	}
	return markdown.Table(1, header, rows)
}

// label is the scenario's key; of a variation, what it changes as well.
func label(s protect.Scenario) string {
	if !s.Varied {
		return s.Key
	}
	return s.Key + ": " + s.About
}

func (t tables) regret(s protect.Scenario, name string) string {
	r, ran := t.results.Find(s.Key, name)
	if !ran {
		return "-"
	}
	return fmt.Sprintf("%s; %.2f %%%s", plain(r.Regret.Total()), 100*r.Regret.Share(), t.rank(name, t.results.Regrets(s.Key)))
}

// rank is the entry's, in brackets, if there is a field to be ranked in.
func (t tables) rank(name string, figures map[string]float64) string {
	if len(figures) < 2 {
		return ""
	}
	return fmt.Sprintf(" (%d)", protect.Rank(name, figures))
}

func figure(f protect.Figure) string {
	if f.Note != protect.Measured {
		return string(f.Note)
	}
	return plain(f.Value)
}

// plain writes three significant digits at least.
func plain(v float64) string {
	if math.Abs(v) >= 100 {
		return markdown.Grouped(int(math.Round(v)))
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
