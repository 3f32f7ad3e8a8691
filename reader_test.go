package breaker_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
)

// reading is what every reader of a breaker says at once.
type reading struct {
	state          breaker.State
	openedAt       time.Time
	opened, breaks bool
	retryAfter     time.Duration
	snapshot       breaker.Snapshot
}

func (d *driven) read() (r reading) {
	r.state = d.State()
	r.openedAt, r.opened = d.OpenedAt()
	r.retryAfter, r.breaks = d.RetryAfter()
	_, _ = d.NormalLatency()
	_, _ = d.NormalFailureRate()
	r.snapshot = d.Snapshot()
	return r
}

// Every reader reports what the next call would find.
func TestReaders(t *testing.T) {
	const halfBreak = firstBreak / 2
	for _, test := range []struct {
		name     string
		enter    breaker.State
		wait     time.Duration
		want     breaker.State
		retry    time.Duration
		fraction float64
		since    time.Duration // after the start of the test
	}{
		{"closed", breaker.Closed, time.Hour, breaker.Closed, 0, 1, 0},
		{"open", breaker.Open, 0, breaker.Open, firstBreak, 0, 0},
		{"open for a while", breaker.Open, halfBreak, breaker.Open, halfBreak, 0, 0},
		{"open to the last", breaker.Open, firstBreak - 1, breaker.Open, 1, 0, 0},
		{"the break has elapsed", breaker.Open, firstBreak, breaker.HalfOpen, 0, 0, firstBreak},
		{"the break elapsed long ago", breaker.Open, time.Hour, breaker.HalfOpen, 0, 0, firstBreak},
		{"half-open", breaker.HalfOpen, time.Hour, breaker.HalfOpen, 0, 0, firstBreak},
		{"recovering", breaker.Recovering, 5 * time.Second, breaker.Recovering, 0, 0.55, firstBreak},
		{"the ramp has ended", breaker.Recovering, 10 * time.Second, breaker.Closed, 0, 1, firstBreak},
		{"isolated", breaker.Isolated, time.Hour, breaker.Isolated, 0, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := drive(t, ramped)
			start := d.clock.Now()
			d.enter(test.enter)
			if test.wait > 0 {
				d.clock.Add(test.wait)
			}
			r := d.read()
			assert.Equal(t, test.want, r.state)
			assert.Equal(t, test.want != breaker.Closed, r.opened)
			assert.Equal(t, test.want == breaker.Open, r.breaks)
			assert.Equal(t, test.retry, r.retryAfter)
			if r.opened {
				assert.Equal(t, start, r.openedAt)
			}
			assert.Equal(t, r.state, r.snapshot.State)
			assert.Equal(t, r.openedAt, r.snapshot.OpenedAt)
			assert.Equal(t, r.retryAfter, r.snapshot.RetryAfter)
			assert.InDelta(t, test.fraction, r.snapshot.AdmittedFraction, 1e-9)
			assert.Equal(t, start.Add(test.since), r.snapshot.Since)
		})
	}
}

// Whichever reader is asked first, it reads the clock.
func TestEachReaderReadsTheClock(t *testing.T) {
	for name, test := range map[string]struct {
		enter breaker.State
		wait  time.Duration
		says  func(*driven) bool // of what time has ended
	}{
		"State":             {breaker.Open, firstBreak, func(d *driven) bool { return d.State() == breaker.Open }},
		"RetryAfter":        {breaker.Open, firstBreak, func(d *driven) bool { _, ok := d.RetryAfter(); return ok }},
		"OpenedAt":          {breaker.Recovering, 10 * time.Second, func(d *driven) bool { _, ok := d.OpenedAt(); return ok }},
		"NormalLatency":     {breaker.Closed, 24 * time.Hour, func(d *driven) bool { _, ok := d.NormalLatency(); return ok }},
		"NormalFailureRate": {breaker.Closed, 24 * time.Hour, func(d *driven) bool { _, ok := d.NormalFailureRate(); return ok }},
		"Snapshot":          {breaker.Open, firstBreak, func(d *driven) bool { return d.Snapshot().State == breaker.Open }},
	} {
		t.Run(name, func(t *testing.T) {
			s := ramped
			s.Failures.MinSamples, s.SlowCalls.MinSamples = 20, 20
			d := drive(t, s)
			for range 20 {
				d.permit().RecordLatency(success, 10*time.Millisecond)
			}
			d.enter(test.enter)
			require.True(t, test.says(d))
			d.clock.Add(test.wait)
			assert.False(t, test.says(d))
		})
	}
}

// A failed probe that a cohort bears with is neither in flight nor a success.
func TestSnapshotOfACohort(t *testing.T) {
	d := drive(t, settings{ProbeCohort: 4, FailureRatio: 0.5})
	first := d.halfOpen()
	second, third := d.permit(), d.permit()
	first.Record(transient)
	second.Record(success)
	s := d.Snapshot()
	assert.Equal(t, 1, s.ProbesInFlight)
	assert.Equal(t, 1, s.ProbeSuccesses)
	third.Record(success)
	s = d.Snapshot()
	assert.Equal(t, 0, s.ProbesInFlight)
	assert.Equal(t, 2, s.ProbeSuccesses)
}

