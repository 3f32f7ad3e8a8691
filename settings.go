package breaker

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"
)

// Disabled turns off Settings.ConsecutiveFailures, Settings.ProbeTimeout or Settings.MaxWait. Anywhere else it is a problem.
const Disabled = -1

// Clock is where a breaker gets its time from. clock.New() and *clock.Mock of github.com/benbjohnson/clock satisfy it. It is
// never asked under a lock of the breaker.
type Clock interface {
	Now() time.Time
	Since(time.Time) time.Duration
	After(time.Duration) <-chan time.Time
}

// WhenOpen is what [Breaker.Execute] and its siblings do with a call that the breaker does not admit at once. The zero value
// is [Reject].
type WhenOpen uint8

const (
	// Reject refuses the call with a [RejectedError].
	Reject WhenOpen = iota
	// Wait waits for admission, as [Breaker.Acquire] does.
	Wait
)

var whenOpens = enum{"WhenOpen", []string{"reject", "wait"}}

// String returns the text: reject or wait.
func (w WhenOpen) String() string { return whenOpens.text(uint8(w)) }

// MarshalText returns the text of String. An unknown value is an error.
func (w WhenOpen) MarshalText() ([]byte, error) { return whenOpens.marshal(uint8(w)) }

// UnmarshalText reads the text of String. Unknown text is an error and leaves the value as it was.
func (w *WhenOpen) UnmarshalText(text []byte) error {
	v, err := whenOpens.parse(text)
	if err == nil {
		*w = WhenOpen(v)
	}
	return err
}

