package breaker

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// racingClock is a clock during whose reading something else may happen: what it has read is late then.
type racingClock struct {
	handClock
	reads     int
	meanwhile func()
}

func (c *racingClock) Since(t time.Time) time.Duration {
	c.reads++
	reading := c.handClock.Since(t)
	if f := c.meanwhile; f != nil {
		c.meanwhile = nil
		f()
	}
	return reading
}

func (c *racingClock) After(d time.Duration) <-chan time.Time {
	alarm := make(chan time.Time, 1)
	if d == 0 {
		alarm <- c.Now()
	}
	return alarm
}

// A goroutine that is held up between its reading of the clock and the lock brings a reading that is far behind. That is no clock
// set back, and nobody need read it again to see that.
func TestLateReadingIsNoClockSetBack(t *testing.T) {
	for _, late := range []time.Duration{1, time.Second, time.Second + 1, 5 * time.Second, time.Hour} {
		t.Run(late.String(), func(t *testing.T) {
			c := new(racingClock)
			s := brittle(c)
			s.BreakDuration = 2 * time.Hour
			b := MustNewClassic(s)
			c.advance(time.Minute)
			trip(t, b)
			c.meanwhile = func() {
				c.advance(late)
				b.Snapshot()
				c.reads = 0
			}
			wait, ok := b.RetryAfter()
			require.True(t, ok)
			assert.Equal(t, 2*time.Hour-late, wait)
			assert.Zero(t, c.reads)
			c.advance(time.Second)
			wait, _ = b.RetryAfter()
			assert.Equal(t, 2*time.Hour-late-time.Second, wait, "time goes on at its pace")
		})
	}
}

// A caller that waits asks, is refused, and then finds out when to ask again. What came in between was no reason to ask: a ramp
// that ended, or a call in it that had become too old. With nobody else calling it waited for as long as that lasted.
func TestRegression_WhatTimeBringsBetweenAskingAndWaiting(t *testing.T) {
	for name, s := range map[string]struct {
		recovery Recovery
		timeout  time.Duration
		until    time.Duration // from the admission of the call in flight
	}{
		"end of the ramp":      {Recovery{Fraction: 1}, time.Hour, 10 * time.Second},
		"call that is too old": {Recovery{Fraction: 5, Max: time.Hour}, 10 * time.Second, 10 * time.Second},
	} {
		for _, past := range []time.Duration{0, 1, time.Second} {
			t.Run(name+" "+past.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := new(racingClock)
					set := brittle(c)
					set.Recovery, set.ProbeTimeout, set.MaxWait = s.recovery, s.timeout, Disabled
					b := MustNewClassic(set)
					trip(t, b)
					c.advance(10 * time.Second)
					pass(t, b)
					ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
					defer cancel()
					_, err := b.Acquire(ctx) // is in flight, and holds back whoever waits
					require.NoError(t, err)
					c.advance(s.until - 1)
					c.meanwhile = func() { c.advance(1 + past) } // the reading of the newcomer is the last before it
					_, err = b.Acquire(ctx)
					assert.NoError(t, err)
				})
			})
		}
	}
}
