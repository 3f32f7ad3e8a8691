// Command streak prints how often failures in a row happen by chance, for calls that fail independently of each other.
package main

import (
	"fmt"
	"math"
	"time"
)

func main() {
	fmt.Println("failing   calls/s   5 in a row   20 in a row")
	for _, p := range []float64{0.001, 0.01, 0.05, 0.1, 0.3} {
		for _, perSecond := range []float64{10, 10_000} {
			fmt.Printf("%5.1f %% %9.0f %12s %13s\n", 100*p, perSecond, every(p, perSecond, 5), every(p, perSecond, 20))
		}
	}
}

// every is the mean time between streaks of n failures: a call begins a new one with the chance (1 − p) × p^n.
func every(p, perSecond float64, n int) string {
	seconds := 1 / ((1 - p) * math.Pow(p, float64(n)) * perSecond)
	const year = 365 * 24 * time.Hour
	if seconds > year.Seconds() {
		return "over a year"
	}
	return time.Duration(seconds * float64(time.Second)).Round(100 * time.Millisecond).String()
}
