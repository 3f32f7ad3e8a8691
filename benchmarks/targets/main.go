// Command targets measures what the zero settings must reach and prints each target with its verdict. It exits with status 1
// if one is missed. It is for whoever works on the rules: seconds, where the report takes long.
//
//	go run ./targets                                   zero settings, all scenarios, tuning seeds, days of four hours
//	go run ./targets -scenarios tuning                 half of the scenarios
//	go run ./targets -seeds report -scenarios report   the other half, on other seeds
//	go run ./targets -pace full -seeds report          as on the page
//	go run ./targets -only brownout,collapse           these scenarios
//	go run ./targets -entries all -save field.json     the whole field, with ranks, which is kept
//	go run ./targets -field field.json                 zero settings, ranked in the field that was kept
//	go run ./targets -vary 3                           three unseen variations of each scenario in place of it
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/brownout-go/breaker/benchmarks/internal/entry"
	"github.com/brownout-go/breaker/benchmarks/internal/protect"
)

// options are the flags.
type options struct {
	plan         protect.Plan
	entries      string
	only         string
	save, within string
	quiet        bool
}

func main() {
	o := flags()
	missed, err := o.run()
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "targets:", err)
		os.Exit(2)
	case missed > 0:
		os.Exit(1)
	}
}

func flags() *options {
	o := &options{}
	flag.StringVar((*string)(&o.plan.Pace), "pace", string(protect.Quick), "full, quick or short")
	flag.StringVar((*string)(&o.plan.Seeds), "seeds", string(protect.Tuning), "tuning or report")
	flag.StringVar((*string)(&o.plan.Scenarios), "scenarios", "", "tuning or report; empty: all")
	flag.IntVar(&o.plan.Runs, "runs", 0, "seeds of each scenario, at least; 0: as the pace has it")
	flag.IntVar(&o.plan.Vary, "vary", 0, "variations of each scenario; 0: the scenarios themselves")
	flag.StringVar(&o.entries, "entries", "zero", "zero; ours; all; or names as tables have them, with ; between")
	flag.StringVar(&o.only, "only", "", "keys of scenarios, with commas between; empty: all")
	flag.StringVar(&o.save, "save", "", "a file to keep the figures in")
	flag.StringVar(&o.within, "field", "", "a file with the figures of the field, kept before with the same flags")
	flag.BoolVar(&o.quiet, "quiet", false, "show no progress")
	flag.Parse()
	o.plan.Entries = names(o.entries)
	if o.only != "" {
		o.plan.Keys = strings.Split(o.only, ",")
	}
	return o
}

// names returns those of the entries to run; none for all.
func names(entries string) []string {
	switch entries {
	case "all":
		return nil
	case "zero":
		return []string{protect.ZeroSettings}
	case "ours":
		var ours []string
		for _, e := range entry.Field() {
			if e.Kind == entry.Ours {
				ours = append(ours, e.Name())
			}
		}
		return ours
	default:
		return strings.Split(entries, ";")
	}
}

// run measures, prints and returns how many targets are missed.
func (o *options) run() (missed int, err error) {
	if err := o.plan.Validate(); err != nil {
		return 0, err
	}
	began := time.Now()
	results, err := o.plan.Measure(o.progress(o.plan.Cells()))
	if err != nil {
		return 0, err
	}
	if o.save != "" {
		if err := results.Write(o.save, o.plan); err != nil {
			return 0, err
		}
	}
	if o.within != "" {
		field, err := protect.ReadField(o.within, o.plan)
		if err != nil {
			return 0, err
		}
		results = results.Within(field)
	}
	t := tables{o.plan.All(), results}
	fmt.Println(t.targets(o.plan.Entries))
	fmt.Println(t.regrets())
	missed = t.missed(protect.ZeroSettings)
	fmt.Printf("%d of %d targets missed by %s, in %.0f s\n", missed, len(t.all(protect.ZeroSettings)), protect.ZeroSettings,
		time.Since(began).Seconds())
	return missed, nil
}

// progress writes one line that counts the cells.
func (o *options) progress(total int) func(scenario, entry string) {
	done := 0
	return func(scenario, entry string) {
		done++
		if !o.quiet {
			fmt.Fprintf(os.Stderr, "\r%d of %d: %-60.60s", done, total, scenario+", "+entry)
		}
		if !o.quiet && done == total {
			fmt.Fprintf(os.Stderr, "\r%80s\r", "")
		}
	}
}
