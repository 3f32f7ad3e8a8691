package breaker

import (
	"cmp"
	"fmt"
	"math"
	"time"
)

// Validate returns nil, or a *[SettingsError] with every problem: written values outside their range, also of trips that are
// off; contradictions between two fields; baselines that would take an incident for normal before the trip window has filled;
// and settings that trip on nothing.
func (s Settings) Validate() error {
	var c checker
	c.trips(&s)
	c.breaks(&s)
	c.waits(&s)
	d := s.WithDefaults()
	c.failureRace(&s, &d)
	c.latencyRace(&s, &d)
	if d.ConsecutiveFailures == Disabled && !d.judgesRatios() {
		c.add("Settings.ConsecutiveFailures", s.ConsecutiveFailures,
			"every trip is off: turn on one of ConsecutiveFailures, FailureRatio, Failures, SlowCallThreshold and SlowCalls")
	}
	return c.err()
}

// checker collects problems.
type checker struct{ problems []Problem }

func (c *checker) add(field string, value any, format string, args ...any) {
	c.problems = append(c.problems, Problem{field, value, fmt.Sprintf(format, args...)})
}

func (c *checker) err() error {
	if len(c.problems) == 0 {
		return nil
	}
	return &SettingsError{c.problems}
}

// sound reports whether none of the fields has a problem yet, so that a conflict between them can be judged.
func (c *checker) sound(fields ...string) bool {
	for _, p := range c.problems {
		for _, f := range fields {
			if p.Field == f {
				return false
			}
		}
	}
	return true
}

// notNegative checks a number of which 0 means the default.
func notNegative[T cmp.Ordered](c *checker, field string, v T) {
	var zero T
	if v < zero {
		c.add(field, v, "must not be negative")
	}
}

// orDisabled checks a number of which 0 means the default and Disabled means off.
func orDisabled[T int | time.Duration](c *checker, field string, v T) {
	if v < 0 && v != Disabled {
		c.add(field, v, "must be positive, 0 for the default, or Disabled")
	}
}

// upTo checks a number in (0, limit], or 0 for what zero means.
func (c *checker) upTo(field string, v, limit float64, zero string) {
	if !(v >= 0 && v <= limit) {
		c.add(field, v, "must be in (0, %v], or 0 for %s", limit, zero)
	}
}

// multiple checks a factor above 1, or 0 for the default.
func (c *checker) multiple(field string, v float64) {
	if v != 0 && !(v > 1 && v <= math.MaxFloat64) {
		c.add(field, v, "must be a finite number greater than 1, or 0 for the default")
	}
}

func (c *checker) known(field string, e *enum, v uint8, value any) {
	if !e.has(v) {
		c.add(field, value, "must be one of %v", e.texts)
	}
}

func (c *checker) trips(s *Settings) {
	orDisabled(c, "Settings.ConsecutiveFailures", s.ConsecutiveFailures)
	c.upTo("Settings.FailureRatio", s.FailureRatio, 1, "off")
	c.multiple("Failures.Multiple", s.Failures.Multiple)
	notNegative(c, "Failures.Window", s.Failures.Window)
	notNegative(c, "Failures.MinSamples", s.Failures.MinSamples)
	c.upTo("Failures.Floor", s.Failures.Floor, 1, "the default")
	c.falseAlarms("Failures.FalseAlarmEvery", s.Failures.FalseAlarmEvery)
	notNegative(c, "Settings.MinCalls", s.MinCalls)
	if s.Window != 0 && s.Window < time.Millisecond {
		c.add("Settings.Window", s.Window, "must be at least 1ms, or 0 for the default")
	}
	notNegative(c, "Settings.SlowCallThreshold", s.SlowCallThreshold)
	c.multiple("SlowCalls.Multiple", s.SlowCalls.Multiple)
	c.upTo("SlowCalls.Quantile", s.SlowCalls.Quantile, 0.5, "the default")
	notNegative(c, "SlowCalls.Window", s.SlowCalls.Window)
	notNegative(c, "SlowCalls.MinSamples", s.SlowCalls.MinSamples)
	c.tailQuantile(s.SlowCalls)
	c.falseAlarms("SlowCalls.FalseAlarmEvery", s.SlowCalls.FalseAlarmEvery)
	orDisabled(c, "SlowCalls.Floor", s.SlowCalls.Floor)
	c.upTo("Settings.SlowCallRatio", s.SlowCallRatio, 1, "the default")
}

func (c *checker) falseAlarms(field string, every time.Duration) {
	if every != 0 && every != Disabled && every < time.Hour {
		c.add(field, every, "must be at least 1h0m0s, 0 for the default, or Disabled")
	}
}

func (c *checker) tailQuantile(s SlowCalls) {
	setDefault(&s.Quantile, 0.5)
	if t := s.TailQuantile; t != 0 && !(t > 0 && t < 1) {
		c.add("SlowCalls.TailQuantile", t, "must be in (SlowCalls.Quantile, 1), or 0 for off")
	} else if t != 0 && t <= s.Quantile && c.sound("SlowCalls.Quantile") {
		c.add("SlowCalls.TailQuantile", t, "must be greater than SlowCalls.Quantile, which is %v, or 0 for off", s.Quantile)
	}
}

