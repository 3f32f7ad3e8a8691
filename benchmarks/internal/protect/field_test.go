package protect

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/brownout-go/breaker/benchmarks/internal/entry"
	"github.com/stretchr/testify/require"
)

var (
	out   = flag.String("field.out", "", "run the field and write the figures to this file")
	asked = flag.String("field.plan", `{"Pace": "full"}`, "with field.out: the Plan, in JSON")
)

// TestField runs every entry through every scenario. It is a test only because a bubble of testing/synctest needs one: it
// asserts that the runs end, and the report reads its figures. One cell of the page, with its name as the page has it:
//
//	go test ./internal/protect -v -field.out=/dev/null -run 'TestField/runs/outage-100/gobreaker,_tuned$'
func TestField(t *testing.T) {
	if *out == "" {
		t.Skip("run by the report")
	}
	var p Plan
	require.NoError(t, json.Unmarshal([]byte(*asked), &p))
	var results Results
	var mu sync.Mutex
	t.Run("runs", func(t *testing.T) {
		for _, s := range p.All() {
			for _, e := range p.EntriesOf(s) {
				t.Run(s.Key+"/"+e.Name(), func(t *testing.T) {
					t.Parallel()
					result := measure(t, s, e, p.FirstSeed())
					t.Log(result.Figures)
					fmt.Fprintf(os.Stderr, "%s: %s\n", s.Key, e.Name())
					mu.Lock()
					defer mu.Unlock()
					results = append(results, result)
				})
			}
		}
	})
	text, err := json.Marshal(results)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(*out, text, 0o644))
}

func measure(t *testing.T, s Scenario, e entry.Entry, firstSeed uint64) Result {
	m := Measurement{Scenario: s, Entry: e, FirstSeed: firstSeed}
	for range s.Runs {
		synctest.Test(t, func(*testing.T) { m.Run() })
	}
	return m.Result()
}
