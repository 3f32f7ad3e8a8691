package breaker

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// handClock is a clock that is moved by hand. A clock.Mock pauses for a millisecond with every step.
type handClock struct{ now time.Time }

func (c *handClock) Now() time.Time                       { return c.now }
func (c *handClock) Since(t time.Time) time.Duration      { return c.now.Sub(t) }
func (c *handClock) After(time.Duration) <-chan time.Time { return nil }

func (c *handClock) advance(d time.Duration) { c.now = c.now.Add(d) }

// experiment is the reference experiment of a dependency that comes back cold: it has little capacity at first, regains it
// while it is used gently, and loses it again when it is overrun.
type experiment struct {
	breaker  *Breaker
	clock    *handClock
	capacity float64
}

// run returns the successes from the moment the dependency comes back.
func (e *experiment) run(t *testing.T) (successes int) {
	const stepLength = 100 * time.Millisecond
	for range 30 {
		for range 2 {
			e.record(t, Success, 10*time.Millisecond)
		}
		e.clock.advance(stepLength)
	}
	e.capacity = 20
	for step := range 600 {
		down := step >= 100 && step < 150
		switch {
		case down:
			e.capacity = 0
		case step == 150:
			e.capacity = 1
		}
		n := e.step(t)
		if step >= 150 {
			successes += n
		}
		if down {
			e.capacity = 0
		}
		e.clock.advance(stepLength)
	}
	return successes
}

// step offers 20 calls at once and returns how many succeed.
func (e *experiment) step(t *testing.T) (successes int) {
	limit := max(e.capacity, 1)
	admitted := 0
	for range 20 {
		p, err := e.breaker.TryAcquire(t.Context())
		if err != nil {
			require.ErrorIs(t, err, ErrRejected)
			continue
		}
		admitted++
		latency := time.Duration(float64(10*time.Millisecond) * 20 / limit)
		switch k := float64(admitted); {
		case k > 3*limit:
			p.RecordLatency(Transient, 10*time.Millisecond)
			continue
		case k > limit:
			latency = time.Duration(float64(latency) * k / limit)
		}
		p.RecordLatency(Success, latency)
		successes++
	}
	switch {
	case admitted > 2*max(int(e.capacity), 1):
		e.capacity = max(1, e.capacity-1)
	case admitted == 0:
		e.capacity = min(20, e.capacity+0.05)
	default:
		e.capacity = min(20, e.capacity+0.2)
	}
	return successes
}

func (e *experiment) record(t *testing.T, o Outcome, latency time.Duration) {
	p, err := e.breaker.TryAcquire(t.Context())
	require.NoError(t, err)
	p.RecordLatency(o, latency)
}

// Both figures are those of section 10 of the specification: what the ramp is worth after an outage of five seconds.
func TestReferenceExperiment(t *testing.T) {
	for _, test := range []struct {
		name     string
		recovery Recovery
		want     int
	}{
		{"ramp", Recovery{Fraction: 0.25}, 8250},
		{"cliff", Recovery{Off: true}, 3002},
	} {
		t.Run(test.name, func(t *testing.T) {
			var c handClock
			b := MustNewClassic(Settings{BreakDuration: 5 * time.Second, BreakJitter: JitterNone, Recovery: test.recovery, Clock: &c})
			e := experiment{breaker: b, clock: &c}
			require.Equal(t, test.want, e.run(t))
		})
	}
}

