package breaker_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
)

// back sets the clock back.
func (d *driven) back(by time.Duration) { d.clock.Set(d.clock.Now().Add(-by)) }

func (d *driven) requireRetryAfter(want time.Duration) {
	d.t.Helper()
	got, ok := d.RetryAfter()
	require.True(d.t, ok)
	require.Equal(d.t, want, got)
}

// A reading that is up to a second behind the last is a late one: time stands still until the clock has caught up.
func TestClockSlightlyBehindIsClamped(t *testing.T) {
	d := drive(t, breaker.Settings{})
	d.trip()
	d.clock.Add(5 * time.Second)
	d.requireRetryAfter(10 * time.Second)
	d.back(time.Second)
	d.requireRetryAfter(10 * time.Second)
	d.clock.Add(time.Second)
	d.requireRetryAfter(10 * time.Second)
	d.clock.Add(time.Second)
	d.requireRetryAfter(9 * time.Second)
}

// What such a reading decides is decided at the last time seen.
func TestClockSlightlyBehindWhileTripping(t *testing.T) {
	d := drive(t, breaker.Settings{})
	d.clock.Add(100 * time.Second)
	d.report(transient, transient, transient, transient)
	tripped := d.clock.Now()
	d.back(500 * time.Millisecond)
	d.report(transient)
	assert.Equal(t, tripped, d.last().At)
	d.requireRetryAfter(firstBreak)
}

// One that is further behind means that the clock was set back: time goes on from the last reading.
func TestClockSetBack(t *testing.T) {
	for _, by := range []time.Duration{time.Second + 1, 10 * time.Minute, 1000 * time.Hour} {
		t.Run(by.String(), func(t *testing.T) {
			d := drive(t, breaker.Settings{})
			d.trip()
			for left := 15 * time.Second; left > 5*time.Second; left -= 5 * time.Second {
				d.requireRetryAfter(left)
				d.back(by)
				d.requireRetryAfter(left)
				d.clock.Add(5 * time.Second)
			}
			d.requireRetryAfter(5 * time.Second)
			d.clock.Add(5 * time.Second)
			d.requireState(breaker.HalfOpen)
		})
	}
}

// The time of an event is the breaker's: never before the event that came first.
func TestClockSetBackKeepsTheOrderOfEvents(t *testing.T) {
	d := drive(t, breaker.Settings{})
	d.trip()
	d.clock.Add(firstBreak)
	d.permit().Release()
	d.back(time.Hour)
	d.report(transient)
	d.back(time.Hour)
	d.Reset()
	for i, c := range d.changes[1:] {
		assert.False(t, c.At.Before(d.changes[i].At), "change %d", i+1)
	}
	assert.Len(t, d.changes, 4)
}

// A window must not keep its calls for as long as the clock was set back.
func TestClockSetBackWhileClosed(t *testing.T) {
	d := drive(t, breaker.Settings{})
	d.report(transient, success)
	d.back(24 * time.Hour)
	assert.Equal(t, 2, d.Snapshot().Counts.Calls)
	d.report(success)
	d.clock.Add(30*time.Second - 1)
	assert.Equal(t, 3, d.Snapshot().Counts.Calls)
	d.clock.Add(1)
	assert.Zero(t, d.Snapshot().Counts.Calls)
}

// A leap forward is time that has passed, as after a laptop woke up.
func TestClockLeapsForward(t *testing.T) {
	d := drive(t, breaker.Settings{})
	d.trip()
	d.clock.Add(200 * 365 * 24 * time.Hour)
	d.requireState(breaker.HalfOpen)
	d.report(success, success)
	d.requireState(breaker.Closed)
}

