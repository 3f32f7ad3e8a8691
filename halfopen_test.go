package breaker_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
)

// Peers admit 100 of 100 concurrent calls while half-open. Here 64 goroutines are let go at the instant the break ends.
func TestHalfOpenAdmitsNoMoreThanItsProbes(t *testing.T) {
	for _, test := range []struct {
		name     string
		settings breaker.Settings
		want     int
	}{
		{"one probe", breaker.Settings{}, 1},
		{"three probes", breaker.Settings{HalfOpenProbes: 3}, 3},
		{"a cohort", breaker.Settings{ProbeCohort: 10}, 10},
		{"more than there are", breaker.Settings{HalfOpenProbes: 100}, 64},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := drive(t, test.settings)
			d.trip()
			d.clock.Add(firstBreak)
			admitted := d.storm(64)
			assert.Len(t, admitted, test.want)
			assert.Equal(t, test.want, d.Snapshot().ProbesInFlight)
			assert.Equal(t, uint64(64-test.want), d.Snapshot().Totals.Rejected)
			for _, p := range admitted {
				assert.True(t, p.IsProbe())
			}
			assert.Len(t, d.changes, 2, "one goroutine made it half-open")
		})
	}
}

// storm lets n goroutines ask for admission at once.
func (d *driven) storm(n int) (admitted []*breaker.Permit) {
	gate := make(chan struct{})
	var mu sync.Mutex
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			<-gate
			if p, err := d.TryAcquire(d.t.Context()); err == nil {
				mu.Lock()
				defer mu.Unlock()
				admitted = append(admitted, p)
			}
		})
	}
	close(gate)
	all.Wait()
	return admitted
}

func TestSequentialProbes(t *testing.T) {
	d := drive(t, breaker.Settings{HalfOpenProbes: 2, ProbeSuccesses: 3})
	first, second := d.halfOpen(), d.permit()
	d.refused()
	first.Record(success)
	third := d.permit()
	d.refused()
	second.Record(success)
	d.requireState(breaker.HalfOpen)
	assert.Equal(t, 2, d.Snapshot().ProbeSuccesses)
	third.Record(success)
	d.requireState(breaker.Closed)
	assert.False(t, d.permit().IsProbe())
}

// The circuit must not close on a 200 that took half a minute, however often the probes succeed that slowly.
func TestProbesThatStaySlowKeepTheCircuitOpen(t *testing.T) {
	d := drive(t, breaker.Settings{})
	for range 20 {
		d.permit().RecordLatency(success, 10*time.Millisecond)
	}
	limit := d.Snapshot().SlowThreshold
	probe := d.halfOpen()
	require.True(t, probe.RecordLatency(success, limit))
	d.requireState(breaker.HalfOpen)
	for opens := 2; opens < 6; opens++ {
		d.permit().RecordLatency(success, 30*time.Second)
		last := d.last()
		require.Equal(t, breaker.ReasonProbeSlow, last.Reason)
		require.Equal(t, opens, last.Opens)
		require.NoError(t, last.Err)
		d.clock.Add(last.Break)
	}
	assert.Equal(t, 2*time.Minute, d.last().Break)
}

// What a cohort comes to: the state, or the reason why the circuit opened again.
var cohorts = []struct {
	name         string
	cohort       int
	failureRatio float64
	ramp         bool
	probes       string // s success, l slow success, f failure, L slow failure, n neutral
	want         string
}{
	{"all well", 4, 0.5, false, "ssss", "closed"},
	{"all well, with a ramp", 4, 0.5, true, "ssss", "recovering"},
	{"not all yet", 4, 0.5, false, "sss", "half-open"},
	{"neutral ones are replaced", 4, 0.5, false, "snsnsns", "closed"},
	{"below the ratio", 4, 0.5, false, "fsss", "closed"},
	{"at the ratio, before all have counted", 4, 0.5, false, "fsf", "probe-failed"},
	{"at the ratio with the last one", 4, 0.5, false, "fssf", "probe-failed"},
	{"a ratio that no number meets exactly", 10, 0.25, false, "ffsssssss", "half-open"},
	{"above such a ratio", 10, 0.25, false, "fff", "probe-failed"},
	{"any failure where no ratio is set", 4, 0, false, "sf", "probe-failed"},
	{"slow below the ratio", 4, 0.5, false, "lsss", "closed"},
	{"slow at the ratio", 4, 0.5, false, "lsl", "probe-slow"},
	{"slow with a ramp", 4, 0.5, true, "llll", "recovering"},
	{"failures are judged first", 4, 0.5, false, "LL", "probe-failed"},
	{"slow failures are slow", 4, 0.75, false, "LL", "probe-slow"},
	{"a cohort of one", 1, 1, false, "s", "closed"},
	{"a cohort of one that fails", 1, 1, false, "f", "probe-failed"},
}

