package main

import (
	"fmt"

	"github.com/brownout-go/breaker/benchmarks/internal/figure"
	"github.com/brownout-go/breaker/benchmarks/internal/markdown"
	"github.com/brownout-go/breaker/benchmarks/internal/protect"
)

// change is one measurement of protection in which zero settings and the classic rules differ.
type change struct {
	title         string
	classic, zero string
	verdict       string // on zero settings
}

const (
	better = "better"
	worse  = "**worse**"
)

// changes returns them in the order of the page.
func (m *measurements) changes() []change {
	var all []change
	for _, s := range m.scenarios {
		for column := range s.Columns {
			if c, changed := m.change(s, column); changed {
				all = append(all, c)
			}
		}
	}
	return all
}

func (m *measurements) change(s protect.Scenario, column int) (c change, changed bool) {
	figures := map[string]protect.Figure{}
	for _, e := range s.Entries() {
		if e.Library == "ours" {
			figures[e.Config] = m.figure(s, e, column)
		}
	}
	zero, classic := figures["zero settings"], figures["classic"]
	in := s.Columns[column]
	c = change{title: s.Title + ": " + in.Name, classic: figure.Format(in, classic), zero: figure.Format(in, zero), verdict: "neither"}
	switch {
	case in.Better(zero, classic):
		c.verdict = better
	case in.Better(classic, zero):
		c.verdict = worse
	}
	return c, different(zero, classic)
}

func (m *measurements) changeTable() string {
	var rows [][]string
	for _, c := range m.changes() {
		rows = append(rows, []string{c.title, c.verdict, c.classic, c.zero})
	}
	return markdown.Table(2, []string{"measured", "zero settings are", "classic", "zero settings"}, rows)
}

// changeCount says in how many rows they differ, and which way.
func (m *measurements) changeCount() string {
	changes := m.changes()
	tally := map[string]int{}
	for _, c := range changes {
		tally[c.verdict]++
	}
	return fmt.Sprintf("%d of the %d measurements of protection: %d for the better, %d for the worse", len(changes),
		m.measured()-len(speedColumns), tally[better], tally[worse])
}

// settingTable shows what the classic rules, the calls in flight and the tests cost.
func (m *measurements) settingTable() string {
	var rows [][]string
	for _, c := range m.settings {
		row := []string{c.Name}
		for _, ratio := range []float64{c.Success, c.Parallel, c.Refused} {
			row = append(row, fmt.Sprintf("%.2f", ratio))
		}
		rows = append(rows, append(row, fmt.Sprintf("%.0f", c.Allocs)))
	}
	return markdown.Table(1, []string{"ours with", "success", "success, all cores", "refusal, open", "allocations"}, rows)
}
