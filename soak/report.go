package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"time"

	"github.com/brownout-go/breaker"
)

// usage is what the process holds.
type usage struct {
	heap       uint64 // bytes that are reachable
	goroutines int
}

// measure collects garbage first.
func measure() usage {
	runtime.GC()
	runtime.GC()
	return now()
}

func now() usage {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return usage{stats.HeapAlloc, runtime.NumGoroutine()}
}

// watch returns the highest usage that it sees until the context ends, garbage included.
func watch(ctx context.Context) <-chan usage {
	result := make(chan usage, 1)
	go func() {
		var peak usage
		for ctx.Err() == nil {
			u := now()
			peak = usage{max(peak.heap, u.heap), max(peak.goroutines, u.goroutines)}
			pause(ctx, 500*time.Millisecond)
		}
		result <- peak
	}()
	return result
}

// settle gives goroutines that are on their way out time to end, and measures.
func settle(before usage) usage {
	for range 100 {
		if runtime.NumGoroutine() <= before.goroutines {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	return measure()
}

// report is what a soak has shown.
type report struct {
	load                *load
	faults              [ways]int
	before, peak, after usage
	length              time.Duration
}

func (r *report) print(w io.Writer) {
	l := r.load
	fmt.Fprintf(w, "soak of %v, %d callers\n", r.length, l.callers)
	fmt.Fprintf(w, "calls        %d: %d answers, %d refusals, %d failures\n",
		l.calls.Load(), l.answers.Load(), l.refusals.Load(), l.failures.Load())
	fmt.Fprintf(w, "totals       %+v\n", l.breaker.Snapshot().Totals)
	fmt.Fprint(w, "server       ")
	for f, n := range r.faults {
		fmt.Fprintf(w, "%s %d  ", faultNames[f], n)
	}
	fmt.Fprintln(w, "(periods)")
	edges := slices.Collect(maps.Keys(l.transitions))
	slices.SortFunc(edges, func(a, b [2]breaker.State) int { return slices.Compare(a[:], b[:]) })
	for _, e := range edges {
		fmt.Fprintf(w, "transitions  %v to %v: %d\n", e[0], e[1], l.transitions[e])
	}
	for _, at := range []struct {
		when string
		usage
	}{{"start", r.before}, {"peak", r.peak}, {"end", r.after}} {
		fmt.Fprintf(w, "%-12s heap %d KiB, %d goroutines\n", at.when, at.heap>>10, at.goroutines)
	}
}

// check returns what is wrong: a call that no total counts, a gap in the events, something left behind.
func (r *report) check() error {
	t := r.load.breaker.Snapshot().Totals
	outcomes := t.Successes + t.Transient + t.Throttled + t.Permanent + t.Ignored + t.Discarded
	var errs []error
	if calls := r.load.calls.Load(); outcomes+t.Rejected != calls {
		errs = append(errs, fmt.Errorf("%d calls, %d outcomes and %d refusals", calls, outcomes, t.Rejected))
	}
	if t.Rejected != r.load.refusals.Load() {
		errs = append(errs, fmt.Errorf("%d refusals, %d callers saw one", t.Rejected, r.load.refusals.Load()))
	}
	if r.load.breaks > 0 {
		errs = append(errs, fmt.Errorf("%d events do not continue the one before", r.load.breaks))
	}
	if r.after.goroutines > r.before.goroutines {
		errs = append(errs, fmt.Errorf("%d goroutines are left of %d", r.after.goroutines, r.before.goroutines))
	}
	if grown := int64(r.after.heap) - int64(r.before.heap); grown > 4<<20 {
		errs = append(errs, fmt.Errorf("the heap has grown by %d KiB", grown>>10))
	}
	return errors.Join(errs...)
}