func TestCohort(t *testing.T) {
	for _, test := range cohorts {
		t.Run(test.name, func(t *testing.T) {
			s := breaker.Settings{ProbeCohort: test.cohort, FailureRatio: test.failureRatio, SlowCallThreshold: time.Second}
			if test.ramp {
				s.Recovery = ramped.Recovery
			}
			d := drive(t, s)
			d.halfOpen().Release()
			for _, p := range test.probes {
				d.requireState(breaker.HalfOpen)
				d.probeOf(p)
			}
			got := d.State().String()
			if d.State() == breaker.Open {
				got = d.last().Reason.String()
			}
			assert.Equal(t, test.want, got)
		})
	}
}

func (d *driven) probeOf(kind rune) {
	d.t.Helper()
	p := d.permit()
	switch kind {
	case 's':
		p.Record(success)
	case 'l':
		p.RecordLatency(success, time.Hour)
	case 'f':
		p.Record(transient)
	case 'L':
		p.RecordLatency(transient, time.Hour)
	case 'n':
		p.Record(breaker.Throttled)
	}
}

// Probes that counted and probes in flight never exceed the cohort, whatever HalfOpenProbes and ProbeSuccesses say.
func TestCohortBoundsCountedAndFlying(t *testing.T) {
	d := drive(t, breaker.Settings{ProbeCohort: 3, HalfOpenProbes: 1, ProbeSuccesses: 1})
	first, second, third := d.halfOpen(), d.permit(), d.permit()
	d.refused()
	first.Record(success)
	d.requireState(breaker.HalfOpen)
	d.refused()
	second.Release()
	replaced := d.permit()
	d.refused()
	third.Record(success)
	d.refused()
	replaced.Record(success)
	d.requireState(breaker.Closed)
	assert.Equal(t, 3, d.last().Counts.Calls)
}

// A forgotten permit, or a call that hangs for ever, must not wedge the breaker.
func TestLostProbe(t *testing.T) {
	d := drive(t, breaker.Settings{HalfOpenProbes: 2, ProbeTimeout: time.Minute})
	lost := d.halfOpen()
	d.clock.Add(time.Second)
	d.permit().Record(success)
	d.permit()
	d.clock.Add(59*time.Second - 1)
	require.Equal(t, breaker.HalfOpen, d.refused().State, "no slot, but not lost yet")
	d.clock.Add(1)
	d.requireState(breaker.HalfOpen)
	rejected := d.refused()
	assert.Equal(t, breaker.Open, rejected.State)
	assert.Equal(t, breaker.ReasonProbeTimeout, rejected.Reason)
	assert.NoError(t, rejected.Cause)

	last := d.last()
	assert.Equal(t, 2*firstBreak, last.Break, "the grown break")
	assert.Equal(t, breaker.Counts{Calls: 1}, last.Counts)
	assert.False(t, lost.Record(success))
}

// The oldest probe is lost, so the next call re-opens the breaker though there is a slot.
func TestLostProbeBesideAFreeSlot(t *testing.T) {
	d := drive(t, breaker.Settings{HalfOpenProbes: 2})
	d.halfOpen()
	d.clock.Add(2 * time.Minute)
	assert.Equal(t, breaker.Open, d.refused().State)
}

// A probe that is as old as the time-out, but reports before anybody asks, still counts.
func TestProbeThatReportsInTime(t *testing.T) {
	d := drive(t, breaker.Settings{ProbeSuccesses: 1, ProbeTimeout: time.Minute})
	probe := d.halfOpen()
	d.clock.Add(time.Hour)
	require.True(t, probe.RecordLatency(success, time.Millisecond))
	d.requireState(breaker.Closed)
}

func TestProbesAreNeverLostWithoutATimeout(t *testing.T) {
	d := drive(t, breaker.Settings{ProbeTimeout: breaker.Disabled})
	d.halfOpen()
	d.clock.Add(100_000 * time.Hour)
	assert.Equal(t, breaker.HalfOpen, d.refused().State)
}

func TestProbeTimeoutIsTheMaximumBreakByDefault(t *testing.T) {
	for _, longestBreak := range []time.Duration{20 * time.Second, 3 * time.Minute} {
		t.Run(fmt.Sprint(longestBreak), func(t *testing.T) {
			d := drive(t, breaker.Settings{MaxBreakDuration: longestBreak})
			d.halfOpen()
			d.clock.Add(longestBreak - 1)
			require.Equal(t, breaker.HalfOpen, d.refused().State)
			d.clock.Add(1)
			assert.Equal(t, breaker.Open, d.refused().State)
		})
	}
}

