// Example shows a breaker through OpenTelemetry while its dependency fails and comes back: the spans in which something happened, and
// the metrics at the end. It takes three seconds, from the folder of the module:
//
//	go run ./example
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"runtime"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/brownout-go/breaker"
	"github.com/brownout-go/breaker/breakerotel"
)

// schedule is when the dependency fails, and how often it is called.
type schedule struct{ fails, works, ends, call time.Duration }

func main() {
	s := schedule{fails: time.Second, works: 2 * time.Second, ends: 3 * time.Second, call: 20 * time.Millisecond}
	if err := run(context.Background(), os.Stdout, s); err != nil {
		log.Fatal(err)
	}
}

// run calls a dependency by the schedule, each time in a span, and prints what OpenTelemetry has seen.
func run(ctx context.Context, w io.Writer, s schedule) error {
	reader := sdkmetric.NewManualReader() // in a service: a periodic reader with an OTLP exporter
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(printer{w}))
	tracer := tracers.Tracer("example")

	var monitor breaker.Monitor
	if _, err := breakerotel.RegisterMetrics(&monitor, breakerotel.WithMeterProvider(meters)); err != nil {
		return err
	}
	monitor.Subscribe(breakerotel.RecordStateChange)
	inventory := breaker.MustNew(breaker.Settings{
		Name: "inventory", BreakDuration: (s.ends - s.works) / 4, MaxBreakDuration: (s.ends - s.works) / 4, Monitor: &monitor,
	})
	defer runtime.KeepAlive(inventory) // a monitor does not

	calls := time.NewTicker(s.call)
	defer calls.Stop()
	for begun := time.Now(); time.Since(begun) < s.ends; <-calls.C {
		ctx, span := tracer.Start(ctx, "stock")
		_, _ = breakerotel.Execute(ctx, inventory, func(context.Context) (int, error) {
			return s.dependency(time.Since(begun))
		})
		span.End()
	}
	return printMetrics(ctx, w, reader)
}

// dependency takes its time, and fails for a while.
func (s schedule) dependency(now time.Duration) (int, error) {
	<-time.After(s.call / 4)
	if now >= s.fails && now < s.works {
		return 0, errors.New("connection refused")
	}
	return 42, nil
}

// printer prints the spans that tell of a change.
type printer struct{ w io.Writer }

func (p printer) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	for _, span := range spans {
		if len(span.Events()) == 0 {
			continue
		}
		fmt.Fprintln(p.w, "span", span.Name(), text(span.Attributes()))
		for _, event := range span.Events() {
			fmt.Fprintln(p.w, "  event", event.Name, text(event.Attributes))
		}
	}
	return nil
}

func (printer) Shutdown(context.Context) error { return nil }

// text returns attributes in order of name.
func text(attributes []attribute.KeyValue) string {
	set := attribute.NewSet(attributes...)
	return set.Encoded(attribute.DefaultEncoder())
}

func printMetrics(ctx context.Context, w io.Writer, reader sdkmetric.Reader) error {
	var data metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &data); err != nil {
		return err
	}
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch d := m.Data.(type) {
			case metricdata.Sum[int64]:
				printPoints(w, m, d.DataPoints)
			case metricdata.Gauge[float64]:
				printPoints(w, m, d.DataPoints)
			}
		}
	}
	return nil
}

// printPoints prints the series that are not 0.
func printPoints[N int64 | float64](w io.Writer, m metricdata.Metrics, points []metricdata.DataPoint[N]) {
	for _, p := range points {
		if p.Value != 0 {
			fmt.Fprintln(w, m.Name, p.Value, m.Unit, p.Attributes.Encoded(attribute.DefaultEncoder()))
		}
	}
}
