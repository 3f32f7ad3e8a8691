package breaker

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Tests of what the fixed rules leave out, through the breaker: the sequential test, and the tail quantile beside a ratio.

func TestClassicHasNothingBeyond(t *testing.T) {
	b := MustNew(Classic())
	pass(t, b)
	assert.Nil(t, b.machine.gauges.failures)
	assert.Nil(t, b.machine.gauges.slowness)
	assert.Nil(t, b.machine.flights)
	assert.Zero(t, b.machine.gauge().latency.tail)
}

// written are settings and the field with the one problem that they have, "" for none.
type written struct {
	name     string
	settings Settings
	field    string
	value    any
	says     []string
}

func (w written) check(t *testing.T) {
	err := w.settings.Validate()
	if w.field == "" {
		require.NoError(t, err)
		require.NoError(t, w.settings.WithDefaults().Validate())
		return
	}
	var e *SettingsError
	require.ErrorAs(t, err, &e)
	require.Len(t, e.Problems, 1)
	assert.Equal(t, w.field, e.Problems[0].Field)
	assert.Equal(t, w.value, e.Problems[0].Value)
	for _, text := range w.says {
		assert.Contains(t, e.Problems[0].Message, text)
	}
}

func TestFalseAlarmEveryRanges(t *testing.T) {
	sequentially := func(every, window time.Duration) Settings {
		return Settings{Failures: Failures{FalseAlarmEvery: every, Window: window}}
	}
	for _, w := range []written{
		{"the default", sequentially(0, 0), "", nil, nil},
		{"an hour", sequentially(time.Hour, 0), "", nil, nil},
		{"less than an hour", sequentially(time.Hour-1, 0), "Failures.FalseAlarmEvery", time.Hour - 1, []string{"at least 1h0m0s"}},
		{"off", sequentially(Disabled, 0), "", nil, nil},
		{"negative", sequentially(-2, 0), "Failures.FalseAlarmEvery", time.Duration(-2), []string{"at least 1h0m0s", "Disabled"}},
		{"the race, met exactly", sequentially(month, time.Minute), "", nil, nil},
		{"the race, lost", sequentially(month, time.Minute-1), "Failures.Window", time.Minute - 1,
			[]string{"Failures.Window is 60 s", "2 × Settings.Window is 60 s", "raise Failures.Window", "lower Settings.Window"}},
		{"the same window with the multiple", sequentially(Disabled, time.Minute), "Failures.Window", time.Minute, []string{"Multiple"}},
	} {
		t.Run(w.name, w.check)
	}
}

func TestTailQuantileRanges(t *testing.T) {
	tail := func(ratio float64, s SlowCalls) Settings { return Settings{SlowCallRatio: ratio, SlowCalls: s} }
	for _, w := range []written{
		{"a tail", tail(0, SlowCalls{TailQuantile: 0.75}), "", nil, nil},
		{"a tail that leaves too much", tail(0, SlowCalls{TailQuantile: 0.74}), "SlowCalls.TailQuantile", 0.74,
			[]string{"half of Settings.SlowCallRatio, which is 0.5", "raise either"}},
		{"met exactly, in decimals", tail(0.3, SlowCalls{TailQuantile: 0.85}), "", nil, nil},
		{"not above the quantile", tail(1, SlowCalls{TailQuantile: 0.5}), "SlowCalls.TailQuantile", 0.5, []string{"SlowCalls.Quantile"}},
		{"just above it", tail(1, SlowCalls{TailQuantile: 0.5000001}), "", nil, nil},
		{"one", tail(0, SlowCalls{TailQuantile: 1}), "SlowCalls.TailQuantile", 1.0, []string{"(SlowCalls.Quantile, 1)"}},
		{"negative", tail(0, SlowCalls{TailQuantile: -0.75}), "SlowCalls.TailQuantile", -0.75, []string{"(SlowCalls.Quantile, 1)"}},
		{"checked though off", tail(0, SlowCalls{TailQuantile: 2, Off: true}), "SlowCalls.TailQuantile", 2.0, nil},
		{"no race though off", tail(0, SlowCalls{TailQuantile: 0.6, Off: true}), "", nil, nil},
		{"its race, met exactly", tail(0, SlowCalls{TailQuantile: 0.75, Window: 2 * time.Minute}), "", nil, nil},
		{"its race, lost", tail(0, SlowCalls{TailQuantile: 0.75, Window: 2*time.Minute - 4}), "SlowCalls.Window", 2*time.Minute - 4,
			[]string{"(1 − SlowCalls.TailQuantile) × SlowCalls.Window is 30 s", "2 × Settings.SlowCallRatio × Settings.Window is 30 s", "raise SlowCalls.Window"}},
		{"its race, which derives a window", tail(0, SlowCalls{TailQuantile: 0.95}), "", nil, nil},
		{"its race, with more than is derived", tail(0, SlowCalls{TailQuantile: 0.995}), "SlowCalls.Window", time.Duration(0), []string{"write it"}},
	} {
		t.Run(w.name, w.check)
	}
}