// Settings configure a breaker. The zero value is a good breaker: it opens on five failures in a row, on five times the
// dependency's own measured error rate and on calls three times slower than its own measured latency. A field left zero has
// the default in its comment; a written value outside its range, also of a trip that is off, makes [New] fail.
//
// Settings marshal to JSON and back with snake_case keys and durations as text; functions, Monitor and Clock are left out.
type Settings struct {
	// Name stands in errors, events and snapshots.
	Name string

	// ConsecutiveFailures opens the circuit after so many transient failures in a row, however far apart. 0: 5. [Disabled]: off.
	ConsecutiveFailures int
	// FailureRatio opens the circuit when failures / calls in the trip window reach it, in (0, 1]. 0: off.
	FailureRatio float64
	// Failures opens the circuit on a multiple of the dependency's own measured failure rate. Zero value: on, 5 times normal.
	Failures Failures
	// MinCalls is how many calls the trip window needs before a ratio is judged, at least 1. 0: 20.
	MinCalls int
	// Window is the length of the trip window, at least 1 ms. It moves on in tenths. 0: 30 s.
	Window time.Duration
	// SlowCallThreshold makes every call slow that takes strictly longer. 0: no constant threshold.
	SlowCallThreshold time.Duration
	// SlowCalls makes a call slow that takes a multiple of the dependency's own measured latency. Where a constant is set as
	// well, the lower of the two holds. Zero value: on, 3 times normal.
	SlowCalls SlowCalls
	// SlowCallRatio opens the circuit when slow / calls in the trip window reach it, in (0, 1]. 0: 0.5.
	SlowCallRatio float64

	// BreakDuration is the first break. It doubles with every further open in a row. 0: 15 s, or MaxBreakDuration if that is shorter.
	BreakDuration time.Duration
	// MaxBreakDuration caps the growing break. 0: 2 min, or BreakDuration if that is longer.
	MaxBreakDuration time.Duration
	// BreakJitter spreads the break, so that a fleet does not probe in one pulse. Zero value: [JitterEqual].
	BreakJitter Jitter
	// BreakDurationFunc replaces the break just begun, for example by the Retry-After that the failure carried. The circuit is
	// open already, for the break it would serve anyway. The function is asked once per open, outside every lock, before any
	// observer hears of the change; its context carries the values of the call that opened the circuit, not its cancellation.
	// Its answer counts from the moment of opening and is taken as it is: not grown, jittered or capped. It is dropped when
	// that open is over by then. An error, a panic or a duration that is not positive goes to OnCallbackError, and the
	// computed break stands. Events wait behind it, so it should be quick. nil: the computed break.
	BreakDurationFunc func(context.Context, StateChange) (time.Duration, error)

	// HalfOpenProbes is how many probes may be in flight at once, at least 1. 0: 1.
	HalfOpenProbes int
	// ProbeSuccesses is how many probes must succeed before the circuit closes or ramps, and how many fast calls in a row raise
	// the evidence of a ramp by Recovery.Initial, at least 1. 0: 2.
	ProbeSuccesses int
	// ProbeCohort judges so many probes together, in place of HalfOpenProbes and ProbeSuccesses: probes that counted and probes
	// in flight never exceed it. The circuit re-opens as soon as failures / ProbeCohort reach FailureRatio (on any failure when
	// that is off) or, without a ramp, slow / ProbeCohort reach SlowCallRatio. 0: off.
	ProbeCohort int
	// ProbeTimeout is how long a probe may be in flight before the circuit re-opens, so that no forgotten permit and no call
	// that hangs can wedge the breaker. 0: MaxBreakDuration, and at least ten times the normal latency as last measured when the
	// circuit opened. [Disabled]: never.
	ProbeTimeout time.Duration
	// Recovery hands the load back along a ramp. Zero value: all at once.
	Recovery Recovery

	// WhenOpen is what Execute and its siblings do when the breaker does not admit the call at once. Zero value: [Reject].
	WhenOpen WhenOpen
	// MaxWait bounds a wait for admission; then the call is refused. 0: 5 min. [Disabled]: only the context ends a wait.
	MaxWait time.Duration
	// MaxWaiting is how many callers may wait at once; the next one is refused. 0: no limit.
	MaxWaiting int
	// RejectionDelay delays a refusal that Execute and its siblings return, so that a caller in a tight loop cannot spin. The
	// context ends the delay; the refusal is still what is returned. Not after a wait. 0: off.
	RejectionDelay time.Duration
	// ObserveOnly is a dry run: the breaker changes state and tells of it but admits every call at once, also while isolated.
	// Calls it would have refused count in Totals.Rejected and their outcomes are not sampled.
	ObserveOnly bool

	// Classify tells what an error says about the dependency. It is not asked about nil, about calls whose context was
	// cancelled, about errors with a [Mark], or about refusals of another breaker. It is called from the goroutine of the call,
	// outside every lock; if it panics the error is [Transient]. nil: every error is Transient.
	Classify func(error) Outcome
	// OnStateChange hears of every change of state, exactly once and in order, outside every lock, one at a time for a
	// breaker. The call that caused the change waits for it, unless another call is delivering: then that one delivers it next.
	// It may call anything on any breaker. Its context carries the values of the call that caused the change, not its
	// cancellation; for Isolate and Reset it is empty.
	OnStateChange func(context.Context, StateChange)
	// OnCallbackError hears of functions given to the breaker that failed, and of faults of the breaker itself. Its own panic
	// is swallowed. nil: slog.Default logs it.
	OnCallbackError func(context.Context, *CallbackError)
	// Monitor watches this breaker among others.
	Monitor *Monitor
	// Clock gives the time. nil: clock.New() of github.com/benbjohnson/clock.
	Clock Clock
	// Random gives the numbers for jitter, in [0, 1). It must be safe for concurrent use; what it gives beyond is clamped. It
	// is asked outside every lock. nil: Float64 of math/rand/v2.
	Random func() float64
}

// Failures configure the failure trip that compares with the dependency's own measured failure rate: at least two failures,
// and failures / calls in the trip window ≥ min(1, max(Floor, Multiple × rate)). With FalseAlarmEvery a sequential test decides.
type Failures struct {
	// Multiple of the measured rate, greater than 1. 0: 5.
	Multiple float64
	// Window is what the rate is measured over, at least 2 × Multiple × Settings.Window: a shorter one would take the incident
	// for normal before the trip window has filled. 0: 5 min, or what that rule needs plus 1 s; where it needs more than an
	// hour, a trip of which no field is written is off.
	Window time.Duration
	// MinSamples is how many outcomes the rate needs, at least 1. 0: 100.
	MinSamples int
	// Floor is the lowest ratio that can trip, in (0, 1], so that a dependency without errors does not trip on two. 0: 0.05.
	Floor float64
	// FalseAlarmEvery judges failures by a sequential test instead, which opens the circuit on a dependency as it has always
	// been no more than about once in this time, at least 1 h, and notices a change as soon as that allows. MinCalls and the
	// two failures do not apply; Window need only be 2 × Settings.Window; and while the test is armed, a ConsecutiveFailures
	// that is not written rises with the measured rate (WithDefaults and Breaker.Settings write it: a breaker made from what
	// they return keeps to 5). It assumes outcomes independent of each other. 0: off.
	FalseAlarmEvery time.Duration
	// Off turns off the trip and its measurement.
	Off bool
}

