package main

import (
	"github.com/brownout-go/breaker/benchmarks/internal/entry"
	"github.com/brownout-go/breaker/benchmarks/internal/protect"
)

// measureProtection runs the field, or ours alone where a file has the figures of the others.
func measureProtection(p protect.Plan, field string) (protect.Results, error) {
	var others protect.Results
	if field != "" {
		var err error
		if others, err = protect.ReadField(field, p); err != nil {
			return nil, err
		}
		p.Entries = ourNames()
	}
	done, total := 0, p.Cells()
	results, err := p.Measure(func(scenario, entry string) {
		done++
		progress("protection: %d of %d: %s, %s", done, total, scenario, entry)
	})
	return results.Within(others), err
}

func ourNames() (names []string) {
	for _, e := range entry.Field() {
		if e.Kind == entry.Ours {
			names = append(names, e.Name())
		}
	}
	return names
}
