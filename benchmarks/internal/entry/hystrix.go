package entry

import (
	"context"
	"fmt"
	"reflect"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/afex/hystrix-go/hystrix"
)

func hystrixes() []Entry {
	const library, module = "hystrix-go", "github.com/afex/hystrix-go"
	return []Entry{
		{
			Library: library, Config: asItComes, Module: module,
			Setup: "no configuration: opens on 50 % errors of 20 requests in 10 s, for 5 s; at most 10 calls at once; gives up on a " +
				"call after 1 s",
			New:   func(uint64) Guard { return newHystrix(hystrix.CommandConfig{}) },
			Bench: hystrixBench,
		},
		{
			Library: library, Config: tuned, Module: module,
			Setup: "the values of its documentation: `Timeout: 1000`, `MaxConcurrentRequests: 100`, `ErrorPercentThreshold: 25`",
			New: func(uint64) Guard {
				return newHystrix(hystrix.CommandConfig{Timeout: 1000, MaxConcurrentRequests: 100, ErrorPercentThreshold: 25})
			},
		},
	}
}

// hystrixGuard is a circuit under its own name, since hystrix keeps its circuits in a table of the process.
type hystrixGuard struct {
	name    string
	circuit *hystrix.CircuitBreaker
}

var hystrixCircuits atomic.Uint64

func newHystrix(c hystrix.CommandConfig) *hystrixGuard {
	name := fmt.Sprintf("dependency %d", hystrixCircuits.Add(1))
	hystrix.ConfigureCommand(name, c)
	circuit, _, _ := hystrix.GetCircuit(name) // its error is always nil
	return &hystrixGuard{name, circuit}
}

func (g *hystrixGuard) Call(ctx context.Context, fn Func) error {
	return hystrix.DoC(ctx, g.name, fn, nil)
}

func (g *hystrixGuard) State() State { return stateOf(!g.circuit.IsOpen()) }

// Close ends the two goroutines that a circuit starts and that its API cannot end: each reads a channel for ever, and a
// bubble of testing/synctest waits for all its goroutines. No call may be in progress any more.
func (g *hystrixGuard) Close() {
	circuit := reflect.ValueOf(g.circuit).Elem()
	closeUpdates(unexported(circuit, "metrics").Elem())
	closeUpdates(unexported(circuit, "executorPool").Elem().FieldByName("Metrics").Elem())
}

func closeUpdates(metrics reflect.Value) { metrics.FieldByName("Updates").Close() }

func unexported(v reflect.Value, field string) reflect.Value {
	f := v.FieldByName(field)
	return reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem()
}

func hystrixBench() Bench {
	config := hystrix.CommandConfig{RequestVolumeThreshold: 1, SleepWindow: int(time.Hour / time.Millisecond)}
	closed, open := newHystrix(config), newHystrix(config)
	for open.State() == Closed { // its counts are brought up to date in the background
		_ = hystrix.Do(open.name, failPlain, nil)
	}
	calls := func(g *hystrixGuard, n int) {
		for range n {
			_ = hystrix.Do(g.name, succeedPlain, nil)
		}
	}
	return Bench{
		Success: func(n int) { calls(closed, n) },
		Refused: func(n int) { calls(open, n) },
		New:     func() any { return newHystrix(config) },
		Warm:    func(g any) { calls(g.(*hystrixGuard), benchSamples) },
	}
}
