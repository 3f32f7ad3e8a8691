package breaker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
)

// driven is a breaker on a fake clock, and the changes it has told of.
type driven struct {
	*breaker.Breaker
	t       *testing.T
	clock   *clock.Mock
	changes []breaker.StateChange
}

// drive makes a breaker. Its break is not jittered unless the settings say JitterFull.
func drive(t *testing.T, s breaker.Settings) *driven {
	t.Helper()
	return driveAsWritten(t, breaker.Classically(s))
}

// driveAsWritten is drive without the rules of Classic.
func driveAsWritten(t *testing.T, s breaker.Settings) *driven {
	t.Helper()
	d := &driven{t: t, clock: clock.NewMock()}
	s.Clock = d.clock
	if s.BreakJitter == breaker.JitterEqual {
		s.BreakJitter = breaker.JitterNone
	}
	s.OnStateChange = func(_ context.Context, c breaker.StateChange) { d.changes = append(d.changes, c) }
	b, err := breaker.New(s)
	require.NoError(t, err)
	d.Breaker = b
	return d
}

// permit is a call that must be admitted.
func (d *driven) permit() *breaker.Permit {
	d.t.Helper()
	p, err := d.TryAcquire(d.t.Context())
	require.NoError(d.t, err)
	return p
}

// refused is a call that must be refused.
func (d *driven) refused() *breaker.RejectedError {
	d.t.Helper()
	_, err := d.TryAcquire(d.t.Context())
	var rejected *breaker.RejectedError
	require.ErrorAs(d.t, err, &rejected)
	return rejected
}

// report makes one call after the other, each with an outcome.
func (d *driven) report(outcomes ...breaker.Outcome) {
	d.t.Helper()
	for _, o := range outcomes {
		require.True(d.t, d.permit().Record(o))
	}
}

func (d *driven) requireState(want breaker.State) {
	d.t.Helper()
	require.Equal(d.t, want.String(), d.State().String())
}

// last is the change that was told of last.
func (d *driven) last() breaker.StateChange {
	d.t.Helper()
	require.NotEmpty(d.t, d.changes)
	return d.changes[len(d.changes)-1]
}

const (
	success   = breaker.Success
	transient = breaker.Transient

	firstBreak = 15 * time.Second
)

var (
	errDown = errors.New("the dependency is down")

	// ramped has the ramp that leads through Recovering: ten seconds from a tenth.
	ramped = breaker.Settings{Recovery: breaker.Recovery{Fraction: 1, Initial: 0.1, Max: 10 * time.Second}}
)

// trip opens a closed circuit.
func (d *driven) trip() {
	d.t.Helper()
	d.report(transient, transient, transient, transient, transient)
	d.requireState(breaker.Open)
}

// halfOpen opens the circuit and waits for its break; the first probe is in flight.
func (d *driven) halfOpen() (probe *breaker.Permit) {
	d.t.Helper()
	d.trip()
	d.clock.Add(firstBreak)
	probe = d.permit()
	require.True(d.t, probe.IsProbe())
	return probe
}

// recovering leads a breaker with a ramp to its start.
func (d *driven) recovering() {
	d.t.Helper()
	d.halfOpen().Record(success)
	d.report(success)
	d.requireState(breaker.Recovering)
}

// enter leads a fresh breaker with a ramp to a state.
func (d *driven) enter(s breaker.State) {
	d.t.Helper()
	switch s {
	case breaker.Open:
		d.trip()
	case breaker.HalfOpen:
		d.halfOpen().Release()
	case breaker.Recovering:
		d.recovering()
	case breaker.Isolated:
		d.Isolate()
	}
	d.requireState(s)
}

var everyState = []breaker.State{breaker.Closed, breaker.Recovering, breaker.HalfOpen, breaker.Open, breaker.Isolated}

// Every row of the table in section 2 of the specification.
func TestStateTable(t *testing.T) {
	for _, test := range []struct {
		name     string
		settings breaker.Settings
		do       func(*driven)
		from, to breaker.State
		reason   breaker.Reason
	}{
		{"a trip condition", breaker.Settings{}, func(d *driven) { d.trip() },
			breaker.Closed, breaker.Open, breaker.ReasonConsecutiveFailures},
		{"the break has elapsed", breaker.Settings{}, func(d *driven) { d.halfOpen() },
			breaker.Open, breaker.HalfOpen, breaker.ReasonBreakElapsed},
		{"a probe fails", breaker.Settings{}, func(d *driven) { d.halfOpen().Record(transient) },
			breaker.HalfOpen, breaker.Open, breaker.ReasonProbeFailed},
		{"a probe is slow", breaker.Settings{SlowCallThreshold: 1}, func(d *driven) { d.halfOpen().RecordLatency(success, 2) },
			breaker.HalfOpen, breaker.Open, breaker.ReasonProbeSlow},
		{"a cohort fails", breaker.Settings{ProbeCohort: 4, FailureRatio: 0.25}, func(d *driven) { d.halfOpen().Record(transient) },
			breaker.HalfOpen, breaker.Open, breaker.ReasonProbeFailed},
		{"a probe is lost", breaker.Settings{}, func(d *driven) { d.halfOpen(); d.clock.Add(2 * time.Minute); d.refused() },
			breaker.HalfOpen, breaker.Open, breaker.ReasonProbeTimeout},
		{"enough probes succeed", breaker.Settings{}, func(d *driven) { d.halfOpen().Record(success); d.report(success) },
			breaker.HalfOpen, breaker.Closed, breaker.ReasonProbesSucceeded},
		{"enough probes succeed, with a ramp", ramped, func(d *driven) { d.recovering() },
			breaker.HalfOpen, breaker.Recovering, breaker.ReasonProbesSucceeded},
		{"a slow probe succeeds, with a ramp", ramped,
			func(d *driven) { d.halfOpen().RecordLatency(success, time.Hour); d.report(success) },
			breaker.HalfOpen, breaker.Recovering, breaker.ReasonProbesSucceeded},
		{"a call fails in a ramp", ramped,
			func(d *driven) { d.recovering(); d.clock.Add(9 * time.Second); d.refused(); d.report(transient) },
			breaker.Recovering, breaker.Open, breaker.ReasonRampFailed},
		{"a ramp is complete", ramped, func(d *driven) { d.recovering(); d.clock.Add(10 * time.Second); d.permit() },
			breaker.Recovering, breaker.Closed, breaker.ReasonRampCompleted},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := drive(t, test.settings)
			test.do(d)
			last := d.last()
			assert.Equal(t, test.from.String(), last.From.String())
			assert.Equal(t, test.to.String(), last.To.String())
			assert.Equal(t, test.reason.String(), last.Reason.String())
			d.requireState(test.to)
		})
	}
}

