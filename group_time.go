package breaker

import "time"

// How a group keeps the time.

// longestLeap is what a reading of the clock counts for that is further ahead of the last: time must not run out.
const longestLeap = 366 * 24 * time.Hour

// base is a moment from which a clock is counted.
type base struct {
	at    time.Time     // by the clock
	stamp time.Duration // the group's time
}

// stamp returns the group's time, which never goes back. It is made distinct where the clock may stand still, as a fake one
// does: the order of stamps is the order of being asked for.
func (g *Group[K]) stamp() int64 {
	if g.ticks {
		return int64(time.Since(g.made))
	}
	now := g.reading()
	for {
		last := g.last.Load()
		stamp := int64(max(now, later(time.Duration(last), 1)))
		if g.last.CompareAndSwap(last, stamp) {
			return stamp
		}
	}
}

// reading reads a clock that may be set. After a jump, time goes on from the last stamp, and the clock is counted anew. The last
// stamp is loaded before the clock is read, so a reading behind it is never just late; if another has counted anew meanwhile,
// its word stands.
func (g *Group[K]) reading() time.Duration {
	from, last := g.base.Load(), time.Duration(g.last.Load())
	now := later(g.bounds.Clock.Since(from.at), from.stamp)
	latest := later(last, longestLeap)
	if now >= last-setBack && now <= latest {
		return now
	}
	now = min(max(now, last), latest)
	g.base.CompareAndSwap(from, &base{g.bounds.Clock.Now(), now})
	return now
}
