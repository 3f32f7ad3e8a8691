// Package figure writes figures of protection.
package figure

import (
	"fmt"
	"strconv"

	"github.com/brownout-go/breaker/benchmarks/internal/markdown"
	"github.com/brownout-go/breaker/benchmarks/internal/protect"
)

// Format writes a figure of a column.
func Format(c protect.Column, f protect.Figure) string {
	if f.Note != protect.Measured {
		return string(f.Note)
	}
	switch c.Unit {
	case protect.Seconds:
		return Significant(f.Value) + " s"
	case protect.Percent:
		return Significant(f.Value) + " %"
	case protect.PerSecond:
		return Significant(f.Value) + "/s"
	default:
		return markdown.Grouped(int(f.Value))
	}
}

// Significant writes two significant digits, and whole numbers from 10 on.
func Significant(v float64) string {
	if v >= 10 || v == 0 {
		return fmt.Sprintf("%.0f", v)
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}
