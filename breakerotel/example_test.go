package breakerotel_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/benbjohnson/clock"
	"go.opentelemetry.io/otel"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/brownout-go/breaker"
	"github.com/brownout-go/breaker/breakerotel"
)

// newInventory returns a breaker that OpenTelemetry can see: by metrics of the global provider, and by events in the spans of calls.
func newInventory() (*breaker.Breaker, error) {
	var monitor breaker.Monitor
	if _, err := breakerotel.RegisterMetrics(&monitor); err != nil {
		return nil, err
	}
	monitor.Subscribe(breakerotel.RecordStateChange)
	return breaker.New(breaker.Settings{Name: "inventory", ConsecutiveFailures: 2, Monitor: &monitor})
}

// stockOf asks the inventory, and tells the span of the call which breaker guards it, and whether it refused.
func stockOf(ctx context.Context, inventory *breaker.Breaker, ask func(context.Context) (int, error)) (int, error) {
	ctx, span := otel.Tracer("shop").Start(ctx, "stock")
	defer span.End()
	return breakerotel.Execute(ctx, inventory, ask)
}

func Example() {
	recorder := tracetest.NewSpanRecorder()
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)))
	inventory, err := newInventory()
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		_, _ = stockOf(context.Background(), inventory, func(context.Context) (int, error) {
			return 0, errors.New("connection refused")
		})
	}
	for _, span := range recorder.Ended() {
		fmt.Println(span.Name())
		for _, a := range span.Attributes() {
			if a.Key != breakerotel.RetryAfterKey { // it is random
				fmt.Println("  ", a.Key, "=", a.Value.AsInterface())
			}
		}
		for _, e := range span.Events() {
			fmt.Println("  ", e.Name)
		}
	}
	// Output:
	// stock
	//    breaker.name = inventory
	//    breaker.state = closed
	// stock
	//    breaker.name = inventory
	//    breaker.state = closed
	//    breaker.state_change
	// stock
	//    breaker.refused = true
	//    breaker.name = inventory
	//    breaker.state = open
	//    breaker.reason = consecutive-failures
}

// Metrics of a provider other than the global one, for as long as they are wanted.
func ExampleRegisterMetrics() {
	reader := sdkmetric.NewManualReader()
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	var monitor breaker.Monitor
	registration, err := breakerotel.RegisterMetrics(&monitor, breakerotel.WithMeterProvider(provider))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer registration.Unregister()

	inventory := breaker.MustNew(breaker.Settings{Name: "inventory", Monitor: &monitor, Clock: clock.NewMock()})
	inventory.Isolate()
	var data metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &data); err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range data.ScopeMetrics[0].Metrics {
		if transitions, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == "breaker.transitions" {
			for _, p := range transitions.DataPoints {
				to, _ := p.Attributes.Value(breakerotel.ToKey)
				fmt.Println(inventory.Name(), to.AsString(), p.Value)
			}
		}
	}
	// Output:
	// inventory isolated 1
}

// Calls that are not made through Execute, such as those of an HTTP client with a breakerhttp.Transport.
func ExampleRecordRefusal() {
	recorder := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("shop")
	b := breaker.MustNew(breaker.Settings{Name: "inventory"})
	b.Isolate()

	ctx, span := tracer.Start(context.Background(), "stock")
	permit, err := b.TryAcquire(ctx)
	if breakerotel.RecordRefusal(ctx, err) {
		fmt.Println("served from the cache")
	}
	permit.Release()
	span.End()
	fmt.Println(recorder.Ended()[0].Attributes()[0].Key)
	// Output:
	// served from the cache
	// breaker.refused
}
