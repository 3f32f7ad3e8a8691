// Command grid counts how often the failure trip opens on a dependency that is well, and how many calls it needs to see one
// that is not: the default rules beside the sequential test of Failures.FalseAlarmEvery. It exits with status 1 if the
// sequential test misses a target.
//
//	go run ./grid          two minutes on two cores
//	go run ./grid -short   seconds, and too few calls for a verdict
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"

	"github.com/brownout-go/breaker/benchmarks/internal/grid"
)

func main() {
	short := flag.Bool("short", false, "a hundredth of the days and few runs; the figures are rough")
	flag.Parse()
	plan := grid.Full()
	if *short {
		plan = grid.Short()
	}
	result := plan.Run()
	fmt.Printf("%s\n%s\n%s", result.TargetTable(), result.HealthTable(), result.DetectionTable())
	missed := func(t grid.Target) bool { return !t.Kept() }
	if !*short && slices.ContainsFunc(result.Targets(), missed) {
		os.Exit(1)
	}
}
