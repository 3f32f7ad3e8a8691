package protect

import (
	"slices"
	"time"
)

// Unit is how a figure is written.
type Unit uint8

// The units.
const (
	Number    Unit = iota // of opens or calls
	Seconds               // of time
	Percent               // a fraction, times 100
	PerSecond             // calls a second
)

// Column is one thing that is measured in a scenario.
type Column struct {
	Name   string
	Unit   Unit
	Higher bool // is better; else lower is
	value  func(*Record) Figure
}

// Figure is what was measured.
type Figure struct {
	Value float64
	Note  Note `json:",omitempty"`
}

// Note says why there is no value.
type Note string

// The notes.
const (
	Measured   Note = ""
	Never      Note = "never"           // it did not open: as bad as can be
	Already    Note = "open before"     // in the minute before the incident: as bad
	Refused0   Note = "refused nothing" // so that there is nothing to recover from
	NoHalfOpen Note = "no half-open"    // it has no state whose calls are probes
)

func number(v float64) Figure { return Figure{Value: v} }

const falseOpensName = "false opens"

func falseOpens() Column {
	return Column{Name: falseOpensName, value: func(r *Record) Figure { return number(float64(len(r.Opens))) }}
}

func refusedForNothing() Column {
	return Column{Name: "calls refused for nothing", value: func(r *Record) Figure {
		return number(r.sum(0, r.scenario.Length, Second.Refused))
	}}
}

func timeToOpen() Column {
	return Column{Name: "time to open", Unit: Seconds, value: func(r *Record) Figure {
		after, opened, fair := r.firstOpen(r.scenario.incident())
		switch {
		case !fair:
			return Figure{Note: Already}
		case !opened:
			return Figure{Note: Never}
		}
		return number(after.Seconds())
	}}
}

func sentInto() Column {
	return Column{Name: "calls sent into it", value: func(r *Record) Figure {
		i := r.scenario.incident()
		return number(r.sum(i.After, i.End(), admitted))
	}}
}

// timeToRecover is from the end of the incident to the last refusal, for whatever still refuses has not recovered.
func timeToRecover(name string) Column {
	return Column{Name: name, Unit: Seconds, value: func(r *Record) Figure {
		i := r.scenario.incident()
		if r.sum(i.After, r.scenario.Length, Second.Refused) == 0 {
			return Figure{Note: Refused0}
		}
		return number(r.lastRefusal(i.End()).Seconds())
	}}
}

func lateCalls() Column {
	return Column{Name: "calls over 1 s", value: func(r *Record) Figure {
		return number(r.sum(0, r.scenario.Length, func(s Second) int { return s.Late }))
	}}
}

// throughput is successes a second, in the incident or in as long a time after it.
func throughput(name string, during bool) Column {
	return Column{Name: name, Unit: PerSecond, Higher: true, value: func(r *Record) Figure {
		i := r.scenario.incident()
		from := i.After
		if !during {
			from = i.End()
		}
		return number(r.sum(from, from+i.For, succeeded) / i.For.Seconds())
	}}
}

func stuck() Column {
	return Column{Name: "calls stuck at the peak", value: func(r *Record) Figure { return number(float64(r.Peak)) }}
}

func goodRefused() Column {
	return Column{Name: "good calls refused", Unit: Percent, value: func(r *Record) Figure {
		i := r.scenario.incident()
		good := r.sum(i.After, i.End(), func(s Second) int { return s.Good })
		return number(100 * r.sum(i.After, i.End(), func(s Second) int { return s.GoodRefused }) / good)
	}}
}

// servedAfter is successes in a time after the incident.
func servedAfter(name string, length time.Duration) Column {
	return Column{Name: name, Higher: true, value: func(r *Record) Figure {
		end := r.scenario.incident().End()
		return number(r.sum(end, end+length, succeeded))
	}}
}

func servedOfServable() Column {
	return Column{Name: "served of what could be", Unit: Percent, Higher: true, value: func(r *Record) Figure {
		from, to := r.scenario.incident().After, r.scenario.Length
		good := r.sum(from, to, func(s Second) int { return s.Good })
		return number(100 * r.sum(from, to, succeeded) / good)
	}}
}

func sentIntoDowns() Column {
	return Column{Name: "calls sent into the downs", value: func(r *Record) Figure {
		sent := 0.0
		for _, i := range r.scenario.Dependency.Incidents {
			sent += r.sum(i.After, i.End(), admitted)
		}
		return number(sent)
	}}
}

func peakProbes() Column {
	return Column{Name: "peak probes a second", value: func(r *Record) Figure {
		if r.sheds {
			return Figure{Note: NoHalfOpen}
		}
		if len(r.Opens) == 0 {
			return Figure{Note: Refused0}
		}
		return number(float64(worstSecond(r.Probes)))
	}}
}

func admitted(s Second) int  { return s.Admitted }
func succeeded(s Second) int { return s.Succeeded }

// Measure works the figures of the scenario out of one run, in the order of its columns.
func (s Scenario) Measure(r *Record) []Figure {
	figures := make([]Figure, len(s.Columns))
	for i, c := range s.Columns {
		figures[i] = c.value(r)
	}
	return figures
}

// Better reports whether a is a better figure than b. What did not open when it should have, or was open all the time, is
// worse than any number; a figure that means nothing is neither better nor worse.
func (c Column) Better(a, b Figure) bool {
	switch {
	case !a.Comparable() || !b.Comparable() || a.bad():
		return false
	case b.bad():
		return true
	case c.Higher:
		return a.Value > b.Value
	default:
		return a.Value < b.Value
	}
}

func (f Figure) bad() bool { return f.Note == Never || f.Note == Already }

// Comparable reports whether the figure can be better or worse than another.
func (f Figure) Comparable() bool { return f.Note == Measured || f.bad() }

// sorted returns the figures of several runs, the best first; those that mean nothing count as the worst.
func (c Column) sorted(figures []Figure) []Figure {
	sorted := slices.Clone(figures)
	slices.SortStableFunc(sorted, func(a, b Figure) int {
		switch {
		case a.Comparable() != b.Comparable():
			return count(b.Comparable()) - count(a.Comparable())
		case c.Better(a, b):
			return -1
		case c.Better(b, a):
			return 1
		}
		return 0
	})
	return sorted
}

// median returns the middle one of the figures.
func (c Column) median(figures []Figure) Figure { return c.sorted(figures)[len(figures)/2] }
