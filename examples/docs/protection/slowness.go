package main

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/brownout-go/breaker"
)

const (
	cache, disk = time.Millisecond, 25 * time.Millisecond
	perSecond   = 20
	brownout    = 8 // times slower
)

func tailSettings() []candidate {
	with := func(tail, ratio float64) breaker.Settings {
		s := breaker.Classic()
		s.SlowCallRatio, s.SlowCalls.TailQuantile = ratio, tail
		return s
	}
	return []candidate{
		{"Classic", breaker.Classic()},
		{"zero settings", breaker.Settings{}},
		{"TailQuantile 0.75", with(0.75, 0.5)},
		{"TailQuantile 0.8, SlowCallRatio 0.4", with(0.8, 0.4)},
		{"TailQuantile 0.9, SlowCallRatio 0.25", with(0.9, 0.25)},
	}
}

// twoHumps makes the next call, of which so many go to the disk, each give or take a tenth, and returns how long it took; false
// if it was not admitted.
func (t *traffic) twoHumps(fromDisk float64, slower time.Duration) (latency time.Duration, ok bool) {
	t.clock.Advance(t.gap())
	latency = cache
	if t.random.Float64() < fromDisk {
		latency = disk
	}
	latency = slower * time.Duration(float64(latency)*(0.9+0.2*t.random.Float64()))
	p, err := t.breaker.TryAcquire(context.Background())
	if err != nil {
		return 0, false
	}
	t.closed = t.breaker.State() == breaker.Closed
	p.RecordLatency(breaker.Success, latency)
	return latency, true
}

// opened reports whether the last call opened a closed circuit.
func (t *traffic) opened() bool { return t.closed && t.breaker.State() == breaker.Open }

// healthyOpens counts the opens of a time in which nothing is wrong.
func healthyOpens(s breaker.Settings, fromDisk float64, length time.Duration) (n int) {
	for t := newTraffic(s, perSecond, 1); t.elapsed() < length; {
		if _, ok := t.twoHumps(fromDisk, 1); ok && t.opened() {
			n++
		}
	}
	return n
}

// brownouts returns how long breakers took to open once every call took longer, in order, and the part that did not in five
// minutes.
func brownouts(s breaker.Settings, fromDisk float64, runs int) (times []time.Duration, missed float64) {
	const length = 5 * time.Minute
	for seed := uint64(0); len(times) < runs; seed++ {
		t := newTraffic(s, perSecond, seed)
		began := 10*time.Minute + time.Duration(seed)*70*time.Millisecond // anywhere in a bucket of the window
		for t.elapsed() < began {
			t.twoHumps(fromDisk, 1)
		}
		if t.breaker.State() != breaker.Closed {
			if seed > 100*uint64(runs) {
				break
			}
			continue
		}
		for t.elapsed() < began+length && t.breaker.State() == breaker.Closed {
			t.twoHumps(fromDisk, brownout)
		}
		if took := t.elapsed() - began; t.breaker.State() != breaker.Closed {
			times = append(times, took)
		} else {
			times, missed = append(times, math.MaxInt64), missed+1/float64(runs)
		}
	}
	slices.Sort(times)
	return times, missed
}

// quantile formats one of the times in seconds.
func quantile(times []time.Duration, q float64) string {
	if len(times) == 0 {
		return "-"
	}
	d := times[min(len(times)-1, int(q*float64(len(times))))]
	if d == math.MaxInt64 {
		return "never"
	}
	return d.Round(time.Second / 10).String()
}

// hang returns how long a hang takes to open the circuit and how many calls are in flight by then, the longest of all times at
// which it can begin in a bucket of the window.
func hang(s breaker.Settings, rate int) (after time.Duration, stuck int) {
	for phase := time.Duration(0); phase < 3*time.Second; phase += 100 * time.Millisecond {
		if a, n := hangAt(s, 2*time.Minute+phase, time.Second/time.Duration(rate)); a > after {
			after, stuck = a, n
		}
	}
	return after, stuck
}

// hangAt makes healthy calls up to a time, and then calls of which none returns, with the same gap between any two.
func hangAt(s breaker.Settings, began, gap time.Duration) (after time.Duration, stuck int) {
	const patience = time.Minute
	t := newTraffic(s, 1, 1)
	for ; t.elapsed() < began; t.clock.Advance(gap) {
		if p, err := t.breaker.TryAcquire(context.Background()); err == nil {
			p.RecordLatency(breaker.Success, 10*time.Millisecond)
		}
	}
	began = t.elapsed()
	var permits []*breaker.Permit
	for ended := 0; ; t.clock.Advance(gap) {
		after = t.elapsed() - began
		if after >= time.Duration(ended)*gap+patience {
			permits[ended].Record(breaker.Transient)
			ended++
		}
		p, err := t.breaker.TryAcquire(context.Background())
		if err != nil {
			return after, len(permits) - ended
		}
		permits = append(permits, p)
	}
}
