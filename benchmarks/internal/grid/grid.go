// Package grid asks how often the failure trip opens on a dependency that is well, and how many calls it needs to see that
// one has fallen ill, over a grid of call rates and error rates: the classic rules beside those of zero settings.
//
// The breaker is the real one, on a clock that is moved by hand, and only failures judge.
package grid

import (
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/brownout-go/breaker"
)

const day = 24 * time.Hour

// FalseAlarmEvery is what the rules of zero settings are promised to keep, and what the limit of detection is reckoned with.
const FalseAlarmEvery = 30 * day

// Rule is a way to judge failures.
type Rule struct {
	Name     string
	Settings breaker.Settings
}

// The rules. Failures in a row open under both, though zero settings raise their number where errors are common.
var (
	Classic      = Rule{"classic rules", withoutSlowness(breaker.Classic())}
	ZeroSettings = Rule{"zero settings", withoutSlowness(breaker.Settings{})}
	rules        = []Rule{Classic, ZeroSettings}
)

func withoutSlowness(s breaker.Settings) breaker.Settings {
	s.SlowCalls.Off = true
	return s
}

// Shift is a change of the fraction of calls that fail.
type Shift struct{ From, To float64 }

// Limit is how many calls any test needs, on average, that opens falsely no more than once in FalseAlarmEvery at the rate
// (Lorden 1971): ln(rate × FalseAlarmEvery) / KL(To‖From).
func (s Shift) Limit(rate float64) float64 {
	return math.Log(rate*FalseAlarmEvery.Seconds()) / divergence(s.To, s.From)
}

// divergence is the one of Kullback and Leibler between two coins, in nats.
func divergence(p, q float64) float64 {
	term := func(p, q float64) float64 {
		if p == 0 {
			return 0
		}
		return p * math.Log(p/q)
	}
	return term(p, q) + term(1-p, 1-q)
}

// Load is a rate of calls, and how long health is simulated at it.
type Load struct {
	PerSecond float64
	Length    time.Duration
}

// Plan is what to simulate.
type Plan struct {
	Loads  []Load
	Steady []float64 // fractions that fail in health
	Shifts []Shift
	Runs   int // of each shift
	Parts  []Part
}

// Every run of a shift begins with health, for twice as long as the failure baseline lasts. A shift that has not opened the
// breaker within five minutes is missed.
const (
	warmUp = 10 * time.Minute
	Within = 5 * time.Minute
)

// Full is the plan of the page: as many days as take two cores some minutes. With fewer than ten, one false open by chance
// would count as more than the three that are allowed.
func Full() Plan {
	steady := []float64{0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.3}
	return Plan{
		Loads:  []Load{{0.7, 30 * day}, {1.33, 30 * day}, {3, 30 * day}, {20, 30 * day}, {100, 10 * day}},
		Steady: steady,
		Shifts: []Shift{{0.001, 0.05}, {0.001, 0.3}, {0.01, 0.1}, {0.01, 0.3}, {0.01, 1}, {0.05, 0.3}, {0.1, 0.5}, {0.3, 0.9}},
		Runs:   201,
		Parts:  parts(steady),
	}
}

// Short is the same grid, for seconds.
func Short() Plan {
	p := Full()
	p.Runs = 7
	for i := range p.Loads {
		p.Loads[i].Length /= 100
	}
	return p
}

// Health is a cell of the first part.
type Health struct {
	Rule    Rule
	Load    Load
	Steady  float64
	Trouble Trouble
	Pattern Pattern // independent if it has no name
	Opens   int
}

// PerMonth is the false opens in 30 days.
func (h Health) PerMonth() float64 {
	return float64(h.Opens) * float64(30*day) / float64(h.Load.Length)
}

// Detection is a cell of the second part.
type Detection struct {
	Rule   Rule
	Rate   float64
	Shift  Shift
	Median float64 // calls until open; +Inf if more than half of the runs missed the shift
	Missed float64 // the fraction of runs that did
}

// Multiple is the median as a multiple of the limit.
func (d Detection) Multiple() float64 { return d.Median / d.Shift.Limit(d.Rate) }

// Result is the whole grid: in the order of loads, then rules, then steady errors or shifts.
type Result struct {
	Plan       Plan
	Health     []Health
	Detections []Detection
	Parts      [][]Health // of each part of the plan
}

// Run simulates all cells, on all cores. The same plan gives the same result.
func (p Plan) Run() Result {
	r := Result{Plan: p}
	for _, load := range p.Loads {
		for _, rule := range rules {
			for _, steady := range p.Steady {
				r.Health = append(r.Health, Health{Rule: rule, Load: load, Steady: steady})
			}
			for _, shift := range p.Shifts {
				r.Detections = append(r.Detections, Detection{Rule: rule, Rate: load.PerSecond, Shift: shift})
			}
		}
	}
	var work []func()
	for _, part := range p.Parts {
		cells := part.cells(p.Loads)
		r.Parts = append(r.Parts, cells)
		for i := range cells {
			work = append(work, cells[i].run)
		}
	}
	for i := range r.Health {
		work = append(work, r.Health[i].run)
	}
	for i := range r.Detections {
		work = append(work, func() { r.Detections[i].run(p.Runs) })
	}
	onAllCores(work)
	return r
}

func (h *Health) run() {
	s := newStream(h.Rule.Settings, h.Load.PerSecond, 1)
	s.trouble = h.Trouble
	if h.Pattern.new != nil {
		s.weather = h.Pattern.new(1)
	}
	h.Opens = s.healthy(h.Steady, h.Load.Length)
}

func (d *Detection) run(runs int) {
	calls := make([]float64, runs)
	missed := 0
	for i := range calls {
		s := newStream(d.Rule.Settings, d.Rate, uint64(i+1))
		s.healthy(d.Shift.From, warmUp)
		n, opened := s.untilOpen(d.Shift.To, Within)
		calls[i] = float64(n)
		if !opened {
			calls[i] = math.Inf(1)
			missed++
		}
	}
	slices.Sort(calls)
	d.Median, d.Missed = calls[runs/2], float64(missed)/float64(runs)
}

// onAllCores does the work, the last first: it takes longest.
func onAllCores(work []func()) {
	var done sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(len(work)))
	for range runtime.GOMAXPROCS(0) {
		done.Go(func() {
			for i := left.Add(-1); i >= 0; i = left.Add(-1) {
				work[i]()
			}
		})
	}
	done.Wait()
}
