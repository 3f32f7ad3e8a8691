package breaker_test

import (
	"context"
	"encoding/json"
	"errors"
	"expvar"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/brownout-go/breaker"
)

// A state change is a slog.LogValuer: one line says what happened and why.
func ExampleStateChange_LogValue() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: withoutTimes}))
	b := breaker.MustNew(breaker.Settings{
		Name:                "inventory",
		ConsecutiveFailures: 2,
		BreakDuration:       15 * time.Second,
		BreakJitter:         breaker.JitterNone,
		OnStateChange: func(ctx context.Context, c breaker.StateChange) {
			level := slog.LevelInfo
			if c.To == breaker.Open {
				level = slog.LevelWarn
			}
			logger.Log(ctx, level, "circuit", "change", c)
		},
		Clock: clock.NewMock(),
	})
	for range 2 {
		_ = b.Execute(context.Background(), func(context.Context) error { return errors.New("connection refused") })
	}
	b.Reset()
	// Output:
	// level=WARN msg=circuit change.name=inventory change.from=closed change.to=open change.reason=consecutive-failures change.break=15s change.opens=1 change.counts.calls=2 change.counts.failures=2 change.counts.slow=0 change.counts.consecutive_failures=2 change.err="connection refused"
	// level=INFO msg=circuit change.name=inventory change.from=open change.to=closed change.reason=reset
}

// withoutTimes keeps the output of an example the same from run to run.
func withoutTimes(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindTime {
		return slog.Attr{}
	}
	return a
}

// A snapshot marshals to JSON, so a function that collects the snapshots of a monitor is all that /debug/vars needs.
func ExampleSnapshot_expvar() {
	var monitor breaker.Monitor
	expvar.Publish("breakers", expvar.Func(func() any {
		snapshots := []breaker.Snapshot{} // a list: two breakers may have one name
		for _, b := range monitor.Breakers() {
			snapshots = append(snapshots, b.Snapshot())
		}
		return snapshots
	}))

	b := breaker.MustNew(breaker.Settings{Name: "inventory", ConsecutiveFailures: 1, Monitor: &monitor, Clock: clock.NewMock()})
	for range 3 {
		_ = b.Execute(context.Background(), func(context.Context) error { return errors.New("connection refused") })
	}
	var published []breaker.Snapshot
	if err := json.Unmarshal([]byte(expvar.Get("breakers").String()), &published); err != nil {
		fmt.Println(err)
		return
	}
	s := published[0]
	fmt.Println(s.Name, s.State, s.Reason, "failed:", s.Totals.Transient, "refused:", s.Totals.Rejected)
	// Output: inventory open consecutive-failures failed: 1 refused: 2
}

// A dry run on live traffic: the breaker says what it would have refused, and refuses nothing.
func ExampleSettings_observeOnly() {
	b := breaker.MustNew(breaker.Settings{
		Name:                "inventory",
		ConsecutiveFailures: 3,
		ObserveOnly:         true,
		Clock:               clock.NewMock(),
	})
	asked := 0
	for range 10 {
		_ = b.Execute(context.Background(), func(context.Context) error {
			asked++
			return errors.New("connection refused")
		})
	}
	fmt.Println("asked:", asked, "would have refused:", b.Snapshot().Totals.Rejected)
	// Output: asked: 10 would have refused: 7
}
