package grid

import (
	"fmt"
	"math"
	"strconv"

	"github.com/brownout-go/breaker/benchmarks/internal/markdown"
)

// HealthTable shows the false opens in 30 days.
func (r Result) HealthTable() string {
	header := []string{"calls/s", "days simulated", "rule"}
	for _, p := range r.Plan.Steady {
		header = append(header, percent(p))
	}
	return markdown.Table(3, header, healthRows(r.Health, len(r.Plan.Steady)))
}

// DetectionTable shows how long the shifts go unseen.
func (r Result) DetectionTable() string {
	header := []string{"calls/s", "rule"}
	for _, s := range r.Plan.Shifts {
		header = append(header, percent(s.From)+" → "+percent(s.To))
	}
	var rows [][]string
	for i, d := range r.Detections {
		if i%(len(rules)*len(r.Plan.Shifts)) == 0 {
			rows = append(rows, r.limits(d.Rate))
		}
		if i%len(r.Plan.Shifts) == 0 {
			rows = append(rows, []string{short(d.Rate), d.Rule.Name})
		}
		last := len(rows) - 1
		rows[last] = append(rows[last], d.String())
	}
	return markdown.Table(2, header, rows)
}

func (r Result) limits(rate float64) []string {
	row := []string{short(rate), "limit"}
	for _, s := range r.Plan.Shifts {
		row = append(row, fmt.Sprintf("%.1f", s.Limit(rate)))
	}
	return row
}

// String is the median, its multiple of the limit, and how many runs missed the shift, if any did.
func (d Detection) String() string {
	if math.IsInf(d.Median, 1) {
		return "missed by " + percent(d.Missed)
	}
	text := fmt.Sprintf("%.0f (%.1f ×)", d.Median, d.Multiple())
	if d.Missed > 0 {
		text += ", missed by " + percent(d.Missed)
	}
	return text
}

// Target is one promise about zero settings, and what became of it under each rule: the worst cell, or the average.
type Target struct {
	What         string
	Most         float64
	Classic      float64
	ZeroSettings float64
	write        func(float64) string
}

// Kept reports whether zero settings meet it.
func (t Target) Kept() bool { return t.ZeroSettings <= t.Most }

// Targets are all of them.
func (r Result) Targets() []Target {
	worst := func(sum func(Rule) []float64) func(Rule) float64 {
		return func(rule Rule) float64 {
			worst := 0.0
			for _, v := range sum(rule) {
				worst = max(worst, v)
			}
			return worst
		}
	}
	detections := func(from float64, value func(Detection) float64) func(Rule) []float64 {
		return func(rule Rule) []float64 { return r.detections(rule, from, value) }
	}
	target := func(what string, most float64, figure func(Rule) float64, write func(float64) string) Target {
		return Target{what, most, figure(Classic), figure(ZeroSettings), write}
	}
	return []Target{
		target("false opens in 30 days, worst cell", 3, worst(r.perMonth), short),
		target("false opens in 30 days, mean of all cells", 1, func(rule Rule) float64 { return mean(r.perMonth(rule)) }, short),
		target("median calls to open / limit, worst shift at 3 calls/s and more", 2.2, worst(detections(3, Detection.Multiple)), multiple),
		target("runs that miss the shift, worst shift at 20 calls/s and more", 0,
			worst(detections(20, func(d Detection) float64 { return d.Missed })), percent),
	}
}

func (r Result) perMonth(rule Rule) (values []float64) {
	for _, h := range r.Health {
		if h.Rule.Name == rule.Name {
			values = append(values, h.PerMonth())
		}
	}
	return values
}

func (r Result) detections(rule Rule, fromRate float64, value func(Detection) float64) (values []float64) {
	for _, d := range r.Detections {
		if d.Rule.Name == rule.Name && d.Rate >= fromRate {
			values = append(values, value(d))
		}
	}
	return values
}

// TargetTable shows the promises with their verdicts.
func (r Result) TargetTable() string {
	var rows [][]string
	for _, t := range r.Targets() {
		verdict := "missed"
		if t.Kept() {
			verdict = "kept"
		}
		rows = append(rows, []string{t.What, t.write(t.Most), t.write(t.ZeroSettings), verdict, t.write(t.Classic)})
	}
	return markdown.Table(1, []string{"", "at most", "zero settings", "", "classic rules"}, rows)
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

func percent(fraction float64) string { return short(100*fraction) + " %" }

func multiple(v float64) string {
	if math.IsInf(v, 1) {
		return "not seen"
	}
	return fmt.Sprintf("%.2f ×", v)
}

// short writes at most three significant digits.
func short(v float64) string {
	if v >= 100 {
		return markdown.Grouped(int(math.Round(v)))
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
