package grid

import (
	"math"
	"strings"

	"github.com/brownout-go/breaker"
	"github.com/brownout-go/breaker/benchmarks/internal/markdown"
)

// Part is a part of the grid of health beside independent failures: another trouble, or another pattern.
type Part struct {
	Trouble Trouble
	Pattern Pattern
	Rules   []Rule
	Steady  []float64
}

// slownessRules judge slowness; no call fails.
var slownessRules = []Rule{
	{"classic rules", breaker.Classic()},
	{"zero settings", breaker.Settings{}},
}

// parts are all of them. Correlated outcomes take four of the fractions, which keeps the command to minutes.
func parts(steady []float64) []Part {
	few := []float64{0.001, 0.01, 0.05, 0.3}
	all := []Part{{Slow, Independent, slownessRules, steady}}
	for _, p := range []Pattern{Bursts, DailySwing, Deploys} {
		all = append(all, Part{Failing, p, rules, few}, Part{Slow, p, slownessRules, few})
	}
	return all
}

// cells are those of the part under each load, in the order of loads, then rules, then fractions.
func (p Part) cells(loads []Load) (cells []Health) {
	for _, load := range loads {
		for _, rule := range p.Rules {
			for _, steady := range p.Steady {
				cells = append(cells, Health{Rule: rule, Load: load, Steady: steady, Trouble: p.Trouble, Pattern: p.Pattern})
			}
		}
	}
	return cells
}

// PartTables shows the false opens in 30 days of every part but the first, which HealthTable shows.
func (r Result) PartTables() string {
	var tables []string
	for i, p := range r.Plan.Parts {
		header := []string{p.Trouble.String() + ", " + p.Pattern.Name, "days simulated", "rule"}
		for _, steady := range p.Steady {
			header = append(header, percent(steady))
		}
		tables = append(tables, markdown.Table(3, header, healthRows(r.Parts[i], len(p.Steady))))
	}
	return strings.Join(tables, "\n")
}

// healthRows makes a row of every so many cells.
func healthRows(cells []Health, width int) (rows [][]string) {
	for i, h := range cells {
		if i%width == 0 {
			rows = append(rows, []string{short(h.Load.PerSecond), short(h.Load.Length.Hours() / 24), h.Rule.Name})
		}
		last := len(rows) - 1
		rows[last] = append(rows[last], markdown.Grouped(int(math.Round(h.PerMonth()))))
	}
	return rows
}

// WorstTable shows the worst cell of each part under each of its rules.
func (r Result) WorstTable() string {
	var rows [][]string
	for i, p := range r.Plan.Parts {
		for _, rule := range p.Rules {
			rows = append(rows, append([]string{p.Trouble.String(), p.Pattern.Name, rule.Name}, worstOf(r.Parts[i], rule)...))
		}
	}
	return markdown.Table(3, []string{"judged", "pattern", "rule", "false opens in 30 days, worst cell", "calls/s", "bad calls"}, rows)
}

func worstOf(cells []Health, rule Rule) []string {
	worst := Health{Opens: -1}
	for _, h := range cells {
		if h.Rule.Name == rule.Name && (worst.Opens < 0 || h.PerMonth() > worst.PerMonth()) {
			worst = h
		}
	}
	return []string{short(worst.PerMonth()), short(worst.Load.PerSecond), percent(worst.Steady)}
}

// AllParts shows the worst cells of the parts, then all of them.
func (r Result) AllParts() string { return r.WorstTable() + "\n" + r.PartTables() }
