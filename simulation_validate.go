package breaker

import (
	"errors"
	"fmt"
	"math"
	"time"
)

const (
	maxEvents   = 100_000_000
	maxBreakers = 1_000_000 // each is a real one, of about 4 KiB
)

// validate returns nil, or a *SettingsError with every problem of the model, the load and the settings.
func (s Simulation) validate() error {
	var c checker
	if err, ok := errors.AsType[*SettingsError](s.Settings.Validate()); ok {
		c.problems = append(c.problems, err.Problems...)
	}
	c.dependency(&s.Dependency)
	for i, incident := range s.Dependency.Incidents {
		c.incident(fmt.Sprintf("Incidents[%d]", i), incident)
	}
	if !(s.Load.PerSecond > 0 && s.Load.PerSecond <= math.MaxFloat64) {
		c.add("Load.PerSecond", s.Load.PerSecond, "must be a positive finite number")
	}
	if s.Breakers < 0 || s.Breakers > maxBreakers {
		c.add("Simulation.Breakers", s.Breakers, "must be from 1 to %d, or 0 for 1", maxBreakers)
	}
	notNegative(&c, "Simulation.Timeout", s.Timeout)
	positive(&c, "Simulation.Duration", s.Duration)
	c.events(&s)
	return c.err()
}

// positive checks a duration that has no default.
func positive(c *checker, field string, d time.Duration) {
	if d <= 0 {
		c.add(field, d, "must be positive")
	}
}

func (c *checker) dependency(d *Dependency) {
	positive(c, "Dependency.P50", d.P50)
	notNegative(c, "Dependency.P99", d.P99)
	if d.P99 > 0 && d.P99 < d.P50 {
		c.add("Dependency.P99", d.P99, "must not be below Dependency.P50, which is %v", d.P50)
	}
	c.fraction("Dependency.FailureRate", d.FailureRate)
	notNegative(c, "Dependency.Capacity", d.Capacity)
	notNegative(c, "Dependency.Warmup", d.Warmup)
	if d.Warmup > 0 && d.Capacity == 0 {
		c.add("Dependency.Warmup", d.Warmup, "needs Dependency.Capacity, which is 0, unlimited")
	}
}

func (c *checker) incident(name string, i Incident) {
	notNegative(c, name+".After", i.After)
	positive(c, name+".For", i.For)
	if i.Slower != 0 && !(i.Slower >= 1 && i.Slower <= math.MaxFloat64) {
		c.add(name+".Slower", i.Slower, "must be a finite number of at least 1, or 0 for 1")
	}
	c.fraction(name+".Failing", i.Failing)
}

func (c *checker) fraction(field string, v float64) {
	if !(v >= 0 && v <= 1) {
		c.add(field, v, "must be in [0, 1]")
	}
}

// events checks the length of the run: a typing error in a load must not look like a hang.
func (c *checker) events(s *Simulation) {
	if !c.sound("Load.PerSecond", "Simulation.Breakers", "Simulation.Duration") {
		return
	}
	if n := s.expectedEvents(); n > maxEvents {
		c.add("Simulation.Duration", s.Duration, "the run is expected to take %.4g million events, two for each call and one a "+
			"second for each breaker, and at most %d million are run: lower Duration, Load.PerSecond (%v) or Breakers (%d)",
			n/1e6, maxEvents/1_000_000, s.Load.PerSecond, max(1, s.Breakers))
	}
}

func (s *Simulation) expectedEvents() float64 {
	seconds := s.Duration.Seconds()
	return float64(max(1, s.Breakers)) * (2*s.Load.PerSecond*seconds + math.Ceil(seconds))
}
