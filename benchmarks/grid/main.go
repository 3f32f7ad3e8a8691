// Command grid counts how often the failure trip opens on a dependency that is well, and how many calls it needs to see one
// that is not: the classic rules beside those of zero settings. It exits with status 1 if zero settings
// miss a target.
//
//	go run ./grid                    minutes on two cores
//	go run ./grid -part failures     only independent failures, and how soon shifts are seen: two minutes
//	go run ./grid -part slowness     only slowness, and correlated outcomes of both
//	go run ./grid -short             seconds, and too few calls for a verdict
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
	part := flag.String("part", "", "failures or slowness; empty: both")
	flag.Parse()
	plan := grid.Full()
	if *short {
		plan = grid.Short()
	}
	switch *part {
	case "failures":
		plan.Parts = nil
	case "slowness":
		plan.Steady, plan.Shifts = nil, nil
		fmt.Print(plan.Run().AllParts())
		return
	}
	result := plan.Run()
	fmt.Printf("%s\n%s\n%s\n%s", result.TargetTable(), result.HealthTable(), result.DetectionTable(), result.AllParts())
	missed := func(t grid.Target) bool { return !t.Kept() }
	if !*short && slices.ContainsFunc(result.Targets(), missed) {
		os.Exit(1)
	}
}
