package breaker_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
)

// ending is a way to end a permit. It reports what the permit answered.
type ending struct {
	name string
	end  func(*testing.T, *breaker.Permit) bool
}

func record(o breaker.Outcome) ending {
	return ending{"Record " + o.String(), func(_ *testing.T, p *breaker.Permit) bool { return p.Record(o) }}
}

var (
	release   = ending{"Release", func(_ *testing.T, p *breaker.Permit) bool { p.Release(); return false }}
	doneWell  = ending{"Done nil", func(t *testing.T, p *breaker.Permit) bool { return p.Done(t.Context(), nil) }}
	doneBadly = ending{"Done error", func(t *testing.T, p *breaker.Permit) bool { return p.Done(t.Context(), errDown) }}
	slowly    = ending{"RecordLatency", func(_ *testing.T, p *breaker.Permit) bool { return p.RecordLatency(success, time.Hour) }}

	everyEnding = []ending{
		doneWell, doneBadly, slowly, release,
		record(success), record(transient), record(breaker.Throttled), record(breaker.Permanent), record(breaker.Ignored),
	}
	neutralEndings = []ending{record(breaker.Throttled), record(breaker.Permanent), record(breaker.Ignored), release}
)

// A call admitted before the circuit opened says nothing about what came after: whatever it reports is discarded whole.
func TestLateReportChangesNothing(t *testing.T) {
	for _, state := range everyState {
		for _, e := range everyEnding {
			t.Run(state.String()+"/"+e.name, func(t *testing.T) {
				d := drive(t, ramped)
				late := d.permit()
				if state == breaker.Closed {
					d.trip()
					d.Reset()
				} else {
					d.enter(state)
				}
				requireDiscarded(t, d, e, late)
			})
		}
	}
}

func requireDiscarded(t *testing.T, d *driven, e ending, p *breaker.Permit) {
	t.Helper()
	want, changes := d.Snapshot(), len(d.changes)
	want.Totals.Discarded++
	assert.False(t, e.end(t, p), "it must not count")
	assert.Equal(t, want, d.Snapshot())
	assert.Len(t, d.changes, changes)
}

// The shortest way through Execute, which takes no lock where nothing is measured, must look at the epoch as well.
func TestLateSuccessOfExecuteChangesNothing(t *testing.T) {
	for name, settings := range map[string]breaker.Settings{"adaptive": {}, "consecutive alone": onlyConsecutive()} {
		for _, state := range []breaker.State{breaker.Open, breaker.Closed} {
			t.Run(name+"/"+state.String(), func(t *testing.T) {
				d := drive(t, settings)
				require.NoError(t, d.Execute(t.Context(), func(context.Context) error {
					d.trip()
					if state == breaker.Closed {
						d.Reset()
					}
					return nil
				}))
				d.requireState(state)
				assert.Equal(t, breaker.Totals{Transient: 5, Discarded: 1, Opens: 1}, d.Snapshot().Totals)
			})
		}
	}
}

// A success ends the streak and is counted, whichever way it takes.
func TestSuccessOfExecuteEndsTheStreak(t *testing.T) {
	for name, settings := range map[string]breaker.Settings{"adaptive": {}, "consecutive alone": onlyConsecutive()} {
		t.Run(name, func(t *testing.T) {
			d := drive(t, settings)
			for successes := range uint64(3) {
				require.Equal(t, successes, d.Snapshot().Totals.Successes)
				d.report(transient, transient, transient, transient)
				require.NoError(t, d.Execute(t.Context(), func(context.Context) error { return nil }))
				require.Zero(t, d.Snapshot().Counts.ConsecutiveFailures)
			}
			require.NoError(t, d.Execute(t.Context(), func(context.Context) error { return nil }))
			assert.Equal(t, uint64(4), d.Snapshot().Totals.Successes)
			d.trip()
		})
	}
}

// A probe of an earlier half-open period is as late as a call from before: its circuit has opened again since.
func TestLateProbeChangesNothing(t *testing.T) {
	for _, e := range everyEnding {
		t.Run(e.name, func(t *testing.T) {
			d := drive(t, breaker.Settings{HalfOpenProbes: 2})
			late := d.halfOpen()
			d.report(transient)
			d.requireState(breaker.Open)
			requireDiscarded(t, d, e, late)
			d.clock.Add(2 * firstBreak)
			d.permit()
			d.permit()
			d.refused()
		})
	}
}

// Only the first report ends a permit, also where the second would have moved the breaker.
func TestSecondReportChangesNothing(t *testing.T) {
	for _, state := range []breaker.State{breaker.Closed, breaker.Recovering, breaker.HalfOpen} {
		for _, e := range everyEnding {
			t.Run(state.String()+"/"+e.name, func(t *testing.T) {
				d := drive(t, ramped)
				d.enter(state)
				if state == breaker.Recovering {
					d.clock.Add(9 * time.Second)
					d.refused()
				}
				p := d.permit()
				require.True(t, p.Record(success))
				want, changes := d.Snapshot(), len(d.changes)
				assert.False(t, e.end(t, p))
				assert.Equal(t, want, d.Snapshot())
				assert.Len(t, d.changes, changes)
			})
		}
	}
}

