package speed

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/brownout-go/breaker"
	"github.com/brownout-go/breaker/benchmarks/internal/entry"
)

// Bound is one promise of the specification: a time as a multiple of another's in the same run.
type Bound struct {
	What    string
	Mine    Contestant
	Against Contestant
	Most    float64 // the largest ratio that keeps the promise; 0: shown without a promise
}

// Bounds are the promises about time.
func Bounds() []Bound {
	gobreaker := entry.GobreakerBench()
	adaptive, consecutive := entry.OursBench(breaker.Settings{}), entry.OursBench(entry.ConsecutiveOnly())
	success := Contestant{Name: "gobreaker Execute", Loop: gobreaker.Success}
	halfOpen := Contestant{Name: "gobreaker half-open refusal", Loop: gobreaker.HalfOpen}
	mine := Contestant{Name: "Execute", Loop: adaptive.Success}
	permits := entry.OursPermits(breaker.Settings{})
	return []Bound{
		{"Execute, adaptive", mine, success, 0.55},
		{"Execute, adaptive", mine, FloorLatency, 1.3},
		{"Execute, adaptive, all cores", shared(adaptive.Success), shared(gobreaker.Success), 0.55},
		{"refusal, open", Contestant{Loop: adaptive.Refused}, Contestant{Name: "gobreaker refusal", Loop: gobreaker.Refused}, 0.6},
		{"refusal, half-open", Contestant{Loop: adaptive.HalfOpen}, halfOpen, 0},
		{"Execute, consecutive failures only", Contestant{Loop: consecutive.Success}, success, 0.15},
		{"TryAcquire and Done, adaptive", Contestant{Loop: permits}, success, 0},
		{"TryAcquire and Done, all cores", shared(permits), shared(gobreaker.Success), 0},
		{"floor: two clock reads and a lock", FloorLatency, success, 0},
		{"floor: empty call", FloorEmpty, success, 0},
	}
}

func shared(loop Loop) Contestant {
	return Contestant{Name: "gobreaker Execute, all cores", Loop: loop, Parallel: true}
}

// Size is one promise about memory, in bytes.
type Size struct {
	What string
	Make func() any
	Most float64
}

// Sizes are the promises about memory.
func Sizes() []Size {
	adaptive, consecutive := entry.OursBench(breaker.Settings{}), entry.OursBench(entry.ConsecutiveOnly())
	gobreaker := entry.GobreakerBench()
	return []Size{
		{"default, before its first call", adaptive.New, 1024},
		{"default, with samples", warm(adaptive), 4.5 * 1024},
		{"consecutive failures only, with samples", warm(consecutive), 640},
		{"gobreaker, rolling window of 10 buckets, with samples", warm(gobreaker), 0},
	}
}

func warm(b entry.Bench) func() any {
	return func() any {
		made := b.New()
		b.Warm(made)
		return made
	}
}

// BoundResult is what became of a promise about time.
type BoundResult struct {
	Bound
	MineTook, AgainstTook Timing
}

// Ratio is ours over the other's.
func (r BoundResult) Ratio() float64 { return r.MineTook.Nanoseconds / r.AgainstTook.Nanoseconds }

// Verdict is "kept" or "missed", or empty where nothing was promised.
func (r BoundResult) Verdict() string { return verdictOn(r.Ratio(), r.Most) }

// SizeResult is what became of a promise about memory.
type SizeResult struct {
	Size
	Bytes float64
}

// Verdict is "kept" or "missed", or empty where nothing was promised.
func (r SizeResult) Verdict() string { return verdictOn(r.Bytes, r.Most) }

// MeasureBounds measures every promise about time, interleaved in one run.
func MeasureBounds(plan Plan) []BoundResult {
	bounds := Bounds()
	contestants := make([]Contestant, 0, 2*len(bounds))
	for _, b := range bounds {
		contestants = append(contestants, b.Mine, b.Against)
	}
	timings := plan.Measure(contestants)
	results := make([]BoundResult, len(bounds))
	for i, b := range bounds {
		results[i] = BoundResult{b, timings[2*i], timings[2*i+1]}
	}
	return results
}

// MeasureSizes measures every promise about memory.
func MeasureSizes() []SizeResult {
	var results []SizeResult
	for _, s := range Sizes() {
		results = append(results, SizeResult{s, Bytes(s.Make)})
	}
	return results
}

const missed = "missed"

func verdictOn(value, most float64) string {
	switch {
	case most == 0:
		return ""
	case value <= most:
		return "kept"
	default:
		return missed
	}
}

// WriteBounds writes the promises as two tables and reports whether all are kept.
func WriteBounds(w io.Writer, times []BoundResult, sizes []SizeResult) bool {
	kept := true
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "what\tns\tallocs\tagainst\tns\tratio\tbound\t\t")
	for _, r := range times {
		kept = kept && r.Verdict() != missed
		fmt.Fprintf(table, "%s\t%.1f\t%.2f\t%s\t%.1f\t%.3f\t%s\t%s\t\n", r.What, r.MineTook.Nanoseconds, r.MineTook.Allocs,
			r.Against.Name, r.AgainstTook.Nanoseconds, r.Ratio(), orDash(r.Most), r.Verdict())
	}
	fmt.Fprintln(table, "\t\t\t\t\t\t\t\t\nbreaker\tbytes\t\t\t\t\tbound\t\t")
	for _, r := range sizes {
		kept = kept && r.Verdict() != missed
		fmt.Fprintf(table, "%s\t%.0f\t\t\t\t\t%s\t%s\t\n", r.What, r.Bytes, orDash(r.Most), r.Verdict())
	}
	table.Flush()
	return kept
}

func orDash(bound float64) string {
	if bound == 0 {
		return "-"
	}
	return fmt.Sprintf("%g", bound)
}
