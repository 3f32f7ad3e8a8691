// Command speed measures what the specification promises about the cost of a call and of a breaker, against
// github.com/sony/gobreaker/v2 and against what no breaker can avoid, and prints each promise with its verdict. It exits with
// status 1 if one is not kept.
//
//	go run ./speed
//	go run ./speed -short
package main

import (
	"flag"
	"os"

	"github.com/brownout-go/breaker/benchmarks/internal/speed"
)

func main() {
	short := flag.Bool("short", false, "measure for a second; the ratios are rough")
	flag.Parse()
	plan := speed.Full
	if *short {
		plan = speed.Short
	}
	if !speed.WriteBounds(os.Stdout, speed.MeasureBounds(plan), speed.MeasureSizes()) {
		os.Exit(1)
	}
}
