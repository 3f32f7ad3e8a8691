package main

import "time"

// scenario is what happens to a dependency: how long it is healthy, browns out and fails, and how long it is watched after that.
type scenario struct {
	healthy   time.Duration
	brownout  time.Duration // slow, and every answer still a 200
	failing   time.Duration // every answer a 503
	restarted time.Duration // back, with little capacity
}

// story is long enough for the breaker to learn what is normal, and for a cold server to warm up.
var story = scenario{healthy: 7 * time.Second, brownout: 6 * time.Second, failing: 5 * time.Second, restarted: 20 * time.Second}

// phase is a part of a scenario.
type phase string

const (
	healthy   phase = "healthy"
	brownout  phase = "brownout"
	failing   phase = "failing"
	restarted phase = "restarted"
)

// at returns the phase after a time; the last one goes on.
func (s scenario) at(elapsed time.Duration) phase {
	switch {
	case elapsed < s.healthy:
		return healthy
	case elapsed < s.healthy+s.brownout:
		return brownout
	case elapsed < s.back():
		return failing
	default:
		return restarted
	}
}

// back returns when the dependency stops failing.
func (s scenario) back() time.Duration { return s.healthy + s.brownout + s.failing }

// length returns the time from the start to the end.
func (s scenario) length() time.Duration { return s.back() + s.restarted }
