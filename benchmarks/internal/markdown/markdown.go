// Package markdown writes what the commands print.
package markdown

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Table writes a table, whose first columns are words and the others numbers.
func Table(words int, header []string, rows [][]string) string {
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

// Grouped writes thousands apart.
func Grouped(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