// SlowCalls configure the slow threshold that compares with the dependency's own measured latency: Multiple × the Quantile of
// its successful calls over Window, but never below their TailQuantile, where that is set.
type SlowCalls struct {
	// Multiple of the measured quantile, greater than 1. 0: 3.
	Multiple float64
	// Quantile of successful latency that is taken for normal, in (0, 0.5]. 0: 0.5.
	Quantile float64
	// Window is what latency is measured over: Quantile × Window must be at least 2 × SlowCallRatio × Settings.Window, or the
	// measurement would take the incident for normal before the trip window has filled. 0: 5 min, or what that rule needs plus
	// 1 s; where it needs more than an hour, a trip of which no field is written is off.
	Window time.Duration
	// MinSamples is how many successes the quantile needs, at least 1. 0: 20.
	MinSamples int
	// TailQuantile keeps the threshold from falling below a second measured quantile, in (Quantile, 1), so that a dependency
	// with two humps of latency, such as a cache and a disk, is not slow while it is healthy. 1 − TailQuantile must be at most
	// SlowCallRatio / 2, and (1 − TailQuantile) × Window at least 2 × SlowCallRatio × Settings.Window. 0.75 suits a
	// SlowCallRatio of 0.5. 0: off.
	TailQuantile float64
	// Overdue counts a call as slow as soon as it has been in flight for longer than the threshold, to a tenth of
	// Settings.Window, so that the circuit opens while nothing returns. Every admission then takes the lock. false: off.
	Overdue bool
	// Off turns off the measurement and the threshold made from it.
	Off bool
}

const (
	defaultBaselineWindow = 5 * time.Minute
	maxDerivedWindow      = time.Hour
	derivedMargin         = time.Second
)

// WithDefaults returns the settings with every default number written out; nil functions and a nil Clock stay nil. It is
// idempotent, and what it returns is valid whenever s is. It shows the derived windows, and Off for a trip that steps aside.
func (s Settings) WithDefaults() Settings {
	setDefault(&s.ConsecutiveFailures, 5)
	setDefault(&s.MinCalls, 20)
	setDefault(&s.Window, 30*time.Second)
	setDefault(&s.SlowCallRatio, 0.5)
	s.Failures = s.Failures.withDefaults(s.Window)
	s.SlowCalls = s.SlowCalls.withDefaults(s.Window, s.SlowCallRatio)
	unwrittenMax := s.MaxBreakDuration == 0
	if s.BreakDuration == 0 {
		s.BreakDuration = 15 * time.Second
		if !unwrittenMax {
			s.BreakDuration = min(s.BreakDuration, s.MaxBreakDuration)
		}
	}
	if unwrittenMax {
		s.MaxBreakDuration = max(2*time.Minute, s.BreakDuration)
	}
	setDefault(&s.HalfOpenProbes, 1)
	setDefault(&s.ProbeSuccesses, 2)
	setDefault(&s.ProbeTimeout, s.MaxBreakDuration)
	s.Recovery = s.Recovery.withDefaults()
	setDefault(&s.MaxWait, 5*time.Minute)
	return s
}

func (f Failures) withDefaults(window time.Duration) Failures {
	mentioned := f != Failures{}
	setDefault(&f.Multiple, 5)
	setDefault(&f.MinSamples, 100)
	setDefault(&f.Floor, 0.05)
	if f.Window == 0 {
		f.Window, f.Off = derivedWindow(f.need(window), mentioned, f.Off)
	}
	return f
}

// need is the shortest window, in nanoseconds, that wins its race against the trip window. Windows are whole nanoseconds: what
// is less than half of one is rounding, which must not lose a race that is met exactly.
func (f Failures) need(window time.Duration) float64 {
	if f.FalseAlarmEvery > 0 {
		return 2 * float64(window)
	}
	return math.Round(2 * float64(window) * f.Multiple)
}

