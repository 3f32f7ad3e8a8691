package protect

import "strconv"

// Target is what zero settings must reach in one column of a scenario.
type Target struct {
	Scenario, Column string // a scenario's key and a column's name
	Bound            float64
}

// Targets returns those of the scenarios, in their order: no false open where nothing is wrong, and what the specification
// asks for in incidents.
func Targets(scenarios []Scenario) []Target {
	var all []Target
	for _, s := range scenarios {
		for _, c := range s.Columns {
			bound, asked := bounds[s.Key][c.Name]
			if s.Healthy && c.Name == falseOpensName {
				bound, asked = 0, true
			}
			if asked {
				all = append(all, Target{s.Key, c.Name, bound})
			}
		}
	}
	return all
}

// bounds are those of incidents, by scenario and column. Whether it is the least or the most the column tells.
var bounds = map[string]map[string]float64{
	"outage-100": {"time to open": 0.3, "calls sent into it": 40, "time to recover": 3},
	"outage-1":   {"time to open": 5, "time to recover": 6},
	"outage-0.1": {"time to recover": 15},
	"partial-1":  {"good calls refused": 2},
	"partial-20": {"good calls refused": 2},
	"brownout":   {"time to open": 2.5, "calls over 1 s": 130, "throughput after": 245},
	"hang-5":     {"time to open": 1.5, "calls stuck at the peak": 45},
	"hang-60":    {"time to open": 1.5, "calls stuck at the peak": 45},
	"collapse":   {"served in the 45 s after": 6000},
	"flapping":   {"served of what could be": 85},
	"fleet":      {"time until all are closed": 3, "peak probes a second": 100},
}

// Met reports whether a figure of the column reaches the bound. One that means nothing does not.
func (c Column) Met(f Figure, bound float64) bool {
	switch {
	case f.Note != Measured:
		return false
	case c.Higher:
		return f.Value >= bound
	default:
		return f.Value <= bound
	}
}

// Bound writes a bound of the column.
func (c Column) Bound(v float64) string {
	if c.Higher {
		return "≥ " + strconv.FormatFloat(v, 'g', -1, 64)
	}
	return "≤ " + strconv.FormatFloat(v, 'g', -1, 64)
}

// Column returns the column of the name, and where it is.
func (s Scenario) Column(name string) (c Column, index int) {
	for i, c := range s.Columns {
		if c.Name == name {
			return c, i
		}
	}
	panic(s.Key + " has no column " + name)
}
