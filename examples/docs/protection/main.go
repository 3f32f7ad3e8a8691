// Command protection measures what docs/protection.md says of the rules of Classic and of those of zero settings: what chance and
// bursts do to them, what a share of slow calls does to them, and how many calls a hang holds. It draws latency with two humps if
// it is given the name of an SVG file.
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/brownout-go/breaker"
)

func main() {
	steady(10 * 24 * time.Hour)
	changes(501)
	bursts(10 * 24 * time.Hour)
	tails(101)
	hangs()
	if len(os.Args) < 2 {
		return
	}
	if err := os.WriteFile(os.Args[1], draw(panels()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// candidate is one way to judge calls.
type candidate struct {
	name     string
	settings breaker.Settings
}

func candidates() []candidate {
	with := func(f breaker.Failures) breaker.Settings { return breaker.Settings{Failures: f} }
	return []candidate{
		{"Classic", breaker.Classic()},
		{"zero", breaker.Settings{}},
		{"Floor 0.2", with(breaker.Failures{Floor: 0.2})},
		{"100 years", with(breaker.Failures{FalseAlarmEvery: 100 * 365 * 24 * time.Hour})},
	}
}

// steady prints how often each opens on a dependency that always fails as often.
func steady(length time.Duration) {
	fmt.Printf("opens in %v days on a dependency that stays as it is\n", length.Hours()/24)
	fmt.Println("calls/s  failing   Classic     zero settings")
	for _, c := range []struct{ rate, failing float64 }{
		{0.7, 0.01}, {1.33, 0.01}, {3, 0.01}, {20, 0.01}, {1.33, 0.1}, {20, 0.1}, {20, 0.3},
	} {
		fmt.Printf("%7v  %5.1f %%", c.rate, 100*c.failing)
		for i, width := range []int{0: 10, 1: 18} {
			n := newTraffic(candidates()[i].settings, c.rate, 1).opens(length, always(c.failing))
			fmt.Printf("%*d", width, n)
		}
		fmt.Println()
	}
}

// changes prints how soon each notices that the dependency fails more often.
func changes(runs int) {
	fmt.Println("\ncalls until open, the median, and runs in which five minutes went by without")
	fmt.Println("calls/s        failing            Classic      zero settings")
	for _, c := range []struct{ rate, from, to float64 }{
		{1.33, 0.01, 0.3}, {1.33, 0.01, 1}, {3, 0.001, 0.05}, {3, 0.01, 0.1}, {3, 0.01, 0.3}, {3, 0.05, 0.3}, {20, 0.001, 0.05},
		{20, 0.01, 0.1}, {20, 0.01, 0.3}, {20, 0.01, 0.6}, {20, 0.05, 0.3}, {20, 0.1, 0.5}, {20, 0.3, 0.9},
	} {
		fmt.Printf("%7v  %4.1f %% to %3.0f %%", c.rate, 100*c.from, 100*c.to)
		for i, width := range []int{0: 10, 1: 10} {
			calls, missed := detections(candidates()[i].settings, c.rate, c.from, c.to, runs)
			fmt.Printf("%*s %5.1f %%", width, calls, 100*missed)
		}
		fmt.Println()
	}
}

// bursts prints how often each opens on a dependency that fails 1 % of calls but for bursts.
func bursts(length time.Duration) {
	fmt.Println("\nopens a day at 20 calls/s, of which 1 % fail but for bursts")
	fmt.Printf("%-26s", "bursts")
	for _, c := range candidates() {
		fmt.Printf("%15s", c.name)
	}
	fmt.Println()
	for _, b := range burstiness() {
		fmt.Printf("%-26s", b)
		for _, c := range candidates() {
			n := newTraffic(c.settings, 20, 1).opens(length, b.weather())
			fmt.Printf("%15.2f", float64(n)*24*float64(time.Hour)/float64(length))
		}
		fmt.Println()
	}
}

// tails prints what each setting of the slow trip makes of two humps.
func tails(runs int) {
	fmt.Println("\n1 ms from the cache and 25 ms from the disk, at 20 calls/s: opens in an hour of health; and when all calls take eight times as")
	fmt.Println("long, after how long it opens, the median and the slowest of the runs, and how many of them go on for five minutes")
	for _, disk := range []float64{0.3, 0.4, 0.5, 0.6} {
		for _, c := range tailSettings() {
			fmt.Printf("%3.0f %% from the disk  %-36s", 100*disk, c.name)
			times, missed := brownouts(c.settings, disk, runs)
			fmt.Printf("%3d %8s %8s %5.0f %%\n",
				healthyOpens(c.settings, disk, time.Hour), quantile(times, 0.5), quantile(times, 1), 100*missed)
		}
	}
}

// hangs prints how many calls are in flight at the most, when no call returns and callers give up after a minute.
func hangs() {
	fmt.Println("\na hang of which callers give up after a minute: how long until the circuit opens, and calls in flight by then, at the worst")
	fmt.Println("calls/s       Classic       zero settings")
	for _, rate := range []int{1, 5, 20, 100} {
		fmt.Printf("%7d", rate)
		for _, c := range candidates()[:2] {
			after, stuck := hang(c.settings, rate)
			fmt.Printf("%12v %6d", after.Round(100*time.Millisecond), stuck)
		}
		fmt.Println()
	}
}
