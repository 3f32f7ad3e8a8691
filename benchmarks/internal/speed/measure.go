// Package speed times the entries of a field against each other in one run.
//
// A machine's pace drifts by more than the differences of interest. So the contestants take turns in many short rounds, in
// alternating order, and each is judged by the median of its rounds: what slows the machine down slows everybody down.
package speed

import (
	"math"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
)

// Loop does the work n times in a row. It is a loop and no single call, so that nothing stands between the timed work and
// the clock.
type Loop func(n int)

// Contestant is one kind of work to time.
type Contestant struct {
	Name string
	Loop Loop
	// Parallel runs the loop from all cores at once; a time is then the wall time divided by all calls of all cores.
	Parallel bool
}

// Timing is what a contestant needed.
type Timing struct {
	Nanoseconds float64 // per call, the median of all rounds
	Allocs      float64 // per call
}

// Plan is how long to measure.
type Plan struct {
	Rounds int
	Round  time.Duration // about what one contestant takes in one round
}

// Full and Short are the plans of the report and of continuous integration.
var (
	Full  = Plan{Rounds: 301, Round: 2 * time.Millisecond}
	Short = Plan{Rounds: 15, Round: 200 * time.Microsecond}
)

// Measure times all contestants, interleaved.
func (p Plan) Measure(contestants []Contestant) []Timing {
	sizes := make([]int, len(contestants))
	rounds := make([][]float64, len(contestants))
	for i, c := range contestants {
		sizes[i] = c.size(p.Round)
	}
	for r := range p.Rounds {
		for k := range contestants {
			i := k
			if r%2 == 1 {
				i = len(contestants) - 1 - k
			}
			rounds[i] = append(rounds[i], contestants[i].time(sizes[i]))
		}
	}
	timings := make([]Timing, len(contestants))
	for i, c := range contestants {
		timings[i] = Timing{Nanoseconds: median(rounds[i]), Allocs: c.allocs()}
	}
	return timings
}

// size returns how many calls take about d.
func (c Contestant) size(d time.Duration) int {
	const warmUp = 1000
	c.time(warmUp)
	return max(1, int(float64(d.Nanoseconds())/max(c.time(warmUp), 0.1)))
}

// time returns the nanoseconds per call of n calls, on each core if the contestant is parallel.
func (c Contestant) time(n int) float64 {
	if c.Parallel {
		return c.timeParallel(n)
	}
	start := time.Now()
	c.Loop(n)
	return float64(time.Since(start).Nanoseconds()) / float64(n)
}

func (c Contestant) timeParallel(n int) float64 {
	cores := runtime.GOMAXPROCS(0)
	var ready, done sync.WaitGroup
	gate := make(chan struct{})
	ready.Add(cores)
	for range cores {
		done.Go(func() {
			ready.Done()
			<-gate
			c.Loop(n)
		})
	}
	ready.Wait()
	start := time.Now()
	close(gate)
	done.Wait()
	return float64(time.Since(start).Nanoseconds()) / float64(n*cores)
}

// allocs returns the allocations per call. Many calls are counted at once, since a stray allocation of the runtime in a
// single call would read as one per call.
func (c Contestant) allocs() float64 {
	const calls = 1000
	return testing.AllocsPerRun(10, func() { c.Loop(calls) }) / calls
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// Bytes returns the heap that one of what build returns holds on to, in whole bytes: the difference that many of them make,
// the median of a few tries, since the runtime and the libraries keep things of their own.
func Bytes(build func() any) float64 {
	const tries = 3
	var sizes []float64
	for range tries {
		sizes = append(sizes, math.Round(bytesOf(build)))
	}
	return median(sizes)
}

func bytesOf(build func() any) float64 {
	const instances = 500
	held := [instances]any{}
	before := heap()
	for i := range held {
		held[i] = build()
	}
	after := heap()
	runtime.KeepAlive(held)
	return (after - before) / instances
}

func heap() float64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC() // the second one frees what finalizers and pools of the first held
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc)
}
