// Command experiment runs the reference experiment of docs/recovery.md: four breakers against the same dependency that comes
// back cold. It prints how many calls succeed with each of them, and draws them if you give it the name of an SVG file.
package main

import (
	"fmt"
	"math"
	"os"

	"github.com/brownout-go/breaker"
)

// candidate is one way to hand the load back.
type candidate struct {
	name     string
	settings breaker.Settings
}

func candidates() []candidate {
	classic := func(r breaker.Recovery) breaker.Settings {
		s := breaker.Classic()
		s.Recovery = r
		return s
	}
	ramp := breaker.Recovery{Fraction: 0.25}
	instant := breaker.Recovery{Fraction: 0.25, Min: 1, Max: 1} // a ramp of a nanosecond: the clock admits everything at once
	blind := classic(ramp)
	blind.SlowCalls = breaker.SlowCalls{Off: true} // nothing is slow: the evidence never objects
	return []candidate{
		{"ramp", classic(ramp)},
		{"no ramp", breaker.Classic()},
		{"the clock alone", blind},
		{"the evidence alone", classic(instant)},
	}
}

func main() {
	var panels []panel
	for _, c := range candidates() {
		series := run(c.settings)
		fmt.Printf("%-20s %5d\n", c.name, served(series))
		panels = append(panels, panel{c.name, series})
	}
	fmt.Printf("\na coin of 0.05 admits three or more of 20 calls in %.1f %% of the steps\n", 100*atLeast(3, offered, 0.05))
	if len(os.Args) < 2 {
		return
	}
	if err := os.WriteFile(os.Args[1], draw(panels), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// atLeast is the chance that k or more of n coins of probability p show heads.
func atLeast(k, n int, p float64) float64 {
	fewer, ways := 0.0, 1.0
	for i := range k {
		fewer += ways * math.Pow(p, float64(i)) * math.Pow(1-p, float64(n-i))
		ways *= float64(n-i) / float64(i+1)
	}
	return 1 - fewer
}
