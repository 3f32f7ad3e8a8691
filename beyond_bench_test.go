package breaker

import (
	"context"
	"slices"
	"testing"
	"time"
)

// beyond returns default settings with the three settings that no other breaker has, or none, one or all of them, by name.
func beyond(name string) (s Settings) {
	if name == "sequential" || name == "all" {
		s.Failures.FalseAlarmEvery = 30 * 24 * time.Hour
	}
	if name == "tail" || name == "all" {
		s.SlowCalls.TailQuantile = 0.75
	}
	if name == "overdue" || name == "all" {
		s.SlowCalls.Overdue = true
	}
	return s
}

// BenchmarkBeyond measures what each of the three costs a successful call of a closed breaker, as a ratio to the same breaker
// without. Short turns of all of them alternate, so that whatever else the machine does meets each alike, and the fastest tenth
// of the turns counts, which nothing else has interrupted.
func BenchmarkBeyond(b *testing.B) {
	const turn = 1000
	names := []string{"default", "sequential", "tail", "overdue", "all"}
	ctx, call := context.Background(), func(context.Context) error { return nil }
	breakers, turns := make([]*Breaker, len(names)), make([][]float64, len(names))
	for i, name := range names {
		breakers[i] = MustNew(beyond(name))
	}
	for n := 0; n < b.N || n < 3*turn; n += turn {
		for i := range breakers {
			start := time.Now()
			for range turn {
				_ = breakers[i].Execute(ctx, call)
			}
			turns[i] = append(turns[i], float64(time.Since(start))/turn)
		}
	}
	for i, name := range names {
		b.ReportMetric(fastest(turns[i])/fastest(turns[0]), name+"/default")
	}
	b.ReportMetric(fastest(turns[0]), "ns/call")
	b.ReportMetric(0, "ns/op") // of a round of all
}

// fastest returns the first decile.
func fastest(turns []float64) float64 { return slices.Sorted(slices.Values(turns))[len(turns)/10] }
