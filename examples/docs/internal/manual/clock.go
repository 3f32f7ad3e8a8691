// Package manual is a clock for programs that replay hours of calls in a moment. Unlike a mock of
// github.com/benbjohnson/clock it wakes nobody, so moving it costs nothing.
package manual

import "time"

// Clock is a time that moves when Advance is called. The zero value is ready. It is not safe for concurrent use.
type Clock struct{ elapsed time.Duration }

// Advance moves the clock on.
func (c *Clock) Advance(d time.Duration) { c.elapsed += d }

// Now returns the time.
func (c *Clock) Now() time.Time { return time.Unix(0, 0).Add(c.elapsed) }

// Since returns how long t is ago.
func (c *Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// After returns a channel on which nothing ever comes: these programs do not wait.
func (c *Clock) After(time.Duration) <-chan time.Time { return nil }