// Neutral outcomes are no calls: nothing but their own total moves.
func TestNeutralOutcomesChangeNothing(t *testing.T) {
	for _, state := range []breaker.State{breaker.Closed, breaker.Recovering, breaker.HalfOpen} {
		for _, e := range neutralEndings {
			t.Run(state.String()+"/"+e.name, func(t *testing.T) {
				d := drive(t, ramped)
				d.report(transient, transient, transient)
				d.enterFrom(state)
				before, changes := d.Snapshot(), len(d.changes)
				for range 50 {
					p, err := d.TryAcquire(t.Context())
					if err == nil {
						e.end(t, p)
					}
				}
				after := d.Snapshot()
				totals := after.Totals
				assert.Equal(t, before.Totals.Successes, totals.Successes)
				assert.Equal(t, before.Totals.Transient, totals.Transient)
				assert.Greater(t, totals.Throttled+totals.Permanent+totals.Ignored, uint64(3))
				after.Totals = before.Totals
				assert.Equal(t, before, after)
				assert.Len(t, d.changes, changes)
			})
		}
	}
}

// enterFrom leads a closed breaker with three failures in a row to a state.
func (d *driven) enterFrom(s breaker.State) {
	d.t.Helper()
	if s != breaker.Closed {
		d.report(success)
		d.enter(s)
	}
}

// A neutral probe gives its slot back at once and proves nothing.
func TestNeutralProbeIsReplaced(t *testing.T) {
	for _, e := range neutralEndings {
		for name, settings := range map[string]breaker.Settings{"sequential": {}, "cohort": {ProbeCohort: 1}} {
			t.Run(e.name+"/"+name, func(t *testing.T) {
				d := drive(t, settings)
				probe := d.halfOpen()
				d.refused()
				e.end(t, probe)
				d.requireState(breaker.HalfOpen)
				assert.Zero(t, d.Snapshot().ProbeSuccesses)
				assert.True(t, d.permit().IsProbe())
				d.refused()
			})
		}
	}
}

// Spare probes land where the breaker is by then: in a ramp they are evidence for it.
func TestSpareProbeLandingInARamp(t *testing.T) {
	settings := ramped
	settings.HalfOpenProbes, settings.ProbeSuccesses, settings.SlowCallThreshold = 3, 1, time.Second
	d := drive(t, settings)
	enough, slow, failing := d.halfOpen(), d.permit(), d.permit()
	enough.Record(success)
	d.requireState(breaker.Recovering)
	d.clock.Add(5 * time.Second)
	require.True(t, slow.RecordLatency(success, time.Hour))
	assert.InDelta(t, 0.55/2, d.Snapshot().AdmittedFraction, 1e-9)
	require.True(t, failing.RecordLatency(transient, 0))
	assert.Equal(t, breaker.ReasonRampFailed, d.last().Reason)
	assert.Equal(t, breaker.Counts{Calls: 2, Failures: 1, Slow: 1, ConsecutiveFailures: 1}, d.last().Counts)
}

// Probes and ramp calls that land in Closed are ordinary samples.
func TestSpareProbeLandingInClosed(t *testing.T) {
	d := drive(t, breaker.Settings{HalfOpenProbes: 3, ProbeSuccesses: 1})
	enough, good, bad := d.halfOpen(), d.permit(), d.permit()
	enough.Record(success)
	require.True(t, good.Record(success))
	require.True(t, bad.Record(transient))
	d.requireState(breaker.Closed)
	assert.Equal(t, breaker.Counts{Calls: 2, Failures: 1, ConsecutiveFailures: 1}, d.Snapshot().Counts)
}

func TestRampCallLandingInClosed(t *testing.T) {
	d := drive(t, ramped)
	d.recovering()
	d.clock.Add(9 * time.Second)
	d.refused()
	late := d.permit()
	d.clock.Add(time.Second)
	d.report(success)
	d.requireState(breaker.Closed)
	require.True(t, late.Record(transient))
	assert.Equal(t, breaker.Counts{Calls: 2, Failures: 1, ConsecutiveFailures: 1}, d.Snapshot().Counts)
}

// The probe is real evidence, so with a limit of one it opens the circuit that Reset has just closed. Its slot belonged to the
// half-open period and is not given back to the next one.
func TestResetWithAProbeInFlight(t *testing.T) {
	d := drive(t, breaker.Settings{ConsecutiveFailures: 1})
	d.report(transient)
	d.clock.Add(firstBreak)
	probe := d.permit()
	d.Reset()
	d.requireState(breaker.Closed)
	assert.Zero(t, d.Snapshot().ProbesInFlight)
	require.True(t, probe.Record(transient))
	last := d.last()
	assert.Equal(t, breaker.ReasonConsecutiveFailures, last.Reason)
	assert.Equal(t, 1, last.Opens, "Reset has forgotten the growth")
}

// A success of such a probe must not be taken for one of the next half-open period.
func TestProbeOfAResetPeriodIsNoProbeOfTheNext(t *testing.T) {
	d := drive(t, breaker.Settings{})
	probe := d.halfOpen()
	d.Reset()
	d.halfOpen()
	want := d.Snapshot()
	want.Totals.Discarded++
	assert.False(t, probe.Record(success))
	assert.Equal(t, want, d.Snapshot())
	d.refused()
}
