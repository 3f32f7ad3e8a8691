// Command report measures the whole field, speed first, then the grid of failures and protection, and writes
// docs/benchmarks.md with its pictures. It shows its progress on standard error.
//
//	go run ./report                 everything; the better part of an hour on two cores
//	go run ./report -pace quick -runs 1 -short-parts   days of four hours, fewer seeds: minutes
//	go run ./report -short          seconds; prints the page and writes nothing
//	go run ./report -short -out dir the same, written to dir
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/brownout-go/breaker/benchmarks/internal/grid"
	"github.com/brownout-go/breaker/benchmarks/internal/protect"
	"github.com/brownout-go/breaker/benchmarks/internal/speed"
)

func main() {
	var o options
	flag.BoolVar(&o.short, "short", false, "cut scenarios and rounds; print the page unless -out is given")
	flag.StringVar((*string)(&o.protection.Pace), "pace", string(protect.Full), "of protection: full or quick")
	flag.StringVar((*string)(&o.protection.Seeds), "seeds", string(protect.Report), "of protection: report or tuning")
	flag.StringVar(&o.field, "field", "", "a file with the figures of the field, kept by the targets command at the same pace: only ours run")
	flag.IntVar(&o.protection.Runs, "runs", 0, "seeds of each scenario of protection, at least; 0: as the pace has it")
	flag.BoolVar(&o.shortParts, "short-parts", false, "cut the parts of the grid that are slowness and correlated outcomes")
	out := flag.String("out", "", "the directory for benchmarks.md and img (default ../docs, or none with -short)")
	flag.Parse()
	if *out == "" && !o.short {
		*out = filepath.Join("..", "docs")
	}
	if err := run(o, *out); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run(o options, out string) error {
	m, err := measure(o)
	if err != nil {
		return err
	}
	if out == "" {
		return m.writePage(os.Stdout)
	}
	if err := m.draw(filepath.Join(out, "img")); err != nil {
		return err
	}
	page, err := os.Create(filepath.Join(out, "benchmarks.md"))
	if err != nil {
		return err
	}
	defer page.Close()
	if err := m.writePage(page); err != nil {
		return err
	}
	if !o.short {
		return checkReasons(m.losses(), readReasons(written))
	}
	return nil
}

// options are the flags but for the directory.
type options struct {
	short, shortParts bool
	protection        protect.Plan
	field             string // a file; empty: everybody runs
}

// plans returns what to measure.
func (o options) plans() (speed.Plan, protect.Plan) {
	if o.short {
		return speed.Short, protect.Plan{Pace: protect.Short}
	}
	return speed.Full, o.protection
}

// measureGrid runs the grid of failures, and its parts as long as the flags have it.
func (o options) measureGrid() grid.Result {
	if o.short {
		return grid.Short().Run()
	}
	cells := grid.Full()
	if !o.shortParts {
		return cells.Run()
	}
	cells.Parts = nil
	rough := grid.Short()
	rough.Steady, rough.Shifts = nil, nil
	r := cells.Run()
	r.Plan.Parts, r.Parts = rough.Parts, rough.Run().Parts
	return r
}

// measurements are all that the page is made of.
type measurements struct {
	options
	bounds    []speed.BoundResult
	sizes     []speed.SizeResult
	rows      []speed.Row
	settings  []speed.SettingCost
	scenarios []protect.Scenario
	results   protect.Results
	grid      grid.Result
}

func measure(o options) (*measurements, error) {
	plan, field := o.plans()
	if err := field.Validate(); err != nil {
		return nil, err
	}
	progress("speed: what the specification promises")
	m := &measurements{options: o, scenarios: field.All()}
	m.bounds, m.sizes = speed.MeasureBounds(plan), speed.MeasureSizes()
	progress("speed: the field")
	m.rows = speed.MeasureField(plan)
	m.settings = speed.MeasureSettings(plan)
	progress("the grid of failures")
	m.grid = o.measureGrid()
	var err error
	m.results, err = measureProtection(field, o.field)
	return m, err
}

func progress(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