// One cycle ends by success and closes, one by failure and serves the grown break.
func TestTwoFullCycles(t *testing.T) {
	d := drive(t, breaker.Settings{Name: "orders"})
	start := d.clock.Now()
	for range 4 {
		d.report(transient)
	}
	_ = d.Execute(t.Context(), func(context.Context) error { return errDown })
	d.clock.Add(firstBreak)
	d.report(transient) // the probe
	d.clock.Add(2 * firstBreak)
	d.report(success, success)

	d.trip()
	d.clock.Add(firstBreak)
	d.report(success)
	d.report(transient)

	at := func(seconds time.Duration) time.Time { return start.Add(seconds * time.Second) }
	failures := func(calls, failures, row int) breaker.Counts {
		return breaker.Counts{Calls: calls, Failures: failures, ConsecutiveFailures: row}
	}
	want := []breaker.StateChange{
		{From: breaker.Closed, To: breaker.Open, Reason: breaker.ReasonConsecutiveFailures, At: at(0),
			Break: firstBreak, Opens: 1, Counts: failures(5, 5, 5), Err: errDown},
		{From: breaker.Open, To: breaker.HalfOpen, Reason: breaker.ReasonBreakElapsed, At: at(15)},
		{From: breaker.HalfOpen, To: breaker.Open, Reason: breaker.ReasonProbeFailed, At: at(15),
			Break: 2 * firstBreak, Opens: 2, Counts: failures(1, 1, 1)},
		{From: breaker.Open, To: breaker.HalfOpen, Reason: breaker.ReasonBreakElapsed, At: at(45)},
		{From: breaker.HalfOpen, To: breaker.Closed, Reason: breaker.ReasonProbesSucceeded, At: at(45), Counts: failures(2, 0, 0)},
		{From: breaker.Closed, To: breaker.Open, Reason: breaker.ReasonConsecutiveFailures, At: at(45),
			Break: firstBreak, Opens: 1, Counts: failures(5, 5, 5)},
		{From: breaker.Open, To: breaker.HalfOpen, Reason: breaker.ReasonBreakElapsed, At: at(60)},
		{From: breaker.HalfOpen, To: breaker.Open, Reason: breaker.ReasonProbeFailed, At: at(60),
			Break: 2 * firstBreak, Opens: 2, Counts: failures(2, 1, 1)},
	}
	for i := range want {
		want[i].Name = "orders"
	}
	assert.Equal(t, want, d.changes)
}

// The circuit is closed again, but a late failure of the outage must not open it again by itself: the streak starts anew.
func TestClosedStartsWithoutEvidence(t *testing.T) {
	d := drive(t, breaker.Settings{})
	d.halfOpen().Record(success)
	d.report(success)
	d.requireState(breaker.Closed)
	assert.Zero(t, d.Snapshot().Counts)
	d.report(transient, transient, transient, transient)
	d.requireState(breaker.Closed)
	d.report(transient)
	d.requireState(breaker.Open)
}

func TestBreakGrowsUpToItsMaximum(t *testing.T) {
	d := drive(t, breaker.Settings{BreakDuration: time.Second, MaxBreakDuration: 5 * time.Second})
	d.trip()
	for opens, want := range []time.Duration{1, 2, 4, 5, 5} {
		last := d.last()
		require.Equal(t, want*time.Second, last.Break, "open %d", opens+1)
		require.Equal(t, opens+1, last.Opens)
		d.clock.Add(last.Break - 1)
		d.refused()
		d.clock.Add(1)
		d.report(transient)
	}
	d.clock.Add(5 * time.Second)
	d.report(success, success)
	d.trip()
	assert.Equal(t, time.Second, d.last().Break, "a clean close starts again at the first break")
}

// Growth comes from the nominal break, so a break that jitter made short does not shorten the next.
func TestJitterDoesNotShortenTheNextBreak(t *testing.T) {
	numbers := []float64{0.1, 0.9, -3, 7, 0} // one more is in stock in the end
	d := drive(t, breaker.Settings{
		BreakDuration: time.Second, BreakJitter: breaker.JitterFull,
		Random: func() (r float64) { r, numbers = numbers[0], numbers[1:]; return r },
	})
	d.report(success)
	for range 4 {
		d.permit().Release()
	}
	d.trip()
	want := []time.Duration{100 * time.Millisecond, 1800 * time.Millisecond, 1, 8*time.Second - 1}
	for i, b := range want {
		require.InDelta(t, b, d.last().Break, 1, "open %d", i+1)
		if i+1 < len(want) {
			d.clock.Add(d.last().Break)
			d.report(transient)
		}
	}
	assert.Empty(t, numbers)
}
