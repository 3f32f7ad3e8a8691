package breaker

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// leapingClock is the system's clock, set forward and back at will.
type leapingClock struct{ ahead atomic.Int64 }

func (c *leapingClock) Now() time.Time                         { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *leapingClock) Since(t time.Time) time.Duration        { return c.Now().Sub(t) }
func (c *leapingClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// stressed are settings that change state thousands of times a second, with faults in everything that the user supplies.
func stressed(with func(*Settings)) Settings {
	s := Settings{
		Name: "storm", FailureRatio: 0.5, MinCalls: 10, Window: 10 * time.Millisecond, SlowCallThreshold: time.Millisecond,
		BreakDuration: 200 * time.Microsecond, MaxBreakDuration: time.Millisecond, HalfOpenProbes: 3, ProbeSuccesses: 4,
		ProbeTimeout: 20 * time.Millisecond, MaxWait: Disabled,
		Random: anyNumber, Classify: classifyBadly,
	}
	with(&s)
	return s
}

func anyNumber() float64 {
	n := rand.IntN(20)
	if n == 0 {
		panic(errThrown)
	}
	return []float64{math.NaN(), -1, 1, 0.5, math.Inf(1)}[n%5]
}

func classifyBadly(error) Outcome {
	if rand.IntN(10) == 0 {
		panic(errThrown)
	}
	return Transient
}

// Thousands of goroutines do all at once whatever callers, observers and operators can do to one breaker, well or badly.
func TestStress(t *testing.T) {
	for name, s := range map[string]Settings{
		"default": stressed(func(*Settings) {}),
		"consecutive failures alone": stressed(func(s *Settings) {
			s.FailureRatio, s.SlowCallThreshold, s.Failures.Off, s.SlowCalls.Off = 0, 0, true, true
		}),
		"cohort and ramp": stressed(func(s *Settings) {
			s.ProbeCohort, s.MaxWaiting = 5, 500
			s.Recovery = Recovery{Fraction: 1, Min: 100 * time.Microsecond, Max: time.Millisecond}
		}),
		"beyond": stressed(func(s *Settings) {
			s.Failures.FalseAlarmEvery = time.Hour
			s.SlowCalls = SlowCalls{TailQuantile: 0.75}
			s.WhenOpen, s.MaxWait = Wait, 5*time.Millisecond
		}),
		"clock that leaps":  stressed(func(s *Settings) { s.Clock = new(leapingClock) }),
		"break by function": stressed(func(s *Settings) { s.BreakDurationFunc = dictateBadly }),
		"dry run":           stressed(func(s *Settings) { s.ObserveOnly = true }),
	} {
		t.Run(name, func(t *testing.T) {
			before := runtime.NumGoroutine()
			st := newStorm(t, s)
			st.run(2000, 25)
			st.requireCalm()
			requireGoroutines(t, before)
		})
	}
}

func dictateBadly(context.Context, StateChange) (time.Duration, error) {
	switch rand.IntN(5) {
	case 0:
		panic(errThrown)
	case 1:
		runtime.Goexit()
	case 2:
		return 0, errDown
	}
	return time.Duration(rand.IntN(1000)+1) * time.Microsecond, nil
}

// storm is one breaker under stress, and what its callers and observers counted.
type storm struct {
	t       *testing.T
	b       *Breaker
	late    chan *Permit // whose calls go on, to be reported by somebody else
	ended   atomic.Uint64
	refused atomic.Uint64
	faults  atomic.Uint64
	inside  atomic.Int32 // observers running

	mu     sync.Mutex     // protects following fields
	probes map[uint64]int // held by callers, by epoch
	last   State          // that observers heard of
	opens  uint64
}

func newStorm(t *testing.T, s Settings) *storm {
	st := &storm{t: t, late: make(chan *Permit, 300), probes: map[uint64]int{}}
	m := new(Monitor)
	s.OnStateChange, s.OnCallbackError, s.Monitor = st.misbehave, st.fault, m
	m.Subscribe(st.hear)
	st.b = MustNewClassic(s)
	return st
}

// run lets so many goroutines do so many things each, and returns when all are through.
func (st *storm) run(goroutines, acts int) {
	if testing.Short() {
		goroutines /= 2
	}
	var all sync.WaitGroup
	for seed := range uint64(goroutines) {
		all.Go(func() {
			random := rand.New(rand.NewPCG(seed, 3))
			for range acts {
				st.act(random)
				st.checkSound()
			}
		})
	}
	through := make(chan struct{})
	go func() {
		all.Wait()
		close(through)
	}()
	select {
	case <-through:
	case <-time.After(2 * time.Minute):
		require.Fail(st.t, "somebody waits for ever")
	}
}

// misbehave is an observer that does everything an observer should not, and calls back.
func (st *storm) misbehave(ctx context.Context, _ StateChange) {
	switch rand.IntN(10) {
	case 0:
		panic(errThrown)
	case 1:
		runtime.Goexit()
	case 2:
		st.execute(ctx, func(context.Context) error { return errDown })
	case 3:
		st.b.Reset()
	case 4:
		st.b.Snapshot()
	case 5:
		for range 100 {
			runtime.Gosched()
		}
	}
}

// hear checks that events come one at a time and in one chain.
func (st *storm) hear(_ context.Context, c StateChange) {
	assert.Equal(st.t, int32(1), st.inside.Add(1), "two observers at once")
	defer st.inside.Add(-1)
	st.mu.Lock()
	defer st.mu.Unlock()
	assert.Equal(st.t, st.last, c.From, "each From is the To before it")
	if st.last = c.To; c.To == Open {
		st.opens++
	}
}

// fault fails as well, once it has been told.
func (st *storm) fault(_ context.Context, e *CallbackError) {
	st.faults.Add(1)
	panic(e)
}

// checkSound checks what must hold at any moment.
func (st *storm) checkSound() {
	b := st.b
	b.mu.Lock()
	defer b.mu.Unlock()
	m := &b.machine
	requireWord(st.t, b)
	assert.Equal(st.t, m.state == Closed, m.period == nil)
	if m.period != nil {
		flying := len(m.period.probes.flying)
		assert.True(st.t, m.state == HalfOpen || flying == 0, "%d probes while %v", flying, m.state)
		assert.LessOrEqual(st.t, flying, st.limit())
		assert.GreaterOrEqual(st.t, m.period.inFlight, 0)
	}
	if q := b.waiting; q != nil {
		assert.Equal(st.t, q.len == 0, q.head == nil)
		assert.True(st.t, b.settings.MaxWaiting == 0 || q.len <= b.settings.MaxWaiting)
	}
}

// limit is how many probes may be in flight.
func (st *storm) limit() int { return max(st.b.settings.ProbeCohort, st.b.settings.HalfOpenProbes) }

// requireCalm checks the sums, once everybody is through.
func (st *storm) requireCalm() {
	for len(st.late) > 0 {
		st.report(<-st.late, Success)
	}
	st.b.Reset()
	s := st.b.Snapshot()
	require.Equal(st.t, Closed, s.State)
	require.Zero(st.t, s.Waiting)
	require.Equal(st.t, Closed, st.last)
	require.Equal(st.t, s.Totals.Opens, st.opens, "every open is told of once")
	require.Positive(st.t, s.Totals.Opens)
	require.Positive(st.t, st.faults.Load())

	n := s.Totals
	outcomes := n.Successes + n.Transient + n.Throttled + n.Permanent + n.Ignored + n.Discarded
	require.Equal(st.t, st.ended.Load()+st.refused.Load(), outcomes+n.Rejected, "of every call one count: %+v", n)
	if !st.b.settings.ObserveOnly {
		require.Equal(st.t, st.refused.Load(), n.Rejected)
	}
}

// requireGoroutines waits for those that are on their way out.
func requireGoroutines(t *testing.T, want int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > want; runtime.Gosched() {
		require.True(t, time.Now().Before(deadline), "%d goroutines, were %d", runtime.NumGoroutine(), want)
	}
}

// errThrown is what user code panics with here. Any other panic is ours.
var errThrown = errors.New("thrown")
