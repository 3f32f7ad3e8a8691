package protect

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"

	"github.com/brownout-go/breaker/benchmarks/internal/entry"
)

// ZeroSettings is the name of the entry that the targets are for.
const ZeroSettings = "ours, zero settings"

// Ways of adding regrets up over scenarios.
var (
	PlainTotal = func(r Regret) float64 { return r.Total() }
	ShareTotal = func(r Regret) float64 { return r.Share() }
	CallTotal  = func(r Regret) float64 { return r.PerCall() }
)

// Sum adds up what an entry regrets in all scenarios.
func (rs Results) Sum(scenarios []Scenario, entry string, of func(Regret) float64) float64 {
	sum := 0.0
	for _, s := range scenarios {
		if r, found := rs.Find(s.Key, entry); found {
			sum += of(r.Regret)
		}
	}
	return sum
}

// even is by how much a regret must be smaller to be less: a thousandth of it.
const even = 0.001

// Rank is 1 + how many peers and simple rules regret less than the entry; other entries of ours do not count. Figures are by
// name.
func Rank(name string, figures map[string]float64) int {
	rank := 1
	for _, e := range entry.Field() {
		other, measured := figures[e.Name()]
		contends := e.Kind == entry.Peer || e.Kind == entry.Rule
		if measured && contends && e.Name() != name && other < figures[name]*(1-even) {
			rank++
		}
	}
	return rank
}

// Regrets returns what each entry regrets in a scenario. In a closed loop whoever refuses is offered more calls, so entries are
// compared by their regret for each call.
func (rs Results) Regrets(scenario string) map[string]float64 {
	figures := map[string]float64{}
	for _, r := range rs {
		if r.Scenario == scenario {
			figures[r.Entry] = r.Regret.PerCall()
		}
	}
	return figures
}

// Sums returns what each entry regrets in all scenarios, if it ran in all.
func (rs Results) Sums(scenarios []Scenario, of func(Regret) float64) map[string]float64 {
	runs := map[string]int{}
	for _, r := range rs {
		runs[r.Entry]++
	}
	sums := map[string]float64{}
	for name, n := range runs {
		if n == len(scenarios) {
			sums[name] = rs.Sum(scenarios, name, of)
		}
	}
	return sums
}

// kept is a file of figures.
type kept struct {
	Plan    Plan
	Results Results
}

// Write keeps the results of a plan in a file.
func (rs Results) Write(file string, p Plan) error {
	text, err := json.Marshal(kept{p, rs})
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}

// ReadField returns the results that a file keeps. It fails if they are of another plan, apart from who ran and in which
// scenarios.
func ReadField(file string, p Plan) (Results, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var k kept
	if err := json.Unmarshal(text, &k); err != nil {
		return nil, err
	}
	k.Plan.Entries, k.Plan.Keys, k.Plan.Scenarios = p.Entries, p.Keys, p.Scenarios
	if !reflect.DeepEqual(k.Plan, p) {
		return nil, fmt.Errorf("%s was kept with other flags: %+v", file, k.Plan)
	}
	return k.Results, nil
}

// Within returns the results with those of the field in the same scenarios for whoever did not run.
func (rs Results) Within(field Results) Results {
	all, measured := rs, map[string]bool{}
	for _, r := range rs {
		measured[r.Scenario] = true
	}
	for _, r := range field {
		if _, ran := rs.Find(r.Scenario, r.Entry); !ran && measured[r.Scenario] {
			all = append(all, r)
		}
	}
	return all
}
