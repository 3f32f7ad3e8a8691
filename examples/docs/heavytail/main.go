// Command heavytail prints how often a healthy call is slow by chance, and what that does to probes, for a log-normal latency.
package main

import (
	"fmt"
	"math"
)

func main() {
	const multiple, probes = 3, 2
	z99 := math.Sqrt2 * math.Erfinv(0.98) // the 99th percentile of a standard normal
	fmt.Println("p99/p50   slow call   slow probe of 2")
	for _, tail := range []float64{2, 3, 4, 5, 8, 10, 20, 50} {
		sigma := math.Log(tail) / z99
		slow := math.Erfc(math.Log(multiple)/sigma/math.Sqrt2) / 2
		fmt.Printf("%7.0f %9.2f %% %15.2f %%\n", tail, 100*slow, 100*(1-math.Pow(1-slow, probes)))
	}
}