// Two breakers live through the same history; one is read all the time. They must stay the same.
func TestReadingChangesNothing(t *testing.T) {
	for seed := range uint64(3) {
		settings := ramped
		settings.HalfOpenProbes = 2
		read, unread := drive(t, settings), drive(t, settings)
		for _, d := range []*driven{read, unread} {
			random := rand.New(rand.NewPCG(seed, 1))
			for range 60 {
				d.clock.Add(time.Duration(random.ExpFloat64() * float64(4*time.Second)))
				if d == read {
					first := d.read()
					require.Equal(t, first, d.read())
				}
				for range 12 {
					o, latency := breaker.Outcome(random.IntN(2)), time.Duration(random.IntN(100))*time.Millisecond
					if p, err := d.TryAcquire(t.Context()); err == nil {
						p.RecordLatency(o, latency)
					}
				}
			}
		}
		require.Equal(t, unread.changes, read.changes, "seed %d", seed)
		require.Equal(t, unread.read(), read.read(), "seed %d", seed)
		require.NotEmpty(t, read.changes)
	}
}

// A peer shows counts from before the window moved on. Nothing here is older than its window, however long nobody called.
func TestReadersAreNeverStale(t *testing.T) {
	settings := breaker.Settings{Failures: breaker.Failures{MinSamples: 20}, SlowCallThreshold: time.Second, FailureRatio: 0.9}
	d := drive(t, settings)
	for i := range 40 {
		o := success
		if i%10 == 9 {
			o = transient
		}
		d.permit().RecordLatency(o, 10*time.Millisecond)
	}
	s := d.Snapshot()
	require.Equal(t, breaker.Counts{Calls: 40, Failures: 4, ConsecutiveFailures: 1}, s.Counts)
	require.Equal(t, 10240*time.Microsecond, s.NormalLatency)
	require.Equal(t, 30720*time.Microsecond, s.SlowThreshold)
	require.Equal(t, 0.1, *s.NormalFailureRate)
	require.Equal(t, 0.5, s.TripRatio)
	latency, ok := d.NormalLatency()
	require.True(t, ok)
	require.Equal(t, s.NormalLatency, latency)
	rate, ok := d.NormalFailureRate()
	require.True(t, ok)
	require.Equal(t, 0.1, rate)

	d.clock.Add(30 * time.Second)
	s = d.Snapshot()
	assert.Equal(t, breaker.Counts{ConsecutiveFailures: 1}, s.Counts, "a streak has no age")
	assert.NotNil(t, s.NormalFailureRate)

	d.clock.Add(5*time.Minute - 30*time.Second)
	s = d.Snapshot()
	assert.Zero(t, s.NormalLatency)
	assert.Equal(t, time.Second, s.SlowThreshold, "what is left is the constant")
	assert.Nil(t, s.NormalFailureRate)
	assert.Equal(t, 0.9, s.TripRatio)
	_, ok = d.NormalLatency()
	assert.False(t, ok)
	rate, ok = d.NormalFailureRate()
	assert.False(t, ok)
	assert.Zero(t, rate)
}

func TestReadersOfWhatIsOff(t *testing.T) {
	d := drive(t, breaker.Settings{Failures: breaker.Failures{Off: true}, SlowCalls: breaker.SlowCalls{Off: true}})
	d.report(success, transient, success)
	s := d.Snapshot()
	assert.Equal(t, breaker.Counts{Calls: 3, Failures: 1}, s.Counts, "no window is kept: since the circuit closed")
	assert.Zero(t, s.NormalLatency)
	assert.Zero(t, s.SlowThreshold)
	assert.Nil(t, s.NormalFailureRate)
	assert.Zero(t, s.TripRatio)
	assert.Equal(t, breaker.Totals{Successes: 2, Transient: 1}, s.Totals)
	_, ok := d.NormalFailureRate()
	assert.False(t, ok)
}

func TestReadersOfIdentity(t *testing.T) {
	written := breaker.Settings{Name: "orders", Window: time.Minute}
	b := breaker.MustNewClassic(written)
	assert.Equal(t, "orders", b.Name())
	assert.Equal(t, "orders", b.Snapshot().Name)
	assert.Equal(t, breaker.Classically(written).WithDefaults(), b.Settings(), "the clock that was not given stays nil")
	d := drive(t, breaker.Settings{})
	assert.Equal(t, breaker.Clock(d.clock), d.Settings().Clock)
}

func TestTotals(t *testing.T) {
	d := drive(t, breaker.Settings{SlowCallThreshold: time.Second})
	late := d.permit()
	d.report(success, success, breaker.Throttled, breaker.Permanent, breaker.Permanent, breaker.Ignored)
	d.permit().Release()
	d.permit().RecordLatency(transient, time.Minute)
	d.report(success)
	d.trip()
	d.refused()
	late.Record(success)
	assert.Equal(t, breaker.Totals{
		Successes: 3, Transient: 6, Throttled: 1, Permanent: 2, Ignored: 2, Slow: 1, Discarded: 1, Rejected: 1, Opens: 1,
	}, d.Snapshot().Totals)
}