// A negative latency counts as zero. In the histogram it was once taken for the longest there is: one wrong measurement of a
// caller, or a clock set back during a call, and nothing was slow any more.
func TestRegression_NegativeLatencyCountsAsZero(t *testing.T) {
	for name, call := range map[string]func(*driven){
		"measured by the caller": func(d *driven) { d.permit().RecordLatency(success, -time.Hour) },
		"clock set back during the call": func(d *driven) {
			_ = d.Execute(d.t.Context(), func(context.Context) error { d.back(time.Hour); return nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := drive(t, breaker.Settings{SlowCallThreshold: time.Second})
			for range 20 {
				call(d)
			}
			s := d.Snapshot()
			assert.Equal(t, time.Microsecond, s.NormalLatency)
			assert.Zero(t, s.Totals.Slow)
		})
	}
}

// countingClock counts how often it is read.
type countingClock struct {
	breaker.Clock
	reads int
}

func (c *countingClock) Since(t time.Time) time.Duration { c.reads++; return c.Clock.Since(t) }
func (c *countingClock) Now() time.Time                  { c.reads++; return c.Clock.Now() }

// With nothing to measure, a success costs no reading of the clock.
func TestClockIsReadOnlyForWhatIsConfigured(t *testing.T) {
	off := breaker.Settings{Failures: breaker.Failures{Off: true}, SlowCalls: breaker.SlowCalls{Off: true}}
	for _, test := range []struct {
		name   string
		change func(*breaker.Settings)
		want   int // readings for each success
	}{
		{"consecutive failures alone", func(*breaker.Settings) {}, 0},
		{"a failure ratio", func(s *breaker.Settings) { s.FailureRatio = 0.5 }, 1},
		{"a slow threshold", func(s *breaker.Settings) { s.SlowCallThreshold = time.Second }, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := &countingClock{Clock: drive(t, off).clock}
			s := off
			s.Clock = c
			test.change(&s)
			b := breaker.MustNewClassic(s)
			c.reads = 0
			for range 10 {
				require.NoError(t, b.Execute(t.Context(), func(context.Context) error { return nil }))
				p, err := b.TryAcquire(t.Context())
				require.NoError(t, err)
				p.Record(success)
			}
			assert.Equal(t, 20*test.want, c.reads)
		})
	}
}

// A break that ends after the end of time is a break without an end.
func TestLongestBreak(t *testing.T) {
	const longest = time.Duration(1<<63 - 1)
	d := drive(t, breaker.Settings{BreakDuration: longest})
	d.clock.Add(time.Hour)
	d.trip()
	d.requireRetryAfter(longest - time.Hour)
	d.clock.Add(60 * 365 * 24 * time.Hour)
	d.requireState(breaker.Open)
	assert.Positive(t, d.Snapshot().RetryAfter)
	d.Reset()
	d.trip()
	d.requireState(breaker.Open)
}

// A leap of 73 years took the breaker's time to its very end, and there it stood for good: no break ended. However a clock leaps, time
// goes on at its pace behind it.
func TestRegression_TimeGoesOnBehindEveryLeap(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for name, leaps := range map[string][]time.Duration{
		"73 years": {73 * year}, "74 years": {74 * year}, "200 years": {200 * year}, "290 years": {290 * year},
		"there and back": {200 * year, -200 * year}, "back and there": {-200 * year, 200 * year},
		"again and again": {73 * year, 73 * year, 73 * year, -150 * year, 150 * year, -250 * year, 290 * year},
		"in small steps":  slices.Repeat([]time.Duration{year}, 200),
	} {
		t.Run(name, func(t *testing.T) {
			d := drive(t, breaker.Settings{})
			for _, leap := range leaps {
				d.clock.Set(d.clock.Now().Add(leap))
				d.Snapshot() // reads it
			}
			d.trip()
			d.requireRetryAfter(firstBreak)
			d.clock.Add(firstBreak - 1)
			d.requireState(breaker.Open)
			d.clock.Add(1)
			d.requireState(breaker.HalfOpen)
			d.report(success, success)
			d.requireState(breaker.Closed)
			assert.False(t, d.last().At.Before(d.changes[0].At))
		})
	}
}

// Each leap is time that has passed, for which there is always some left: a break ends with the tenth as with the first.
func TestRegression_EveryLeapEndsTheBreak(t *testing.T) {
	const leap = 200 * 365 * 24 * time.Hour
	d := drive(t, breaker.Settings{})
	for range 10 {
		d.trip()
		d.clock.Set(d.clock.Now().Add(leap))
		d.requireState(breaker.HalfOpen)
		d.report(success, success)
		d.clock.Set(d.clock.Now().Add(-leap))
		d.Snapshot() // reads it
	}
}