func (c SlowCalls) withDefaults(window time.Duration, slowCallRatio float64) SlowCalls {
	mentioned := c != SlowCalls{}
	setDefault(&c.Multiple, 3)
	setDefault(&c.Quantile, 0.5)
	setDefault(&c.MinSamples, 20)
	if c.Window == 0 {
		c.Window, c.Off = derivedWindow(c.need(window, slowCallRatio), mentioned, c.Off)
	}
	return c
}

// need is the shortest window, in nanoseconds, that wins its race against the trip window, rounded like that of Failures.
func (c SlowCalls) need(window time.Duration, slowCallRatio float64) float64 {
	share := c.Quantile
	if c.TailQuantile > 0 {
		share = min(share, 1-c.TailQuantile)
	}
	return math.Round(2 * slowCallRatio * float64(window) / share)
}

// derivedWindow returns the window of a baseline whose own is not written: long enough for its race. A trip that would need
// more than an hour and was not mentioned steps aside.
func derivedWindow(need float64, mentioned, off bool) (time.Duration, bool) {
	switch {
	case need <= float64(defaultBaselineWindow):
		return defaultBaselineWindow, off
	case need <= float64(maxDerivedWindow):
		return time.Duration(need) + derivedMargin, off
	default:
		return defaultBaselineWindow, off || !mentioned
	}
}

// setDefault writes a default where nothing is written.
func setDefault[T comparable](field *T, value T) {
	var unwritten T
	if *field == unwritten {
		*field = value
	}
}

// measuresFailures and its siblings tell which parts of a breaker its settings, with defaults, pay for.
func (s *Settings) measuresFailures() bool { return !s.Failures.Off }
func (s *Settings) measuresLatency() bool  { return !s.SlowCalls.Off }
func (s *Settings) judgesSlowness() bool   { return s.SlowCallThreshold > 0 || s.measuresLatency() }
func (s *Settings) judgesRatios() bool {
	return s.FailureRatio > 0 || s.measuresFailures() || s.judgesSlowness()
}
func (s *Settings) ramps() bool { return s.Recovery.Fraction > 0 }

func (s *Settings) testsSequentially() bool {
	return s.measuresFailures() && s.Failures.FalseAlarmEvery > 0
}
func (s *Settings) seesOverdue() bool { return s.judgesSlowness() && s.SlowCalls.Overdue }

// slowLimit returns the slow threshold beside measured quantiles, 0 for unknown ones: the lower of those that exist, and the
// longest duration, which no call exceeds, where there is none.
func (s *Settings) slowLimit(measured quantiles) time.Duration {
	limit := noSlowLimit
	if s.SlowCallThreshold > 0 {
		limit = s.SlowCallThreshold
	}
	if measured.normal > 0 {
		limit = min(limit, max(scaled(float64(measured.normal), s.SlowCalls.Multiple), measured.tail))
	}
	return limit
}

const noSlowLimit = time.Duration(math.MaxInt64)

// Problem is one fault in [Settings] or [GroupSettings].
type Problem struct {
	Field   string // such as Settings.FailureRatio or SlowCalls.Quantile
	Value   any    // what was written there
	Message string // what it must be, and for a conflict the other field
}

// Error returns the field, its value and the message in one line.
func (p Problem) Error() string {
	return fmt.Sprintf("%s is %v: %s", p.Field, p.Value, p.Message)
}

// SettingsError lists every problem of some settings.
type SettingsError struct{ Problems []Problem }

// Error lists the problems, one a line if there are several.
func (e *SettingsError) Error() string {
	if len(e.Problems) == 1 {
		return "breaker: " + e.Problems[0].Error()
	}
	var s strings.Builder
	fmt.Fprintf(&s, "breaker: %d problems in the settings", len(e.Problems))
	for _, p := range e.Problems {
		s.WriteString("\n\t" + p.Error())
	}
	return s.String()
}

// Unwrap returns the problems, so that errors.As finds a [Problem].
func (e *SettingsError) Unwrap() []error {
	errs := make([]error, len(e.Problems))
	for i, p := range e.Problems {
		errs[i] = p
	}
	return errs
}