func TestRampFor(t *testing.T) {
	for _, test := range []struct {
		name     string
		recovery Recovery
		served   time.Duration
		want     time.Duration
	}{
		{"by evidence alone", Recovery{}, time.Minute, 0},
		{"off", Recovery{Off: true, Fraction: 1}, time.Minute, 0},
		{"by evidence alone, though bounded", Recovery{Min: time.Second, Max: time.Minute}, time.Minute, 0},
		{"no number", Recovery{Fraction: math.NaN()}, time.Minute, 0},
		{"a fraction", Recovery{Fraction: 0.25}, 5 * time.Second, 1250 * time.Millisecond},
		{"more than the break", Recovery{Fraction: 2}, 5 * time.Second, 10 * time.Second},
		{"at the default minimum", Recovery{Fraction: 0.25}, 4 * time.Second, time.Second},
		{"below the default minimum", Recovery{Fraction: 0.25}, 3 * time.Second, time.Second},
		{"no break at all", Recovery{Fraction: 0.25}, 0, time.Second},
		{"at the default maximum", Recovery{Fraction: 0.25}, 2 * time.Minute, 30 * time.Second},
		{"above the default maximum", Recovery{Fraction: 0.25}, time.Hour, 30 * time.Second},
		{"a minimum above the default maximum", Recovery{Fraction: 0.25, Min: 40 * time.Second}, time.Minute, 40 * time.Second},
		{"a maximum below the default minimum", Recovery{Fraction: 0.25, Max: time.Millisecond}, time.Minute, time.Millisecond},
		{"the longest break", Recovery{Fraction: 1e9, Max: longest}, longest, longest},
	} {
		t.Run(test.name, func(t *testing.T) {
			assert.Equal(t, test.want, test.recovery.RampFor(test.served))
		})
	}
}

// tenSecondRamp starts at 100 s, and three fast calls in a row raise its evidence by 0.1.
func tenSecondRamp() ramp {
	return newRamp(Recovery{Fraction: 1, Initial: 0.1, Min: 1, Max: time.Hour}, 3, rampStart, 10*time.Second, 0)
}

const rampStart = 100 * time.Second

func TestRampFollowsTheClock(t *testing.T) {
	r := tenSecondRamp()
	for _, test := range []struct {
		after time.Duration
		want  float64
	}{
		{0, 0.1}, {time.Second, 0.19}, {5 * time.Second, 0.55}, {9 * time.Second, 0.91}, {10 * time.Second, 1}, {time.Hour, 1},
	} {
		assert.InDelta(t, test.want, r.fraction(rampStart+test.after), 1e-12, "after %v", test.after)
	}
	assert.Less(t, r.fraction(rampStart+10*time.Second-1), 1.0, "not before its end")
	assert.Equal(t, 1.0, r.fraction(rampStart+10*time.Second), "exactly 1 at its end")
}

func TestRampNeedsEvidence(t *testing.T) {
	const slow, fast = true, false
	r := tenSecondRamp()
	for i, step := range []struct {
		after time.Duration
		slow  bool
		want  float64 // the evidence afterwards
	}{
		{5 * time.Second, fast, 1},
		{5 * time.Second, slow, 0.275}, // half of what the clock admits
		{5 * time.Second, fast, 0.275},
		{5 * time.Second, fast, 0.275},
		{5 * time.Second, fast, 0.375}, // a row of three
		{6 * time.Second, fast, 0.375},
		{6 * time.Second, fast, 0.375},
		{6 * time.Second, slow, 0.1875}, // half of what the evidence admits; the row starts again
		{6 * time.Second, fast, 0.1875},
		{6 * time.Second, fast, 0.1875},
		{6 * time.Second, slow, 0.1}, // never below the initial fraction
		{time.Hour, slow, 0.1},
		{time.Hour, fast, 0.1},
		{time.Hour, fast, 0.1},
		{time.Hour, fast, 0.2},
	} {
		r.record(rampStart+step.after, step.slow)
		require.InDelta(t, step.want, r.evidence, 1e-12, "step %d", i)
		require.LessOrEqual(t, r.fraction(rampStart+step.after), r.evidence, "step %d", i)
	}
}

