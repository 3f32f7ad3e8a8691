// Command adaptive measures what docs/adaptive.md says of the two baselines: the windows they derive, how long they hold out
// against an incident, which shifts the failure trip notices, how often it errs, and what neutral traffic costs a recovery.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/brownout-go/breaker"
)

func main() {
	fmt.Println("derived windows")
	for _, d := range derivations() {
		s := d.settings.WithDefaults()
		fmt.Printf("  %-24s Failures.Window %-8v off %-6v SlowCalls.Window %-8v off %v\n",
			d.name, s.Failures.Window, s.Failures.Off, s.SlowCalls.Window, s.SlowCalls.Off)
	}
	fmt.Println("\nall calls are ten times slower from now on: the baseline of 5m0s follows after")
	for _, quantile := range []float64{0.5, 0.25, 0.1} {
		earliest, latest := holdsOut(quantile, 5*time.Minute)
		fmt.Printf("  quantile %-5v %v to %v\n", quantile, earliest, latest)
	}
	fmt.Println("\nsuccesses needed to close, probes sent")
	for _, neutral := range []float64{0, 0.5, 0.9, 0.99} {
		fmt.Printf("  %2.0f %% neutral  %6.1f\n", 100*neutral, probesToClose(neutral))
	}
	if err := simulations(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func simulations(ctx context.Context) error {
	fmt.Println("\nfrom 5 % failures to more, for five minutes: opened in so many of 20 runs")
	for _, c := range shifts() {
		opened, mean, err := c.opened(ctx, 20)
		if err != nil {
			return err
		}
		after := "never"
		if opened > 0 {
			after = mean.Round(time.Second).String()
		}
		fmt.Printf("  to %2.0f %%, %-22s %2d, after %s\n", 100*c.to, c.name, opened, after)
	}
	fmt.Println("\nfalse opens in a day of 1 % failures")
	for _, c := range healthyDays() {
		n, err := c.falseOpens(ctx)
		if err != nil {
			return err
		}
		fmt.Printf("  %-3v calls/s, %-26s %2d\n", c.perSecond, c.name, n)
	}
	return nil
}

// classic returns the fixed rules with a change.
func classic(change func(*breaker.Settings)) breaker.Settings {
	s := breaker.Classic()
	change(&s)
	return s
}

type named struct {
	name     string
	settings breaker.Settings
}

func derivations() []named {
	return []named{
		{"defaults", breaker.Settings{}},
		{"Classic()", breaker.Classic()},
		{"Window 1m0s", breaker.Settings{Window: time.Minute}},
		{"Window 10s", breaker.Settings{Window: 10 * time.Second}},
		{"Window 15m0s", breaker.Settings{Window: 15 * time.Minute}},
		{"no test, Multiple 3", breaker.Settings{Failures: breaker.Failures{Multiple: 3, FalseAlarmEvery: breaker.Disabled}}},
		{"no test, Multiple 10", breaker.Settings{Failures: breaker.Failures{Multiple: 10, FalseAlarmEvery: breaker.Disabled}}},
		{"SlowCalls.Quantile 0.05", breaker.Settings{SlowCalls: breaker.SlowCalls{Quantile: 0.05}}},
	}
}

// shift is a breaker that is to notice that more calls fail.
type shift struct {
	named
	to float64
}

// The limit of failures in a row would notice, too; it is off here.
func shifts() []shift {
	streakless := func(change func(*breaker.Settings)) breaker.Settings {
		return classic(func(s *breaker.Settings) { s.ConsecutiveFailures = breaker.Disabled; change(s) })
	}
	defaults := named{"Classic()", streakless(func(*breaker.Settings) {})}
	longer := named{"Failures.Window 30m0s", streakless(func(s *breaker.Settings) { s.Failures.Window = 30 * time.Minute })}
	absolute := named{"FailureRatio 0.2", streakless(func(s *breaker.Settings) { s.FailureRatio = 0.2 })}
	return []shift{{defaults, 0.3}, {defaults, 0.6}, {longer, 0.3}, {absolute, 0.3}}
}

func (c shift) opened(ctx context.Context, runs int) (n int, mean time.Duration, err error) {
	const before = 0.05
	for seed := range runs {
		r, err := breaker.Simulation{
			Settings: c.settings,
			Dependency: breaker.Dependency{
				P50: 20 * time.Millisecond, P99: 80 * time.Millisecond, FailureRate: before,
				Incidents: []breaker.Incident{{After: 40 * time.Minute, For: 5 * time.Minute, Failing: 1 - (1-c.to)/(1-before)}},
			},
			Load:     breaker.Load{PerSecond: 10},
			Duration: 45 * time.Minute,
			Seed:     uint64(seed),
		}.Run(ctx)
		if err != nil {
			return 0, 0, err
		}
		if r.Opened {
			n++
			mean += r.TimeToOpen
		}
	}
	return n, mean / time.Duration(max(n, 1)), nil
}

// healthyDay is a breaker that has nothing to notice.
type healthyDay struct {
	named
	perSecond float64
}

func healthyDays() []healthyDay {
	return []healthyDay{
		{named{"Classic()", breaker.Classic()}, 1.3},
		{named{"Failures.Floor 0.1", classic(func(s *breaker.Settings) { s.Failures.Floor = 0.1 })}, 1.3},
		{named{"Failures.Floor 0.2", classic(func(s *breaker.Settings) { s.Failures.Floor = 0.2 })}, 1.3},
		{named{"defaults", breaker.Settings{}}, 1.3},
		{named{"Classic()", breaker.Classic()}, 10},
	}
}

func (c healthyDay) falseOpens(ctx context.Context) (int, error) {
	r, err := breaker.Simulation{
		Settings:   c.settings,
		Dependency: breaker.Dependency{P50: 20 * time.Millisecond, P99: 80 * time.Millisecond, FailureRate: 0.01},
		Load:       breaker.Load{PerSecond: c.perSecond},
		Duration:   24 * time.Hour,
		Seed:       1,
	}.Run(ctx)
	return r.FalseOpens, err
}
