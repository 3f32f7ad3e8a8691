// Command report measures the whole field, speed first, then the grid of failures and protection, and writes
// docs/benchmarks.md with its pictures. It shows its progress on standard error.
//
//	go run ./report                 everything; about a quarter of an hour on two cores
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
	short := flag.Bool("short", false, "cut scenarios and rounds; print the page unless -out is given")
	out := flag.String("out", "", "the directory for benchmarks.md and img (default ../docs, or none with -short)")
	flag.Parse()
	if *out == "" && !*short {
		*out = filepath.Join("..", "docs")
	}
	if err := run(*short, *out); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run(short bool, out string) error {
	m, err := measure(short)
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
	if !short {
		return checkReasons(m.losses(), readReasons(written))
	}
	return nil
}

// measurements are all that the page is made of.
type measurements struct {
	short     bool
	bounds    []speed.BoundResult
	sizes     []speed.SizeResult
	rows      []speed.Row
	settings  []speed.SettingCost
	scenarios []protect.Scenario
	results   protect.Results
	grid      grid.Result
}

func measure(short bool) (*measurements, error) {
	plan, cells := speed.Full, grid.Full()
	if short {
		plan, cells = speed.Short, grid.Short()
	}
	progress("speed: what the specification promises")
	m := &measurements{short: short, scenarios: protect.Scenarios(short)}
	m.bounds, m.sizes = speed.MeasureBounds(plan), speed.MeasureSizes()
	progress("speed: the field")
	m.rows = speed.MeasureField(plan)
	m.settings = speed.MeasureSettings(plan)
	progress("the grid of failures")
	m.grid = cells.Run()
	var err error
	m.results, err = measureProtection(m.scenarios, short)
	return m, err
}

func progress(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
