package protect

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/brownout-go/breaker/benchmarks/internal/entry"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// scripted refuses between two times since its creation.
type scripted struct {
	made     time.Time
	from, to time.Duration
}

func (s *scripted) refuses() bool {
	at := time.Since(s.made)
	return at >= s.from && at < s.to
}

func (s *scripted) Call(ctx context.Context, fn entry.Func) error {
	if s.refuses() {
		return errNoRoom
	}
	return fn(ctx)
}

func (s *scripted) State() entry.State {
	if s.refuses() {
		return entry.Open
	}
	return entry.Closed
}

func scriptedEntry(from, to time.Duration) entry.Entry {
	return entry.Entry{New: func(uint64) entry.Guard { return &scripted{time.Now(), from, to} }}
}

// outage is a minute of failures after a minute of health, at 100 calls/s.
func outage() Scenario {
	return Scenario{
		Length: 4 * time.Minute, Load: Load{PerSecond: 100},
		Dependency: Dependency{Latency: usual(), Incidents: []Incident{{After: time.Minute, For: time.Minute, Failing: 1}}},
		Columns: []Column{timeToOpen(), sentInto(), timeToRecover("time to recover"), falseOpens(), refusedForNothing(),
			servedAfter("served", time.Minute)},
	}
}

func drive(t *testing.T, s Scenario, e entry.Entry, seed uint64) (figures []Figure, r *Record) {
	synctest.Test(t, func(*testing.T) {
		r = s.Run(e, seed)
		figures = s.Measure(r)
	})
	return figures, r
}

func TestRun_measures_a_breaker_that_is_known(t *testing.T) {
	figures, r := drive(t, outage(), scriptedEntry(70*time.Second, 150*time.Second), 1)
	for i, want := range []float64{10, 1000, 30, 1, 8000, 3000} {
		assert.Empty(t, figures[i].Note, "figure %d", i)
		assert.InEpsilon(t, want, figures[i].Value, 0.05, "figure %d", i)
	}
	assert.Len(t, r.Closes, 1)
	assert.Empty(t, r.Probes, "it knows no probes")
}

func TestRun_notes_what_has_no_figure(t *testing.T) {
	figures, _ := drive(t, outage(), scriptedEntry(0, 0), 1)
	assert.Equal(t, []Note{Never, Measured, Refused0}, []Note{figures[0].Note, figures[1].Note, figures[2].Note})
	figures, _ = drive(t, outage(), scriptedEntry(50*time.Second, time.Hour), 1)
	assert.Equal(t, Already, figures[0].Note)
	figures, _ = drive(t, outage(), scriptedEntry(time.Second, 30*time.Second), 1)
	assert.Equal(t, Already, figures[0].Note, "open in the minute before")
}

func TestRun_offers_every_entry_the_same_load(t *testing.T) {
	offered := func(r *Record) (n []Second) {
		for _, s := range r.Seconds {
			n = append(n, Second{Offered: s.Offered, Good: s.Good})
		}
		return n
	}
	_, first := drive(t, outage(), scriptedEntry(0, 0), 1)
	_, same := drive(t, outage(), scriptedEntry(time.Minute, time.Hour), 1)
	_, other := drive(t, outage(), scriptedEntry(0, 0), 2)
	assert.Equal(t, offered(first), offered(same))
	assert.NotEqual(t, offered(first), offered(other))
}

func TestRun_of_ours_is_reproducible(t *testing.T) {
	ours := entry.Field()[0]
	require.Equal(t, entry.Ours, ours.Kind)
	first, _ := drive(t, outage(), ours, 1)
	second, _ := drive(t, outage(), ours, 1)
	assert.Equal(t, first, second)
}

func TestRun_closed_loop_keeps_its_callers(t *testing.T) {
	s := Scenario{
		Length: time.Minute, Load: Load{Callers: 8, Think: 100 * time.Millisecond},
		Dependency: Dependency{Latency: LogNormal(100*time.Millisecond, 101*time.Millisecond)},
	}
	_, r := drive(t, s, scriptedEntry(0, 0), 1)
	assert.LessOrEqual(t, r.Peak, 8)
	assert.InEpsilon(t, 8*60/0.2, r.sum(0, s.Length, succeeded), 0.05)
}