func (c *checker) breaks(s *Settings) {
	notNegative(c, "Settings.BreakDuration", s.BreakDuration)
	notNegative(c, "Settings.MaxBreakDuration", s.MaxBreakDuration)
	if s.MaxBreakDuration > 0 && s.BreakDuration > s.MaxBreakDuration {
		c.add("Settings.BreakDuration", s.BreakDuration, "must not exceed Settings.MaxBreakDuration, which is %v", s.MaxBreakDuration)
	}
	c.known("Settings.BreakJitter", &jitters, uint8(s.BreakJitter), s.BreakJitter)
	notNegative(c, "Settings.HalfOpenProbes", s.HalfOpenProbes)
	notNegative(c, "Settings.ProbeSuccesses", s.ProbeSuccesses)
	notNegative(c, "Settings.ProbeCohort", s.ProbeCohort)
	orDisabled(c, "Settings.ProbeTimeout", s.ProbeTimeout)
	c.recovery(s.Recovery)
}

func (c *checker) recovery(r Recovery) {
	if !(r.Fraction >= 0 && r.Fraction <= math.MaxFloat64) {
		c.add("Recovery.Fraction", r.Fraction, "must be a positive finite number, or 0 for a ramp by evidence alone")
	}
	if r.Initial != 0 && !(r.Initial > 0 && r.Initial < 1) {
		c.add("Recovery.Initial", r.Initial, "must be in (0, 1), or 0 for the default")
	}
	notNegative(c, "Recovery.Min", r.Min)
	notNegative(c, "Recovery.Max", r.Max)
	if r.Max > 0 && r.Min > r.Max {
		c.add("Recovery.Min", r.Min, "must not exceed Recovery.Max, which is %v", r.Max)
	}
	if r.Fraction == 0 && !r.Off && (r.Min != 0 || r.Max != 0) {
		c.add("Recovery.Fraction", r.Fraction, "no length, yet Recovery.Min or Recovery.Max is written: set Fraction as well")
	}
}

func (c *checker) waits(s *Settings) {
	c.known("Settings.WhenOpen", &whenOpens, uint8(s.WhenOpen), s.WhenOpen)
	orDisabled(c, "Settings.MaxWait", s.MaxWait)
	notNegative(c, "Settings.MaxWaiting", s.MaxWaiting)
	notNegative(c, "Settings.RejectionDelay", s.RejectionDelay)
}

// failureRace checks that the failure baseline outlives the trip window, for settings s that read d with defaults.
func (c *checker) failureRace(s, d *Settings) {
	if d.Failures.Off ||
		!c.sound("Settings.Window", "Failures.Multiple", "Failures.Window", "Failures.FalseAlarmEvery") {
		return
	}
	left, lasts := "Failures.Window / Failures.Multiple", float64(d.Failures.Window)/d.Failures.Multiple
	resolve := "raise Failures.Window, or lower Failures.Multiple or Settings.Window"
	if d.testsFailures() {
		left, lasts = "Failures.Window", float64(d.Failures.Window)
		resolve = "raise Failures.Window or lower Settings.Window"
	}
	need := d.Failures.need(d.Window)
	if s.Failures.Window == 0 {
		c.derived("Failures.Window", s.Failures.Window, need, resolve)
	} else if float64(d.Failures.Window) < need {
		c.lost("Failures.Window", d.Failures.Window, left, lasts, "2 × Settings.Window", 2*float64(d.Window), resolve)
	}
}

// latencyRace checks that the latency baseline outlives the trip window, for settings s that read d with defaults: that the
// share of it which an incident must fill to move a quantile takes long enough to fill.
func (c *checker) latencyRace(s, d *Settings) {
	if d.SlowCalls.Off || !c.sound("Settings.Window", "Settings.SlowCallRatio",
		"SlowCalls.Quantile", "SlowCalls.TailQuantile", "SlowCalls.Window") {
		return
	}
	tail := d.SlowCalls.TailQuantile
	if tail != 0 && tail+d.SlowCallRatio/2 < 1 {
		c.add("SlowCalls.TailQuantile", tail,
			"1 − TailQuantile must be at most half of Settings.SlowCallRatio, which is %v: raise either", d.SlowCallRatio)
	}
	left, share := "SlowCalls.Quantile × SlowCalls.Window", d.SlowCalls.Quantile
	resolve := "raise SlowCalls.Window, or lower Settings.SlowCallRatio or Settings.Window"
	if tail != 0 && 1-tail < share {
		left, share = "(1 − SlowCalls.TailQuantile) × SlowCalls.Window", 1-tail
	}
	need := d.SlowCalls.need(d.Window, d.SlowCallRatio)
	if s.SlowCalls.Window == 0 {
		c.derived("SlowCalls.Window", s.SlowCalls.Window, need, resolve)
	} else if float64(d.SlowCalls.Window) < need {
		c.lost("SlowCalls.Window", d.SlowCalls.Window, left, share*float64(d.SlowCalls.Window),
			"2 × Settings.SlowCallRatio × Settings.Window", 2*d.SlowCallRatio*float64(d.Window), resolve)
	}
}

// lost adds the problem of a baseline that loses its race.
func (c *checker) lost(field string, value any, left string, lasts float64, right string, needs float64, resolve string) {
	c.add(field, value, "the baseline would absorb an incident before it trips: %s is %s, %s is %s: %s",
		left, seconds(lasts), right, seconds(needs), resolve)
}

// derived checks that an unwritten baseline window may be derived for a trip that is configured in part.
func (c *checker) derived(field string, value any, need float64, resolve string) {
	if need > float64(maxDerivedWindow) {
		c.add(field, value, "the settings need %s, more than is derived (%s): write it, or %s",
			seconds(need), seconds(float64(maxDerivedWindow)), resolve)
	}
}

// seconds formats nanoseconds as seconds.
func seconds(ns float64) string { return fmt.Sprintf("%.6g s", ns/float64(time.Second)) }
