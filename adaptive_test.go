package breaker

import (
	"context"
	"fmt"
	"math"
	"sort"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// stage is a breaker of some settings and its dependency on a clock that is moved by hand. Time is since the start.
type stage struct {
	t      *testing.T
	b      *Breaker
	clock  *handClock
	start  time.Time
	log    *watchLog
	flying []landing // soonest first
}

// landing is the end of a call.
type landing struct {
	at     time.Duration
	permit *Permit
	o      Outcome
}

// land ends the call.
func (l landing) land(t *testing.T) {
	if l.o != givenUp {
		l.permit.Record(l.o)
		return
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l.permit.Done(ctx, ctx.Err())
}

// onStage sets a stage for settings; jitter takes the whole break.
func onStage(t *testing.T, s Settings) *stage {
	x := &stage{t: t, clock: &handClock{now: time.Unix(1e9, 0)}, log: new(watchLog)}
	x.start = x.clock.now
	s.Clock, s.OnStateChange, s.BreakJitter = x.clock, x.log.add, JitterNone
	x.b = MustNew(s)
	return x
}

func (x *stage) now() time.Duration { return x.clock.now.Sub(x.start) }

// until lands what lands by then, and moves the clock there.
func (x *stage) until(at time.Duration) {
	for len(x.flying) > 0 && x.flying[0].at <= at {
		l := x.flying[0]
		x.flying = x.flying[1:]
		x.clock.now = x.start.Add(max(l.at, x.now()))
		l.land(x.t)
	}
	x.clock.now = x.start.Add(at)
}

// call begins a call now that takes so long, for ever below 0, and reports whether it was admitted.
func (x *stage) call(latency time.Duration, o Outcome) bool {
	p, err := x.b.TryAcquire(x.t.Context())
	if err != nil {
		require.ErrorIs(x.t, err, ErrRejected)
		return false
	}
	if latency >= 0 {
		l := landing{x.now() + latency, p, o}
		i := sort.Search(len(x.flying), func(i int) bool { return x.flying[i].at > l.at })
		x.flying = append(x.flying, landing{})
		copy(x.flying[i+1:], x.flying[i:])
		x.flying[i] = l
	}
	return true
}

// calls makes calls at a rate, evenly, until a time, and returns how many were admitted.
func (x *stage) calls(rate float64, until, latency time.Duration, o Outcome) (admitted int) {
	gap := time.Duration(float64(time.Second) / rate)
	for at := x.now(); at < until; at += gap {
		x.until(at)
		if x.call(latency, o) {
			admitted++
		}
	}
	x.until(until)
	return admitted
}

const usual = 20 * time.Millisecond

// sound is a stage on which all has been well for a minute.
func sound(t *testing.T, s Settings, rate float64) *stage {
	x := onStage(t, s)
	x.calls(rate, time.Minute, usual, Success)
	require.Empty(t, x.log.all())
	return x
}

// opened returns the first change, which must be to Open, and how long after the first minute it came.
func (x *stage) opened() (StateChange, time.Duration) {
	x.t.Helper()
	require.NotEmpty(x.t, x.log.all())
	c := x.log.all()[0]
	require.Equal(x.t, Open, c.To)
	return c, c.At.Sub(x.start) - time.Minute
}

func TestAdaptiveOpensOnAnOutage(t *testing.T) {
	x := sound(t, Settings{}, 100)
	x.calls(100, 61*time.Second, usual, Transient)
	_, after := x.opened()
	assert.GreaterOrEqual(t, after, 250*time.Millisecond, "a burst of less is one event")
	assert.LessOrEqual(t, after, 400*time.Millisecond)
}

func TestAdaptiveOpensOnABrownout(t *testing.T) {
	x := sound(t, Settings{}, 100)
	x.calls(100, 64*time.Second, 8*usual, Success)
	_, after := x.opened()
	assert.LessOrEqual(t, after, 2500*time.Millisecond)
}

// The circuit opens while nothing returns, and the call that asks is refused.
func TestAdaptiveOpensOnAHang(t *testing.T) {
	x := sound(t, Settings{}, 100)
	for x.call(-1, Ignored) {
		require.Less(t, x.now(), 62*time.Second)
		require.Empty(t, x.log.all())
		x.until(x.now() + 10*time.Millisecond)
	}
	c, after := x.opened()
	assert.Equal(t, ReasonOverdueCalls, c.Reason)
	assert.LessOrEqual(t, after, 1500*time.Millisecond)
}

// A call that crosses the threshold is one slow call, and not another when it ends.
func TestAdaptiveCountsAnOverdueCallOnce(t *testing.T) {
	x := sound(t, Settings{}, 100)
	slowness := x.b.machine.gauges.slowness
	for range 3 {
		require.True(t, x.call(time.Second, Success))
	}
	for range 90 { // calls without an outcome
		x.until(x.now() + 10*time.Millisecond)
		require.True(t, x.call(0, Ignored))
	}
	require.EqualValues(t, 3, slowness.badCalls)
	x.until(61 * time.Second)
	require.EqualValues(t, 3, x.b.Snapshot().Totals.Slow, "they have ended, slow")
	assert.EqualValues(t, 3, slowness.badCalls)
}

// Callers that give up leave the evidence that their calls were slow: no outcome counts, and the circuit opens.
func TestAdaptiveGivenUpCallsStand(t *testing.T) {
	x := sound(t, Settings{}, 50)
	for range 400 {
		if !x.call(500*time.Millisecond, givenUp) {
			break
		}
		x.until(x.now() + 20*time.Millisecond)
	}
	c, _ := x.opened()
	assert.Contains(t, []Reason{ReasonOverdueCalls, ReasonSlowCalls}, c.Reason)
	assert.Zero(t, x.b.Snapshot().Totals.Transient)
}

// A slow probe proves nothing: half-open goes on one at a time, until as many fast ones in a row as it takes.
func TestAdaptiveSlowProbesProveNothing(t *testing.T) {
	x := sound(t, Settings{}, 100)
	x.calls(100, 61*time.Second, usual, Transient)
	c, _ := x.opened()
	x.until(61*time.Second + c.Break)
	probe := func(latency time.Duration) State {
		require.True(t, x.call(latency, Success))
		require.False(t, x.call(latency, Success), "one at a time")
		x.until(x.now() + latency)
		return x.b.State()
	}
	for range 5 {
		require.Equal(t, HalfOpen, probe(900*time.Millisecond))
	}
	require.Equal(t, HalfOpen, probe(usual))
	require.Equal(t, HalfOpen, probe(900*time.Millisecond), "not in a row")
	require.Equal(t, HalfOpen, probe(usual))
	assert.Equal(t, Recovering, probe(usual))
	assert.EqualValues(t, 1, x.b.Snapshot().Totals.Opens)
}

// One failure on the ramp re-opens nothing.
func TestAdaptiveRampBearsAFailure(t *testing.T) {
	x := recovering(t)
	x.calls(100, x.now()+200*time.Millisecond, usual, Success)
	require.Equal(t, Recovering, x.b.State())
	for !x.call(usual, Transient) {
		x.until(x.now() + 10*time.Millisecond)
	}
	x.calls(100, x.now()+10*time.Second, usual, Success)
	assert.Equal(t, Closed, x.b.State())
	assert.EqualValues(t, 1, x.b.Snapshot().Totals.Opens)
}

// recovering is a stage on which a ramp has just begun.
func recovering(t *testing.T) *stage {
	x := sound(t, Settings{}, 100)
	x.calls(100, 61*time.Second, usual, Transient)
	c, _ := x.opened()
	x.until(61*time.Second + c.Break)
	for range 2 {
		require.True(t, x.call(usual, Success))
		x.until(x.now() + usual)
	}
	require.Equal(t, Recovering, x.b.State())
	return x
}

// What fails within a moment has one cause, and opens nothing.
func TestAdaptiveBurstIsOneEvent(t *testing.T) {
	for name, burst := range map[string]func(*stage){
		"a connection with 100 calls in flight": func(x *stage) {
			for range 100 {
				x.call(usual, Transient)
			}
		},
		"200 ms of refused connections": func(x *stage) { x.calls(100, 60*time.Second+200*time.Millisecond, 0, Transient) },
	} {
		t.Run(name, func(t *testing.T) {
			x := sound(t, Settings{}, 100)
			burst(x)
			x.calls(100, 65*time.Second, usual, Success)
			assert.Empty(t, x.log.all())
		})
	}
}

// A process that stood still for a minute found all its calls slow at once, and opened on slowness that was its own.
func TestRegression_OwnFreezeOpensNothing(t *testing.T) {
	for _, inFlight := range []int{30, 10_000} {
		for _, o := range []Outcome{Success, Transient, givenUp} {
			t.Run(fmt.Sprint(inFlight, o), func(t *testing.T) {
				x := sound(t, Settings{}, 100)
				for range inFlight {
					require.True(t, x.call(time.Minute, o))
				}
				x.until(2 * time.Minute)
				x.calls(100, 125*time.Second, usual, Success)
				assert.Empty(t, x.log.all())
			})
		}
	}
}

// There is no traffic too low to be judged, once a few calls have been good.
func TestAdaptiveJudgesATenthOfACallASecond(t *testing.T) {
	x := onStage(t, Settings{})
	x.calls(0.1, 10*time.Minute, usual, Success)
	x.calls(0.1, 12*time.Minute, usual, Transient)
	require.NotEmpty(t, x.log.all())
	assert.Equal(t, Open, x.log.all()[0].To)
}

// Streams of a minute beside short calls are normal where they always are.
func TestAdaptiveStreamsAreNormal(t *testing.T) {
	x := onStage(t, Settings{})
	for n := range 60 * 20 {
		latency := usual
		if n%5 == 0 {
			latency = time.Minute
		}
		require.True(t, x.call(latency, Success))
		x.until(x.now() + 250*time.Millisecond)
	}
	assert.Empty(t, x.log.all())
}

// A threshold that is written keeps the ratio of slow calls, for those above it.
func TestAdaptiveWrittenThresholdKeepsItsRatio(t *testing.T) {
	for latency, opens := range map[time.Duration]bool{2 * time.Second: true, 2*time.Second - time.Millisecond: false} {
		x := onStage(t, Settings{SlowCallThreshold: 2*time.Second - time.Millisecond})
		for range 60 {
			if !x.call(latency, Success) {
				break
			}
			x.until(x.now() + latency)
		}
		assert.Equal(t, opens, len(x.log.all()) > 0, "%v", latency)
	}
}

// A row that is written is as long as it says, however quick it comes and whatever the traffic.
func TestAdaptiveWrittenRowStands(t *testing.T) {
	x := sound(t, Settings{ConsecutiveFailures: 5}, 100)
	for range 4 {
		require.True(t, x.call(0, Transient))
	}
	x.until(x.now())
	require.Empty(t, x.log.all())
	x.call(0, Transient)
	x.until(x.now())
	c, _ := x.opened()
	assert.Equal(t, ReasonConsecutiveFailures, c.Reason)
}

// Numbers are numbers, from no call to a thousand million.
func TestAdaptiveNumbersAtTheExtremes(t *testing.T) {
	for _, c := range []bucket{{}, {calls: 1}, {1, 1, 1}, {1e9, 0, 0}, {1e9, 1e9, 1e9}} {
		b := newBreaker(Settings{})
		m := &b.machine
		m.gauge().baseline.at(0)
		m.gauges.baseline.buckets[0] = c
		now := time.Duration(0)
		for range 3 {
			m.measure(now, true, time.Hour)
			m.judge(now, true, true, false)
			s := m.snapshot(now)
			for _, v := range []float64{s.Evidence, s.SlowEvidence, m.rate(now), m.gauges.failures.limit, m.gauges.slowness.limit} {
				require.False(t, math.IsNaN(v) || math.IsInf(v, 0), "%+v: %v", c, v)
			}
			require.True(t, s.Evidence <= 1 && s.SlowEvidence <= 1)
			now += time.Second
		}
	}
}
