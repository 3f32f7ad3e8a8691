package protect

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/brownout-go/breaker/benchmarks/internal/entry"
)

// Half is one of two halves of the seeds, and of the scenarios: rules are tuned on one and reported on the other.
type Half string

// The halves. The zero Half is both, and of the seeds the reported one.
const (
	Both   Half = ""
	Tuning Half = "tuning"
	Report Half = "report"
)

// Pace is how long the scenarios are.
type Pace string

// The paces.
const (
	Full  Pace = "full"  // of the page: minutes for each entry
	Quick Pace = "quick" // days of four hours; incidents are as long as on the page
	Short Pace = "short" // days of minutes, one seed: only to see that everything runs
)

// Plan is what to measure.
type Plan struct {
	Pace      Pace
	Seeds     Half
	Runs      int      // of a scenario, at least; 0: 5, and one at the short pace
	Scenarios Half     // every second one is for tuning
	Keys      []string // of scenarios; empty: all of the half
	Entries   []string // names; empty: the whole field
	Vary      int      // 0: the scenarios as they are declared; else how many unseen variations of each
}

// FirstSeed is the seed of the first run; the others follow it.
func (p Plan) FirstSeed() uint64 {
	if p.Seeds == Tuning {
		return 1
	}
	return 1001
}

// All returns the scenarios of the plan.
func (p Plan) All() []Scenario {
	pace := paces[p.Pace]
	if p.Runs == 0 {
		p.Runs = pace.least
	}
	var all []Scenario
	for i, s := range pace.scenarios() {
		half := []Half{Tuning, Report}[i%2]
		wanted := p.Scenarios == Both || p.Scenarios == half
		if !wanted || len(p.Keys) > 0 && !slices.Contains(p.Keys, s.Key) {
			continue
		}
		s.Runs = max(p.Runs, min(s.Runs, pace.most))
		if p.Vary > 0 {
			all = append(all, s.vary(p.Vary, p.FirstSeed())...)
			continue
		}
		all = append(all, s)
	}
	return all
}

// EntriesOf returns who runs in the scenario.
func (p Plan) EntriesOf(s Scenario) []entry.Entry {
	return slices.DeleteFunc(s.Entries(), func(e entry.Entry) bool {
		return len(p.Entries) > 0 && !slices.Contains(p.Entries, e.Name())
	})
}

// Cells is how many pairs of a scenario and an entry there are.
func (p Plan) Cells() int {
	n := 0
	for _, s := range p.All() {
		n += len(p.EntriesOf(s))
	}
	return n
}

// Validate returns an error if the plan names a pace, a half, a scenario or an entry that there is not.
func (p Plan) Validate() error {
	if _, known := paces[p.Pace]; !known {
		return fmt.Errorf("there is no pace %q", p.Pace)
	}
	for _, h := range []Half{p.Seeds, p.Scenarios} {
		if h != Both && h != Tuning && h != Report {
			return fmt.Errorf("there is no half %q", h)
		}
	}
	for _, key := range p.Keys {
		if len(Plan{Pace: p.Pace, Keys: []string{key}}.All()) == 0 {
			return fmt.Errorf("there is no scenario %q", key)
		}
	}
	known := append(entry.Field(), Oracle)
	for _, name := range p.Entries {
		if !slices.ContainsFunc(known, func(e entry.Entry) bool { return e.Name() == name }) {
			return fmt.Errorf("there is no entry %q", name)
		}
	}
	return nil
}

// Measure runs the plan in a test of this package, because a bubble of testing/synctest needs a test. The working directory
// must be that of the module. Progress is told of each cell that has been measured.
func (p Plan) Measure(progress func(scenario, entry string)) (Results, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "field")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "results.json")
	plan, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	test := exec.Command("go", "test", "-count=1", "-timeout=3h", "-run=^TestField$", "-args", "-field.out="+file,
		"-field.plan="+string(plan))
	test.Dir = filepath.Join("internal", "protect")
	lines := &progressLines{tell: progress}
	test.Stdout, test.Stderr = lines, lines
	if err := test.Run(); err != nil {
		return nil, fmt.Errorf("the scenarios: %w\n%s", err, lines.other.String())
	}
	return ReadResults(file)
}

// ReadResults reads what a test of the field has written.
func ReadResults(file string) (Results, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var results Results
	return results, json.Unmarshal(text, &results)
}