// The evidence must stop at 1 itself, not at a sum that rounding left just beside it: a ramp would never end.
func TestRampEvidenceReachesOne(t *testing.T) {
	for _, initial := range []float64{0.05, 0.1, 0.3, 1.0 / 3, 0.07, 0.999} {
		t.Run(fmt.Sprint(initial), func(t *testing.T) {
			r := newRamp(Recovery{Fraction: 1, Initial: initial, Min: 1, Max: time.Hour}, 1, 0, time.Second, 0)
			r.record(time.Second, true)
			for range int(math.Ceil(1 / initial)) {
				r.record(time.Second, false)
			}
			assert.Equal(t, 1.0, r.fraction(time.Second))
		})
	}
}

// By credit the admitted calls are spread evenly: of every 1/fraction offered calls the last one goes.
func TestRampAdmitsByCredit(t *testing.T) {
	for _, test := range []struct {
		fraction float64
		want     string // of 12 offered calls
	}{
		{1.0 / 4, "...x...x...x"},
		{3.0 / 4, ".xxx.xxx.xxx"},
		{1.0 / 8, ".......x...."},
	} {
		r := tenSecondRamp()
		r.evidence = test.fraction
		var got []byte
		for range 12 {
			r.accrue(rampStart + time.Hour)
			if r.spend() {
				got = append(got, 'x')
			} else {
				got = append(got, '.')
			}
		}
		assert.Equal(t, test.want, string(got), "%v", test.fraction)
	}
}

// Twenty times 0.05 must be a whole credit: the first call of a default ramp is the twentieth.
func TestRampAdmitsItsFirstCallOnTime(t *testing.T) {
	r := newRamp(Recovery{Fraction: 1, Initial: 0.05, Min: 1, Max: time.Hour}, 2, 0, time.Second, 0)
	for offered := 1; ; offered++ {
		r.accrue(0)
		if r.spend() {
			assert.Equal(t, 20, offered)
			return
		}
		require.Less(t, offered, 21)
	}
}

func TestRampLendsWhatIsMissing(t *testing.T) {
	r := tenSecondRamp()
	r.accrue(rampStart + 9*time.Second)
	require.False(t, r.spend())
	assert.True(t, r.lend())
	assert.Zero(t, r.credit, "what there was is used up")
}

// With an Initial too small to count, a slow call held the ramp down for ever: the evidence rose by steps that rounding swallowed. A step
// is a 1024th at least, and so is what slow calls leave.
func TestRegression_RampOfTheSmallestInitialEnds(t *testing.T) {
	for _, initial := range []float64{1e-17, 1e-300, math.SmallestNonzeroFloat64, 1e-4, 1.0 / 1024} {
		t.Run(fmt.Sprint(initial), func(t *testing.T) {
			r := newRamp(Recovery{Fraction: 1, Initial: initial, Min: 1, Max: time.Hour}, 1, 0, time.Second, 0)
			for range 2000 {
				r.record(time.Second, true)
			}
			rows := 0
			for ; r.fraction(time.Second) < 1 && rows < 2000; rows++ {
				r.record(time.Second, false)
			}
			assert.Equal(t, 1023, rows)
		})
	}
}

// A breaker with it lets calls through from the slow one on, and closes.
func TestRegression_RecoveryOfTheSmallestInitialCloses(t *testing.T) {
	var c handClock
	s := brittle(&c)
	s.SlowCallThreshold, s.Recovery = time.Second, Recovery{Fraction: 1, Initial: 1e-17}
	b := MustNewClassic(s)
	toProbe(t, b, &c)
	pass(t, b)
	c.advance(5 * time.Second)
	slow := false
	for offered := 0; b.State() == Recovering; offered++ {
		require.Less(t, offered, 100_000)
		c.advance(time.Millisecond)
		p, err := b.TryAcquire(t.Context())
		if err != nil {
			continue
		}
		if slow {
			p.RecordLatency(Success, time.Millisecond)
		} else {
			p.RecordLatency(Success, time.Minute)
			slow = true
		}
	}
	require.True(t, slow)
	assert.Equal(t, Closed, b.State())
}
