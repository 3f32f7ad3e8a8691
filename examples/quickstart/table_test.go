package main

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/brownout-go/breaker"
)

func TestBar(t *testing.T) {
	for fraction, want := range map[float64]string{
		0:    "[....................]",
		0.05: "[#...................]",
		0.5:  "[##########..........]",
		0.99: "[####################]",
		1:    "[####################]",
	} {
		assert.Equal(t, want, bar(fraction), "%v", fraction)
	}
}

func TestTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		start := time.Now()
		lines := &table{out: &out, start: start, scenario: story}
		lines.header()
		time.Sleep(7 * time.Second)
		lines.line(tally{offered: 100, ok: 98}, breaker.Snapshot{AdmittedFraction: 1})
		time.Sleep(4 * time.Second)
		lines.change(context.Background(), breaker.StateChange{
			To: breaker.Open, Reason: breaker.ReasonSlowCalls, At: start.Add(10800 * time.Millisecond),
			Counts: breaker.Counts{Calls: 200, Failures: 1, Slow: 101}, Break: 870 * time.Millisecond,
		})
		lines.change(context.Background(), breaker.StateChange{
			From: breaker.Open, To: breaker.HalfOpen, Reason: breaker.ReasonBreakElapsed, At: start.Add(11 * time.Second),
		})
		lines.line(tally{offered: 1000, refused: 880, ok: 90, failed: 30},
			breaker.Snapshot{State: breaker.Recovering, AdmittedFraction: 0.25, NormalLatency: 10240 * time.Microsecond})
		assert.Equal(t, strings.Join([]string{
			"  time  server      breaker     offered  admitted  refused    ok  failed     normal  admits",
			"    7s  healthy     closed          100       100        0    98       0    unknown  [####################]",
			" 10.8s  closed -> open: slow-calls, 101 of 200 calls slow, 1 failed, break 0.9 s",
			" 11.0s  open -> half-open: break-elapsed",
			"   11s  brownout    recovering     1000       120      880    90      30    10.2 ms  [#####...............]",
			"",
		}, "\n"), out.String())
	})
}
