package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/brownout-go/breaker/benchmarks/internal/entry"
	"github.com/brownout-go/breaker/benchmarks/internal/figure"
	"github.com/brownout-go/breaker/benchmarks/internal/protect"
	"github.com/brownout-go/breaker/benchmarks/internal/speed"
)

// loss is one measurement in which ours, with zero settings, is not first.
type loss struct {
	key     string // in reasons
	title   string
	winners []string // all that are as good as the best
	best    string
	ahead   int      // how many entries are better
	ours    []string // all configurations, zero settings first; only that one where the others cost the same
}

// tie is the fraction by which figures must differ to count as different.
const tie = 0.01

// losses returns all of them: speed first, then protection in the order of the page.
func (m *measurements) losses() []loss {
	all := m.speedLosses()
	for _, s := range m.scenarios {
		for column := range s.Columns {
			if l, lost := m.protectionLoss(s, column); lost {
				all = append(all, l)
			}
		}
	}
	return all
}

func (m *measurements) protectionLoss(s protect.Scenario, column int) (l loss, lost bool) {
	c := s.Columns[column]
	l = loss{key: s.Key + ": " + c.Name, title: s.Title + ": " + c.Name}
	field := map[string]protect.Figure{}
	var mine []protect.Figure
	for _, e := range s.Entries() {
		switch f := m.figure(s, e, column); e.Kind {
		case entry.Ours:
			mine = append(mine, f)
			l.ours = append(l.ours, figure.Format(c, f))
		case entry.Peer, entry.Rule:
			field[e.Name()] = f
		}
	}
	best := mine[0]
	for _, f := range field {
		if c.Better(f, best) {
			best = f
		}
	}
	for _, e := range s.Entries() {
		f, contends := field[e.Name()]
		if contends && !different(f, best) {
			l.winners = append(l.winners, e.Name())
		}
		if contends && different(f, mine[0]) && c.Better(f, mine[0]) {
			l.ahead++
		}
	}
	l.best = figure.Format(c, best)
	return l, different(best, mine[0])
}

// different reports whether the figures are more than a tie apart.
func different(a, b protect.Figure) bool {
	if a.Note != protect.Measured || b.Note != protect.Measured {
		return a.Note != b.Note
	}
	return differ(a.Value, b.Value)
}

func differ(a, b float64) bool { return max(a, b)-min(a, b) > tie*max(a, b) }

func (m *measurements) figure(s protect.Scenario, e entry.Entry, column int) protect.Figure {
	result, found := m.results.Find(s.Key, e.Name())
	if !found {
		panic(fmt.Sprintf("no result of %s in %s", e.Name(), s.Key))
	}
	return result.Figures[column]
}

// speedColumn is one thing that is timed or weighed.
type speedColumn struct {
	name  string
	value func(speed.Row) (float64, bool)
}

func timed(t *speed.Timing) (float64, bool) {
	if t == nil {
		return 0, false
	}
	return t.Nanoseconds, true
}

var speedColumns = []speedColumn{
	{"success", func(r speed.Row) (float64, bool) { return timed(r.Success) }},
	{"success, all cores", func(r speed.Row) (float64, bool) { return timed(r.Parallel) }},
	{"refusal, open", func(r speed.Row) (float64, bool) { return timed(r.Refused) }},
	{"refusal, half-open", func(r speed.Row) (float64, bool) { return timed(r.HalfOpen) }},
	{"bytes before the first call", func(r speed.Row) (float64, bool) { return r.Fresh, r.Fresh > 0 }},
	{"bytes with samples", func(r speed.Row) (float64, bool) { return r.Warm, r.Warm > 0 }},
}

// speedLosses compares peers with the first row that is no floor: ours with zero settings.
func (m *measurements) speedLosses() []loss {
	var all []loss
	ours, peers := m.contestants()
	for _, c := range speedColumns {
		mine, _ := c.value(ours)
		l := loss{key: "speed: " + c.name, title: "Speed: " + c.name, best: "1"}
		best := mine
		for _, r := range peers {
			if v, measured := c.value(r); measured && v < mine && differ(v, mine) {
				l.ahead++
				if v < best {
					best, l.winners = v, []string{r.Name}
				}
			}
		}
		if l.ahead > 0 {
			l.ours = []string{figure.Significant(mine/best) + " ×"}
			all = append(all, l)
		}
	}
	return all
}

// contestants splits the rows into ours with zero settings and the peers.
func (m *measurements) contestants() (ours speed.Row, peers []speed.Row) {
	const floors, others = 2, 1 // ours with consecutive failures only is no contestant
	return m.rows[floors], m.rows[floors+1+others:]
}

// checkReasons returns an error if a loss has no written reason, or a reason no loss any more.
func checkReasons(losses []loss, reasons []reason) error {
	unused := blames(reasons)
	var faults []string
	for _, l := range losses {
		if _, found := unused[l.key]; !found {
			faults = append(faults, "no reason is written for "+l.key)
		}
		delete(unused, l.key)
	}
	for key := range unused {
		faults = append(faults, "a reason is written for "+key+", which is no loss")
	}
	slices.Sort(faults)
	if len(faults) > 0 {
		return fmt.Errorf("the page is written, but its reasons.txt and its figures disagree:\n%s", strings.Join(faults, "\n"))
	}
	return nil
}