// Probes and ramp calls that go through Execute decide like those that are recorded by hand.
func TestProbesThroughExecute(t *testing.T) {
	ramp := ramped
	ramp.HalfOpenProbes = 1
	for name, test := range map[string]struct {
		settings breaker.Settings
		want     breaker.State
	}{
		"adaptive":          {breaker.Settings{}, breaker.Closed},
		"consecutive alone": {onlyConsecutive(), breaker.Closed},
		"ramp":              {ramp, breaker.Recovering},
	} {
		t.Run(name, func(t *testing.T) {
			d := drive(t, test.settings)
			for range 30 { // so that no quantile is due
				d.runs(nil)
			}
			d.trip()
			d.clock.Add(firstBreak)
			d.runs(nil)
			d.requireState(breaker.HalfOpen)
			d.runs(nil)
			d.requireState(test.want)
			assert.Equal(t, breaker.ReasonProbesSucceeded, d.last().Reason)
			d.clock.Add(10 * time.Second)
			d.runs(nil)
			d.requireState(breaker.Closed)
		})
	}
}

// runs is a call that must be admitted and returns err.
func (d *driven) runs(err error) {
	d.t.Helper()
	ran := false
	require.Equal(d.t, err, d.Execute(d.t.Context(), func(context.Context) error { ran = true; return err }))
	require.True(d.t, ran)
}

// Where calls normally take five minutes, no probe could end within the derived time-out of two: the circuit never closed again. It
// is ten times the normal latency, as that was when the circuit opened.
func TestRegression_CallsThatNormallyTakeMinutesPassHalfOpen(t *testing.T) {
	d := driveDerived(t)
	d.usually(5 * time.Minute)
	d.trip()
	d.clock.Add(firstBreak)
	for range 2 {
		probe := d.permit()
		d.clock.Add(5 * time.Minute)
		require.Equal(t, breaker.HalfOpen, d.refused().State, "the probe is not lost")
		probe.Record(success)
	}
	d.requireState(breaker.Closed)
}

// driveDerived drives classic settings whose time-out of a probe is derived.
func driveDerived(t *testing.T) *driven {
	t.Helper()
	s := breaker.Classic()
	s.Name, s.ProbeTimeout = "orders", 0
	return driveAsWritten(t, s)
}

// usually makes a latency the normal one.
func (d *driven) usually(latency time.Duration) {
	d.t.Helper()
	for range 20 {
		d.permit().RecordLatency(success, latency)
	}
}

// A probe is lost after ten times what is normal, to the nanosecond; also in the next break, when nothing is measured any more. A
// time-out that is written stands as it is.
func TestRegression_DerivedProbeTimeoutFollowsTheNormalLatency(t *testing.T) {
	d := driveDerived(t)
	d.usually(time.Minute)
	normal, ok := d.NormalLatency()
	require.True(t, ok)
	require.Greater(t, 10*normal, 2*time.Minute)
	d.halfOpen()
	for range 3 {
		d.clock.Add(10*normal - 1)
		require.Equal(t, breaker.HalfOpen, d.refused().State)
		d.clock.Add(1)
		require.Equal(t, breaker.Open, d.refused().State)
		require.Equal(t, breaker.ReasonProbeTimeout, d.last().Reason)
		d.clock.Add(d.last().Break)
		_, ok = d.NormalLatency()
		require.False(t, ok, "forgotten by now")
		d.permit()
	}

	d = drive(t, breaker.Settings{ProbeTimeout: 2 * time.Minute})
	d.usually(time.Minute)
	d.halfOpen()
	d.clock.Add(2 * time.Minute)
	assert.Equal(t, breaker.Open, d.refused().State)
}

// A fast dependency has a time-out of a second, and one that is not known has that of the longest break.
func TestDerivedProbeTimeoutHasALeast(t *testing.T) {
	for _, test := range []struct {
		name          string
		calls         int
		normal, limit time.Duration
	}{
		{"fast", 20, time.Millisecond, time.Second},
		{"just as fast", 20, 90 * time.Millisecond, time.Second},
		{"not known", 19, time.Millisecond, 2 * time.Minute},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := driveDerived(t)
			for range test.calls {
				d.permit().RecordLatency(success, test.normal)
			}
			d.halfOpen()
			d.clock.Add(test.limit - 1)
			require.Equal(t, breaker.HalfOpen, d.refused().State)
			d.clock.Add(1)
			assert.Equal(t, breaker.Open, d.refused().State)
			assert.Equal(t, breaker.ReasonProbeTimeout, d.last().Reason)
		})
	}
}
