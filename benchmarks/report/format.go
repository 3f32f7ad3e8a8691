package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/brownout-go/breaker/benchmarks/internal/protect"
)

// formatFigure writes a figure of a column.
func formatFigure(c protect.Column, f protect.Figure) string {
	if f.Note != protect.Measured {
		return string(f.Note)
	}
	switch c.Unit {
	case protect.Seconds:
		return significant(f.Value) + " s"
	case protect.Percent:
		return significant(f.Value) + " %"
	case protect.PerSecond:
		return significant(f.Value) + "/s"
	default:
		return grouped(int(f.Value))
	}
}

// significant writes two significant digits, and whole numbers from 10 on.
func significant(v float64) string {
	if v >= 10 || v == 0 {
		return fmt.Sprintf("%.0f", v)
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}

// grouped writes thousands apart.
func grouped(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// table writes a Markdown table, whose first columns are words and the others numbers.
func table(words int, header []string, rows [][]string) string {
	var t strings.Builder
	line := func(cells []string) { fmt.Fprintf(&t, "| %s |\n", strings.Join(cells, " | ")) }
	line(header)
	rule := slices.Repeat([]string{"---:"}, len(header))
	for i := range words {
		rule[i] = "---"
	}
	line(rule)
	for _, r := range rows {
		line(r)
	}
	return t.String()
}
