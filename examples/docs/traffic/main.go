// Command traffic backs the table of docs/settings.md: it runs the settings for each kind of traffic, and the fixed rules, through
// the same simulated days.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/brownout-go/breaker"
)

func main() {
	if err := compare(context.Background(), situations()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println()
	for _, d := range twoHumpedDays() {
		fmt.Printf("%-24s %-28s classic opens %-7s row opens %s\n", "bimodal latency", d.name,
			d.firstOpen(breaker.Classic()), d.firstOpen(bimodal()))
	}
}

func compare(ctx context.Context, list []situation) error {
	const row = "%-24s %-28s %-8s %9s %6v %6v %10s %10s"
	fmt.Printf(row+"\n", "traffic", "day", "settings", "served", "opens", "false", "opened", "recovered")
	for _, s := range list {
		for _, c := range s.candidates() {
			t, err := s.run(ctx, c.settings)
			if err != nil {
				return err
			}
			opened, recovered := "", ""
			if s.Dependency.Incidents != nil {
				opened, recovered = mean(t.timeToOpen), mean(t.timeToRecover)
			}
			served := fmt.Sprintf("%.2f %%", 100*t.served())
			line := fmt.Sprintf(row, s.kind, s.day, c.name, served, t.opens, t.falseOpens, opened, recovered)
			fmt.Println(strings.TrimRight(line, " "))
		}
	}
	return nil
}

// tally sums up several runs.
type tally struct {
	calls, succeeded, opens, falseOpens int
	timeToOpen, timeToRecover           []time.Duration // of the runs that did
}

// run simulates a situation under other settings, once for each seed.
func (s situation) run(ctx context.Context, settings breaker.Settings) (t tally, err error) {
	s.Settings = settings
	for s.Seed = 1; s.Seed <= s.seeds; s.Seed++ {
		r, err := s.Run(ctx)
		if err != nil {
			return t, err
		}
		t.calls += r.Calls
		t.succeeded += r.Succeeded
		t.opens += r.Opens
		t.falseOpens += r.FalseOpens
		if r.Opened {
			t.timeToOpen = append(t.timeToOpen, r.TimeToOpen)
		}
		if r.Recovered {
			t.timeToRecover = append(t.timeToRecover, r.TimeToRecover)
		}
	}
	return t, nil
}

func (t tally) served() float64 { return float64(t.succeeded) / float64(t.calls) }

// mean is the mean of the runs that have one.
func mean(times []time.Duration) string {
	if len(times) == 0 {
		return "never"
	}
	var sum time.Duration
	for _, t := range times {
		sum += t
	}
	return (sum / time.Duration(len(times))).Round(10 * time.Millisecond).String()
}
