package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/brownout-go/breaker/benchmarks/internal/protect"
)

// flags are those that measure the page again, with a space before each.
func (m *measurements) flags() string {
	var text strings.Builder
	if m.protection.Pace == protect.Quick {
		text.WriteString(" -pace quick")
	}
	if m.protection.Runs > 0 {
		fmt.Fprintf(&text, " -runs %d", m.protection.Runs)
	}
	if m.protection.Seeds == protect.Tuning {
		text.WriteString(" -seeds tuning")
	}
	if m.shortParts {
		text.WriteString(" -short-parts")
	}
	return text.String()
}

// targetFlags are those that measure its protection again with the targets command.
func (m *measurements) targetFlags() string {
	text := " -pace " + string(m.protection.Pace)
	if m.protection.Runs > 0 {
		text += fmt.Sprintf(" -runs %d", m.protection.Runs)
	}
	return text + " -seeds " + cmp.Or(string(m.protection.Seeds), string(protect.Report))
}

// seeds says how many runs the scenarios have.
func (m *measurements) seeds() string {
	least, most := m.scenarios[0].Runs, m.scenarios[0].Runs
	for _, s := range m.scenarios {
		least, most = min(least, s.Runs), max(most, s.Runs)
	}
	if least == most {
		return fmt.Sprint(least)
	}
	return fmt.Sprintf("%d to %d", least, most)
}
