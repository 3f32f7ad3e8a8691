package main

import (
	"fmt"
	"io"
	"time"
)

// report is what a client lived through.
type report struct {
	requests, served, refused, failed int
	waited                            int // longer than a second, whatever came of it
	recovery                          time.Duration
	recovered                         bool
	lastServed, lastOffered           int // in the last five seconds
}

const lastSeconds = 5

func newReport(s scenario, results []result) report {
	r := report{requests: len(results)}
	for _, one := range results {
		if one.took > time.Second {
			r.waited++
		}
		switch one.outcome {
		case ok:
			r.served++
		case refused:
			r.refused++
		case failed:
			r.failed++
		}
		if one.at >= s.length()-lastSeconds*time.Second {
			r.lastOffered++
			r.lastServed += served(one)
		}
	}
	r.recovery, r.recovered = recovery(s, results)
	return r
}

func served(r result) int {
	if r.outcome == ok {
		return 1
	}
	return 0
}

// recovery returns the time from the end of the failures to the first whole second in which every request was served.
func recovery(s scenario, results []result) (time.Duration, bool) {
	seconds := int((s.length() - s.back()) / time.Second)
	offered, answered := make([]int, seconds), make([]int, seconds)
	for _, one := range results {
		if second := int((one.at - s.back()) / time.Second); one.at >= s.back() && second < seconds {
			offered[second]++
			answered[second] += served(one)
		}
	}
	for second := range seconds {
		if offered[second] > 0 && answered[second] == offered[second] {
			return time.Duration(second) * time.Second, true
		}
	}
	return 0, false
}

// compare prints both sides of a scenario.
func compare(out io.Writer, s scenario, with, without []result) {
	w, o := newReport(s, with), newReport(s, without)
	row := func(what string, with, without any) { fmt.Fprintf(out, "%-46s  %12v  %15v\n", what, with, without) }
	fmt.Fprintln(out)
	row("The same scenario", "with breaker", "without breaker")
	row("requests", w.requests, o.requests)
	row("served", w.served, o.served)
	row("refused at once", w.refused, o.refused)
	row("errors", w.failed, o.failed)
	row("waited over a second", w.waited, o.waited)
	row(fmt.Sprintf("served in the last %d seconds", lastSeconds), w.last(), o.last())
	row("server back until it served everything again", w.back(), o.back())
}

func (r report) last() string { return fmt.Sprintf("%d of %d", r.lastServed, r.lastOffered) }

func (r report) back() string {
	if !r.recovered {
		return "never"
	}
	return r.recovery.String()
}
