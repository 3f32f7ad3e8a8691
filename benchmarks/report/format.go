package main

import (
	"fmt"
	"strconv"

	"github.com/brownout-go/breaker/benchmarks/internal/markdown"
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
		return markdown.Grouped(int(f.Value))
	}
}

// significant writes two significant digits, and whole numbers from 10 on.
func significant(v float64) string {
	if v >= 10 || v == 0 {
		return fmt.Sprintf("%.0f", v)
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}