func TestRun_time_outs_and_cancels_end_calls(t *testing.T) {
	hang := outage()
	hang.Dependency.Incidents[0] = Incident{After: time.Minute, For: time.Minute, Hang: true}
	hang.Load = Load{PerSecond: 100, Timeout: 5 * time.Second}
	_, r := drive(t, hang, scriptedEntry(0, 0), 1)
	assert.InEpsilon(t, 500, r.Peak, 0.15, "stuck")

	cancelled := outage()
	cancelled.Dependency.Incidents, cancelled.Columns = nil, nil
	cancelled.Load.Cancelled = 0.2
	_, r = drive(t, cancelled, scriptedEntry(0, 0), 1)
	assert.InDelta(t, 0.8, r.sum(0, cancelled.Length, succeeded)/r.sum(0, cancelled.Length, admitted), 0.01)
}

// deserter gives up on every call after a second, and lets it go on.
type deserter struct{}

func (deserter) State() entry.State { return entry.Closed }

func (deserter) Call(_ context.Context, fn entry.Func) error {
	go func() { _ = fn(context.Background()) }()
	time.Sleep(time.Second)
	return errNoRoom
}

// A library that gives up on a call of many minutes and lets it go on left goroutines behind at the end of the run, and the
// bubble panicked.
func TestRegression_ARunWaitsForCallsThatTheirLibraryHasGivenUpOn(t *testing.T) {
	s := Scenario{Length: time.Minute, Load: Load{PerSecond: 1}, Dependency: Dependency{Latency: LogNormal(time.Hour, time.Hour)}}
	_, r := drive(t, s, entry.Entry{New: func(uint64) entry.Guard { return deserter{} }}, 1)
	assert.InDelta(t, r.Peak, r.sum(0, s.Length, admitted), 1, "all were in flight at once")
}

func TestOracle_never_overruns_the_dependency(t *testing.T) {
	var collapse Scenario
	for _, s := range (Plan{Pace: Short}).All() {
		if s.Oracle {
			collapse = s
		}
	}
	end := collapse.incident().End()
	_, r := drive(t, collapse, Oracle, 1)
	assert.LessOrEqual(t, r.Peak, 20)
	assert.Equal(t, r.sum(end, collapse.Length, admitted), r.sum(end, collapse.Length, succeeded), "all it admits is served")
	assert.Greater(t, r.sum(end, collapse.Length, succeeded), 6000.0)
}

func TestWorstSecond(t *testing.T) {
	const ms = time.Millisecond
	assert.Zero(t, worstSecond(nil))
	assert.Equal(t, 1, worstSecond([]time.Duration{0, 1000 * ms, 2000 * ms}), "a second apart is not in one")
	assert.Equal(t, 3, worstSecond([]time.Duration{5000 * ms, 0, 900 * ms, 999 * ms}))
}

func TestColumn_better(t *testing.T) {
	lower, higher := Column{}, Column{Higher: true}
	never, nothing := Figure{Note: Never}, Figure{Note: NoHalfOpen}
	for _, test := range []struct {
		name string
		c    Column
		a, b Figure
		want bool
	}{
		{"lower", lower, number(1), number(2), true},
		{"lower, the other way round", lower, number(2), number(1), false},
		{"equal", lower, number(1), number(1), false},
		{"higher", higher, number(2), number(1), true},
		{"any number against never", higher, number(0), never, true},
		{"never against a number", lower, never, number(9), false},
		{"never against never", lower, never, never, false},
		{"what means nothing", lower, nothing, number(9), false},
		{"against what means nothing", lower, number(1), nothing, false},
	} {
		assert.Equal(t, test.want, test.c.Better(test.a, test.b), test.name)
	}
}

func TestColumn_median(t *testing.T) {
	c := Column{}
	never, nothing := Figure{Note: Never}, Figure{Note: NoHalfOpen}
	assert.Equal(t, number(2), c.median([]Figure{number(3), number(1), number(2)}))
	assert.Equal(t, number(3), c.median([]Figure{never, number(3), number(1)}))
	assert.Equal(t, never, c.median([]Figure{never, never, number(1)}))
	assert.Equal(t, never, c.median([]Figure{never, nothing, number(1)}))
}

// TestField_at_a_glance drives every entry through a short outage, so that a library whose goroutines do not end is seen here.
func TestField_at_a_glance(t *testing.T) {
	s := outage()
	s.Load.PerSecond = 50
	for _, e := range entry.Field() {
		t.Run(e.Name(), func(t *testing.T) {
			figures, _ := drive(t, s, e, 1)
			if e.Kind == entry.Ours || e.Kind == entry.Peer {
				assert.Empty(t, figures[0].Note, "it opens")
			}
		})
	}
}
