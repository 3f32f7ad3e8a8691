package protect

import "github.com/brownout-go/breaker/benchmarks/internal/entry"

// Result is what one entry did in one scenario.
type Result struct {
	Scenario, Entry string
	Figures         []Figure // in the order of the scenario's columns: the medians
	Worst           []Figure // of all runs
	Regret          Regret   // of the median run
	Timeline        []Second `json:",omitempty"` // of scenarios that are drawn
}

// Results are all of them, in no order.
type Results []Result

// Find returns the result of an entry in a scenario.
func (rs Results) Find(scenario, entry string) (Result, bool) {
	for _, r := range rs {
		if r.Scenario == scenario && r.Entry == entry {
			return r, true
		}
	}
	return Result{}, false
}

// Entries returns who runs in the scenario.
func (s Scenario) Entries() []entry.Entry {
	field := entry.Field()
	if s.Oracle {
		field = append(field, Oracle)
	}
	return field
}

// Oracle knows the room that the dependency has. Its guard is made by the run.
var Oracle = entry.Entry{Library: "oracle", Config: "knows the capacity", Kind: entry.Absent, Setup: "admits while the " +
	"dependency has room"}

// Measurement collects the runs of one entry in one scenario.
type Measurement struct {
	Scenario  Scenario
	Entry     entry.Entry
	FirstSeed uint64 // of the first run; the others follow it, the same for all entries
	runs      [][]Figure
	regrets   []Regret
	timeline  []Second
}

// Run makes one more run, in a bubble of testing/synctest.
func (m *Measurement) Run() {
	seed := m.FirstSeed + uint64(len(m.runs))
	r := m.Scenario.Run(m.Entry, seed)
	if m.Scenario.Oracle {
		r.against(m.Scenario.Run(Oracle, seed))
	}
	if m.Scenario.Timeline && m.timeline == nil {
		m.timeline = r.Seconds
	}
	m.regrets = append(m.regrets, r.Regret)
	m.runs = append(m.runs, m.Scenario.Measure(r))
}

// Result returns the medians and the worst of the runs, and the timeline of the first.
func (m *Measurement) Result() Result {
	result := Result{Scenario: m.Scenario.Key, Entry: m.Entry.Name(), Regret: medianRegret(m.regrets), Timeline: m.timeline}
	for i, column := range m.Scenario.Columns {
		var figures []Figure
		for _, run := range m.runs {
			figures = append(figures, run[i])
		}
		result.Figures = append(result.Figures, column.median(figures))
		result.Worst = append(result.Worst, column.sorted(figures)[len(figures)-1])
	}
	return result
}
