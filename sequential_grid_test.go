package breaker

import (
	"flag"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// The grid asks of chance what no example can: how often the sequential test errs, and how fast it sees a change. Without the
// flag a part of it runs that takes a few seconds.
var wholeGrid = flag.Bool("grid", false, "run the tests of the sequential test over their whole grid, which takes minutes")

func sequentially() Settings {
	return Settings{Failures: Failures{FalseAlarmEvery: month}, SlowCalls: SlowCalls{Off: true}}
}

// arrivals are independent calls to a machine at a mean rate, each of which fails by chance.
type arrivals struct {
	machine *machine
	random  *rand.Rand
	rate    float64 // a second
	now     float64 // nanoseconds
	calls   int     // admitted
}

func newArrivals(s Settings, rate float64, seed uint64) *arrivals {
	m := &newBreaker(s).machine
	m.random = 0.5
	return &arrivals{machine: m, random: rand.New(rand.NewPCG(seed, 0)), rate: rate}
}

// call is the next call. It reports whether it opened a closed circuit.
func (a *arrivals) call(failing float64) (opened bool) {
	a.now += a.random.ExpFloat64() * float64(time.Second) / a.rate
	failed := a.random.Float64() < failing
	now := time.Duration(a.now)
	ticket, ok, _ := a.machine.admit(now, passing)
	if !ok {
		return false
	}
	a.calls++
	wasClosed, outcome := a.machine.state == Closed, Success
	if failed {
		outcome = Transient
	}
	_, change := a.machine.settle(now, &ticket, outcome, 0)
	return wasClosed && change != nil
}

// opens counts how often the circuit opens in so much time.
func (a *arrivals) opens(failing float64, length time.Duration) (n int) {
	for a.now < float64(length) {
		if a.call(failing) {
			n++
		}
	}
	return n
}

var gridRates, gridErrors = []float64{0.7, 1.33, 3, 20, 100}, []float64{0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.3}

// On no dependency that stays as it is, however often it fails, does the circuit open more than a few times a month.
func TestFalseAlarmGrid(t *testing.T) {
	opened, mean := 0, 0.0
	for n, rate := range gridRates {
		length := time.Duration(150_000 / rate * float64(time.Second))
		if *wholeGrid {
			length = month * time.Duration(math.Ceil(20/rate))
		}
		months := length.Seconds() / month.Seconds()
		var row []int
		for i, failing := range gridErrors {
			opens := newArrivals(sequentially(), rate, uint64(10*n+i)).opens(failing, length)
			row = append(row, opens)
			opened += opens
			mean += float64(opens) / months / float64(len(gridRates)*len(gridErrors))
		}
		t.Logf("%6.2f calls/s: %v opens in %.3g months", rate, row, months)
		assert.True(t, !*wholeGrid || float64(slices.Max(row)) <= 3*months)
	}
	if !*wholeGrid {
		assert.LessOrEqual(t, opened, 2, "by five failures in a row, before the test is armed")
		return
	}
	t.Logf("%.2f a month on average over the cells", mean)
	assert.LessOrEqual(t, mean, 1.0)
}

// The multiple of the measured rate, in comparison, opens dozens of times a day where a few calls make a ratio.
func TestFalseAlarmGridWithoutTheTest(t *testing.T) {
	s := Classically(sequentially())
	s.Failures = Classic().Failures
	assert.Greater(t, newArrivals(s, 1.33, 1).opens(0.01, 24*time.Hour), 20)
}

// shift is a dependency that begins to fail more often.
type shift struct{ from, to float64 }

// limit is how many calls any test with the same rate of false alarms takes on average, at least: ln(rate × month) over the
// Kullback-Leibler divergence.
func (s shift) limit(rate float64) float64 {
	divergence := s.to * math.Log(s.to/s.from)
	if s.to < 1 {
		divergence += (1 - s.to) * math.Log((1-s.to)/(1-s.from))
	}
	return math.Log(rate*month.Seconds()) / divergence
}

// detections returns how many calls each of so many breakers took to open, in order, and how many took longer than five minutes.
func (s shift) detections(rate float64, runs int) (calls []int, missed int) {
	const normally, noticed = float64(6 * time.Minute), float64(5 * time.Minute)
	for seed := uint64(0); len(calls) < runs; seed++ {
		sensitive := sequentially()
		sensitive.Failures.Floor = 0.05 // or no shift that leaves half of the calls good is one to open on
		a := newArrivals(sensitive, rate, seed)
		for a.now < normally {
			a.call(s.from)
		}
		if a.machine.state != Closed {
			continue // by chance, before there was anything to compare with
		}
		began := a.now
		for a.calls = 0; !a.call(s.to) && a.now < began+4*noticed; {
		}
		calls = append(calls, a.calls)
		if a.now > began+noticed {
			missed++
		}
	}
	slices.Sort(calls)
	return calls, missed
}

func TestShiftGrid(t *testing.T) {
	shifts := []shift{{0.001, 0.05}, {0.001, 0.3}, {0.01, 0.1}, {0.01, 0.3}, {0.01, 1}, {0.05, 0.3}, {0.1, 0.5}, {0.3, 0.9}}
	runs, bound := map[float64]int{3: 301, 20: 21, 100: 5}, 2.5
	if *wholeGrid {
		runs, bound = map[float64]int{0.7: 1001, 1.33: 1001, 3: 5001, 20: 1001, 100: 301}, 2.2
	}
	for _, rate := range gridRates {
		for _, s := range shifts {
			if runs[rate] == 0 {
				continue
			}
			calls, missed := s.detections(rate, runs[rate])
			median, limit := calls[len(calls)/2], s.limit(rate)
			t.Logf("%6.2f calls/s %v: median %4d calls, %.2f × the limit of %5.1f; missed %d of %d",
				rate, s, median, float64(median)/limit, limit, missed, len(calls))
			if rate >= 3 {
				event := 2 * slice.Seconds() * rate // what ends within a slice is half of the evidence at most
				assert.LessOrEqual(t, float64(median), max(bound*limit, 5*event), "%v calls/s, %v", rate, s)
			}
			if rate >= 20 {
				assert.Zero(t, missed, "%v calls/s, %v", rate, s)
			}
		}
	}
}
