package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/brownout-go/breaker"
)

// table prints one line a second, and one for each change of state.
type table struct {
	scenario scenario
	start    time.Time

	mu  sync.Mutex // protects following fields
	out io.Writer
}

const (
	headerFormat = "%6s  %-10s  %-10s  %7s  %8s  %7s  %4s  %6s  %9s  %s\n"
	lineFormat   = "%5.0fs  %-10s  %-10s  %7d  %8d  %7d  %4d  %6d  %9s  %s\n"
	changeFormat = "%5.1fs  %s -> %s: %s%s\n"
)

// introduce says what is going to happen.
func introduce(out io.Writer, s scenario) {
	fmt.Fprintf(out, `A server is healthy for %v, slow for %v and failing for %v. Then it restarts cold: it can do %.0f requests a second, and more
with each one it finishes. %.0f requests a second go to it through a breaker, and as many to its twin without one.

`, s.healthy, s.brownout, s.failing, coldCapacity/((fastest+slowest)/2).Seconds(), 1/gap.Seconds())
}

func (t *table) header() {
	t.printf(headerFormat, "time", "server", "breaker", "offered", "admitted", "refused", "ok", "failed", "normal", "admits")
}

// line prints the second that has just ended.
func (t *table) line(n tally, s breaker.Snapshot) {
	elapsed := time.Since(t.start)
	normal := "unknown"
	if s.NormalLatency > 0 {
		normal = milliseconds(s.NormalLatency)
	}
	t.printf(lineFormat, elapsed.Seconds(), t.scenario.at(elapsed-time.Second/2), s.State,
		n.offered, n.admitted(), n.refused, n.ok, n.failed, normal, bar(s.AdmittedFraction))
}

// change prints a change of state. It is the breaker's OnStateChange.
func (t *table) change(_ context.Context, c breaker.StateChange) {
	var details strings.Builder
	if n := c.Counts; n.Calls > 0 {
		fmt.Fprintf(&details, ", %d of %d calls slow, %d failed", n.Slow, n.Calls, n.Failures)
	}
	if c.To == breaker.Open {
		fmt.Fprintf(&details, ", break %.1f s", c.Break.Seconds())
	}
	t.printf(changeFormat, c.At.Sub(t.start).Seconds(), c.From, c.To, c.Reason, details.String())
}

func (t *table) printf(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(t.out, format, args...)
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}

// bar draws a fraction.
func bar(fraction float64) string {
	const width = 20
	full := int(math.Round(fraction * width))
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", width-full) + "]"
}