func TestBeyondDerivesWindows(t *testing.T) {
	s := Settings{Window: 10 * time.Minute, Failures: Failures{FalseAlarmEvery: month}}.WithDefaults()
	assert.Equal(t, 20*time.Minute+time.Second, s.Failures.Window)
	s = Settings{SlowCalls: SlowCalls{TailQuantile: 0.95}}.WithDefaults()
	assert.Equal(t, 10*time.Minute+time.Second, s.SlowCalls.Window, "2 × 0.5 × 30 s / 0.05")
}

// The reason, the snapshot and the refusal of a circuit that the sequential test opens.
func TestFalseAlarmEveryThroughTheBreaker(t *testing.T) {
	clock, log := new(virtualClock), new(watchLog)
	b := MustNewClassic(Settings{
		Name: "db", Failures: Failures{FalseAlarmEvery: month}, FailureRatio: 0.9, BreakJitter: JitterNone,
		Clock: clock, OnStateChange: log.add,
	})
	do := func(n int, o Outcome, apart time.Duration) {
		for range n {
			p, err := b.TryAcquire(t.Context())
			require.NoError(t, err)
			require.True(t, p.Record(o))
			clock.now += apart
		}
	}
	do(30000, Success, 10*time.Millisecond)
	assert.Equal(t, 0.9, b.Snapshot().TripRatio, "the constant is in force, no ratio is made from the baseline")
	assert.Zero(t, *b.Snapshot().NormalFailureRate)
	// At 24,000 calls without a failure p0 is 0.00693 %. A failure adds 8.88, a success takes 0.69, and the limit is 19.37. Failures
	// half a second apart are events of their own, whichever slices they fall into.
	for _, evidence := range []float64{0.4586, 0.8813} {
		do(1, Transient, 250*time.Millisecond)
		assert.InDelta(t, evidence, b.Snapshot().Evidence, 1e-3)
		do(1, Success, 250*time.Millisecond)
	}
	require.Empty(t, log.all())
	do(1, Transient, 0)
	require.Len(t, log.all(), 1)
	change := log.all()[0]
	assert.Equal(t, ReasonRelativeFailures, change.Reason)
	assert.Equal(t, 3, change.Counts.Failures)
	assert.Equal(t, 1, change.Counts.ConsecutiveFailures)
	assert.Zero(t, b.Snapshot().Evidence)
	_, err := b.TryAcquire(t.Context())
	var rejected *RejectedError
	require.ErrorAs(t, err, &rejected)
	assert.Equal(t, ReasonRelativeFailures, rejected.Reason)
}

// humps is latency with two humps, each give or take a tenth: a share of the calls takes the slower one.
type humps struct {
	*rand.Rand
	fast, slow time.Duration
	share      float64
}

func (h *humps) next() time.Duration {
	latency := h.fast
	if h.Float64() < h.share {
		latency = h.slow
	}
	return time.Duration(float64(latency) * (0.9 + 0.2*h.Float64()))
}

// untilOpen calls at 20/s until the circuit opens and returns after how long it did, or false.
func (x *trial) untilOpen(h *humps, slower, within time.Duration) (after time.Duration, ok bool) {
	x.t.Helper()
	for began := x.now; x.now < began+within; {
		x.now += 50 * time.Millisecond
		if change := x.call(Success, h.next()*slower); change != nil {
			require.Equal(x.t, ReasonSlowCalls, change.reason)
			return x.now - began, true
		}
	}
	return 0, false
}

func cacheAndDisk(seed uint64, share float64) *humps {
	return &humps{rand.New(rand.NewPCG(seed, 0)), time.Millisecond, 25 * time.Millisecond, share}
}

// Half from a cache, half from a disk: three times the median is 3 ms, and the fixed rules open on health.
func TestTailQuantileOnTwoHumps(t *testing.T) {
	_, opened := try(t, Settings{}).untilOpen(cacheAndDisk(1, 0.5), 1, time.Hour)
	require.True(t, opened, "the fixed rules")
	for seed := range uint64(3) {
		x := try(t, Settings{SlowCalls: SlowCalls{TailQuantile: 0.75}})
		_, opened := x.untilOpen(cacheAndDisk(seed, 0.5), 1, time.Hour)
		require.False(t, opened, "an hour of health")
		assert.Greater(t, x.snapshot(x.now).SlowThreshold, 24*time.Millisecond, "of the disk")
	}
}

// Eight times slower, only the disk passes the threshold. Where that is half of the calls, it is exactly SlowCallRatio, and the
// circuit opens as chance has it; a ratio below the share of the disk is sure.
func TestTailQuantileOnABrownoutOfTwoHumps(t *testing.T) {
	after := func(s Settings) (times []time.Duration) {
		for seed := range uint64(21) {
			x := try(t, s)
			h := cacheAndDisk(seed, 0.5)
			_, opened := x.untilOpen(h, 1, 10*time.Minute+time.Duration(seed)*70*time.Millisecond)
			require.False(t, opened, "healthy")
			d, opened := x.untilOpen(h, 8, time.Hour)
			require.True(t, opened)
			times = append(times, d)
		}
		slices.Sort(times)
		return times
	}
	chance := after(Settings{SlowCalls: SlowCalls{TailQuantile: 0.75}})
	assert.LessOrEqual(t, chance[5], 30*time.Second, "some")
	assert.Greater(t, chance[15], 30*time.Second, "others take longer")
	assert.Less(t, chance[20], 5*time.Minute)
	sure := after(Settings{SlowCalls: SlowCalls{TailQuantile: 0.8}, SlowCallRatio: 0.4})
	assert.LessOrEqual(t, sure[20], 30*time.Second, "every one")
}

// With exactly every second call from the disk, half of a full window is slow.
func TestTailQuantileOnAnEvenBrownout(t *testing.T) {
	for phase := range 10 {
		x := try(t, Settings{SlowCalls: SlowCalls{TailQuantile: 0.75}})
		latencies := []time.Duration{time.Millisecond, 25 * time.Millisecond}
		x.now = time.Duration(phase) * 300 * time.Millisecond
		for i := range 20000 {
			x.now += 20 * time.Millisecond
			x.calls(1, Success, latencies[i%2])
		}
		began := x.now
		for i := 0; x.state == Closed; i++ {
			x.now += 20 * time.Millisecond
			x.call(Success, 8*latencies[i%2])
		}
		assert.LessOrEqual(t, x.now-began, 30*time.Second, "phase %d", phase)
	}
}

// The tail keeps a constant from nothing: the lower of the constant and the measured threshold is in force.
func TestTailQuantileBesideAConstant(t *testing.T) {
	for constant, want := range map[time.Duration]time.Duration{0: 26624 * time.Microsecond, 5 * time.Millisecond: 5 * time.Millisecond} {
		x := try(t, Settings{SlowCallThreshold: constant, SlowCallRatio: 1, SlowCalls: SlowCalls{TailQuantile: 0.75}})
		for range 50 {
			x.calls(1, Success, time.Millisecond)
			x.calls(1, Success, 25*time.Millisecond)
		}
		x.now = 75 * time.Second
		x.calls(1, Success, time.Millisecond)
		assert.Equal(t, want, x.snapshot(x.now).SlowThreshold)
	}
}

// On one hump the multiple of the median is the higher one, and nothing changes.
func TestTailQuantileOnOneHump(t *testing.T) {
	x := try(t, Settings{SlowCalls: SlowCalls{TailQuantile: 0.75}})
	x.calls(100, Success, normal)
	assert.Equal(t, threshold, x.snapshot(x.now).SlowThreshold)
}
