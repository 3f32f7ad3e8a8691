package breaker

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"
)

// Disabled turns off Settings.ConsecutiveFailures, Settings.ProbeTimeout, Settings.MaxWait, the FalseAlarmEvery of Failures and
// SlowCalls, and SlowCalls.Floor. Anywhere else it is a problem.
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

// Settings configure a breaker. The zero value is the breaker to use where nothing is known about the dependency: two sequential
// tests notice failures and slowness that are abnormal for it, calls that hang included, and open the circuit where refusing is
// worth it; breaks follow the traffic; the load comes back by evidence. [Classic] has the fixed rules. A field left zero has the
// default in its comment; a written value outside its range, also of a trip that is off, makes [New] fail.
//
// Settings marshal to JSON and back with snake_case keys and durations as text; functions, Monitor and Clock are left out.
type Settings struct {
	// Name stands in errors, events and snapshots.
	Name string

	// ConsecutiveFailures opens the circuit after so many transient failures in a row, however far apart. 0: 5, and with
	// Failures.FalseAlarmEvery more where chance alone would bring five in a row: up to 14 from 10 calls/s on, more where failures
	// are common, and only in a row that lasts for 250 ms. [Disabled]: off.
	ConsecutiveFailures int
	// FailureRatio opens the circuit when failures / calls in the trip window reach it, in (0, 1]. 0: off.
	FailureRatio float64
	// Failures opens the circuit on failures that are abnormal for the dependency. Zero value: on, at most one false alarm in
	// 30 days.
	Failures Failures
	// MinCalls is how many calls the trip window needs before a ratio is judged, at least 1. 0: 20.
	MinCalls int
	// Window is the length of the trip window, at least 1 ms. It moves on in tenths. 0: 30 s.
	Window time.Duration
	// SlowCallThreshold makes every call slow that takes strictly longer. 0: no constant threshold.
	SlowCallThreshold time.Duration
	// SlowCalls makes a call slow that takes a multiple of the dependency's own measured latency. Where a constant is set as
	// well, the lower of the two holds. Zero value: on, 3 times normal, at most one false alarm in 30 days.
	SlowCalls SlowCalls
	// SlowCallRatio is the share of slow calls that makes refusing worth it, in (0, 1]. Without SlowCalls.FalseAlarmEvery, and for
	// calls above a SlowCallThreshold, the circuit opens when slow / calls in the trip window reach it. 0: 0.5.
	SlowCallRatio float64

	// BreakDuration is the first break. It doubles with every further open in a row. 0: measured. The first break is 25 times the
	// normal gap between two calls, within 1.5 s and 10 s, so that probes are a small part of the load; after an incident in the last
	// hour it is a tenth of that, at least 500 ms, if that is shorter. Each further one is at least a tenth of the time since the
	// circuit first opened.
	BreakDuration time.Duration
	// MaxBreakDuration caps the growing break. 0: 30 s where BreakDuration is measured, else 2 min, or BreakDuration if that is longer.
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
	// that hangs can wedge the breaker. 0: MaxBreakDuration where the normal latency was not known when the circuit opened, else ten times
	// that, at least 1 s. [Disabled]: never.
	ProbeTimeout time.Duration
	// Recovery hands the load back along a ramp. Zero value: a ramp by evidence alone.
	Recovery Recovery

	// WhenOpen is what Execute and its siblings do when the breaker does not admit the call at once. Zero value: [Reject].
	WhenOpen WhenOpen
	// ObserveOnly is a dry run: the breaker changes state and tells of it but admits every call at once, also while isolated.
	// Calls it would have refused count in Totals.Rejected and their outcomes are not sampled.
	ObserveOnly bool
	// MaxWait bounds a wait for admission; then the call is refused. 0: 5 min. [Disabled]: only the context ends a wait.
	MaxWait time.Duration
	// MaxWaiting is how many callers may wait at once; the next one is refused. 0: no limit.
	MaxWaiting int
	// RejectionDelay delays a refusal that Execute and its siblings return, so that a caller in a tight loop cannot spin. The
	// context ends the delay; the refusal is still what is returned. Not after a wait. 0: off.
	RejectionDelay time.Duration

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

// Failures configure the trip on failures that are abnormal for the dependency.
//
// A sequential test decides, which opens the circuit on a dependency as it has always been no more than about once in
// FalseAlarmEvery, and notices a change as soon as that allows. Failures that end within 250 ms are one event: they are at most half
// of the evidence that is needed. And a share of Floor of the calls since the change began must have failed, because below that an
// open circuit costs its callers more than it saves them.
//
// Without the test the circuit opens on at least two failures with failures / calls in the trip window ≥ min(1, max(Floor, Multiple ×
// rate)).
type Failures struct {
	// Multiple of the measured rate that is abnormal, greater than 1. 0: 5.
	Multiple float64
	// Window is what the rate is measured over, at least 2 × Settings.Window with the test, and 2 × Multiple × Settings.Window
	// without: a shorter one would take the incident for normal before it trips. 0: 5 min, or what that rule needs plus 1 s; where
	// it needs more than an hour, a trip of which no field is written is off.
	Window time.Duration
	// MinSamples is how many outcomes the rate needs, at least 1. 0: 100. The test judges from the first call on: it takes the
	// dependency to have failed 2 % of 20 calls before.
	MinSamples int
	// Floor is the lowest ratio that can trip, in (0, 1]. 0: 0.5 with the test, 0.05 without.
	Floor float64
	// FalseAlarmEvery is the time between two false alarms of the sequential test, at least 1 h. 0: 30 days. [Disabled]: no test.
	FalseAlarmEvery time.Duration
	// Off turns off the trip and its measurement.
	Off bool
}

// SlowCalls configure the trip on calls that are abnormally slow for the dependency. A call is slow above Multiple × the Quantile of
// its successful calls over Window, but never below their TailQuantile, where that is set, nor below Floor.
//
// A sequential test decides as for failures, on the share of slow calls that is normal: so two humps of latency, long tails and
// streams beside short calls are normal where they always are. Calls in flight count as well, once each, as they cross the
// threshold. Slow calls within 250 ms are one event, at most a third of the evidence that is needed. A share of
// Settings.SlowCallRatio of the calls since the change began must be slow.
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
	// TailQuantile keeps the threshold from falling below a second measured quantile, in (Quantile, 1). 1 − TailQuantile must be at
	// most SlowCallRatio / 2, and (1 − TailQuantile) × Window at least 2 × SlowCallRatio × Settings.Window. 0.75 suits a
	// SlowCallRatio of 0.5. 0: off.
	TailQuantile float64
	// Floor is the lowest measured threshold: processes stall for that long on their own account. It raises no SlowCallThreshold.
	// 0: 100 ms with the test, none without. [Disabled]: none.
	Floor time.Duration
	// FalseAlarmEvery is the time between two false alarms of the sequential test, at least 1 h. 0: 30 days. [Disabled]: no test;
	// the circuit opens when slow / calls in the trip window reach Settings.SlowCallRatio.
	FalseAlarmEvery time.Duration
	// EndedOnly leaves calls in flight out, however long they take.
	EndedOnly bool
	// Off turns off the measurement, the threshold made from it and the test.
	Off bool
}

const (
	defaultBaselineWindow = 5 * time.Minute
	maxDerivedWindow      = time.Hour
	derivedMargin         = time.Second
)

// WithDefaults returns the settings with every default number written out, but for a BreakDuration that is measured, which stays 0;
// nil functions and a nil Clock stay nil. It is idempotent, and what it returns is valid whenever s is. It shows the derived
// windows, and Off for a trip that steps aside. ConsecutiveFailures and ProbeTimeout are shown as they are before anything has
// been measured: a breaker made from them keeps to them.
func (s Settings) WithDefaults() Settings {
	setDefault(&s.ConsecutiveFailures, 5)
	setDefault(&s.MinCalls, 20)
	setDefault(&s.Window, 30*time.Second)
	setDefault(&s.SlowCallRatio, 0.5)
	s.Failures = s.Failures.withDefaults(s.Window)
	s.SlowCalls = s.SlowCalls.withDefaults(s.Window, s.SlowCallRatio)
	if s.MaxBreakDuration == 0 {
		s.MaxBreakDuration = 30 * time.Second
		if s.BreakDuration > 0 {
			s.MaxBreakDuration = max(2*time.Minute, s.BreakDuration)
		}
	}
	setDefault(&s.HalfOpenProbes, 1)
	setDefault(&s.ProbeSuccesses, 2)
	setDefault(&s.ProbeTimeout, s.MaxBreakDuration)
	s.Recovery = s.Recovery.withDefaults()
	setDefault(&s.MaxWait, 5*time.Minute)
	return s
}

// Classic returns the fixed rules, with every field written: the circuit opens on five failures in a row, on five times the measured
// failure rate and on half of the calls three times slower than the measured latency; the first break is 15 s, and doubles; a slow
// probe re-opens; the whole load comes back at once. For who wants figures that can be reckoned by hand.
func Classic() Settings {
	return Settings{
		ConsecutiveFailures: 5,
		Failures: Failures{
			Multiple: 5, Window: defaultBaselineWindow, MinSamples: 100, Floor: 0.05, FalseAlarmEvery: Disabled,
		},
		MinCalls: 20,
		Window:   30 * time.Second,
		SlowCalls: SlowCalls{
			Multiple: 3, Quantile: 0.5, Window: defaultBaselineWindow, MinSamples: 20, Floor: Disabled, FalseAlarmEvery: Disabled,
			EndedOnly: true,
		},
		SlowCallRatio:    0.5,
		BreakDuration:    15 * time.Second,
		MaxBreakDuration: 2 * time.Minute,
		HalfOpenProbes:   1,
		ProbeSuccesses:   2,
		ProbeTimeout:     2 * time.Minute,
		Recovery:         Recovery{Off: true},
		MaxWait:          5 * time.Minute,
	}
}

const month = 30 * 24 * time.Hour

func (f Failures) withDefaults(window time.Duration) Failures {
	mentioned := f != Failures{}
	setDefault(&f.Multiple, 5)
	setDefault(&f.MinSamples, 100)
	setDefault(&f.FalseAlarmEvery, month)
	floor := 0.5
	if f.FalseAlarmEvery == Disabled {
		floor = 0.05
	}
	setDefault(&f.Floor, floor)
	if f.Window == 0 {
		f.Window, f.Off = derivedWindow(f.need(window), mentioned, f.Off)
	}
	return f
}

// need is the shortest window, in nanoseconds, that wins its race against the trip window. Windows are whole nanoseconds: what
// is less than half of one is rounding, which must not lose a race that is met exactly.
func (f Failures) need(window time.Duration) float64 {
	if f.FalseAlarmEvery != Disabled {
		return 2 * float64(window)
	}
	return math.Round(2 * float64(window) * f.Multiple)
}

func (c SlowCalls) withDefaults(window time.Duration, slowCallRatio float64) SlowCalls {
	mentioned := c != SlowCalls{}
	setDefault(&c.Multiple, 3)
	setDefault(&c.Quantile, 0.5)
	setDefault(&c.MinSamples, 20)
	setDefault(&c.FalseAlarmEvery, month)
	floor := 100 * time.Millisecond
	if c.FalseAlarmEvery == Disabled {
		floor = Disabled
	}
	setDefault(&c.Floor, floor)
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
func (s *Settings) ramps() bool { return !s.Recovery.Off }
func (s *Settings) testsFailures() bool {
	return !s.Failures.Off && s.Failures.FalseAlarmEvery != Disabled
}
func (s *Settings) testsSlowness() bool {
	return !s.SlowCalls.Off && s.SlowCalls.FalseAlarmEvery != Disabled
}
func (s *Settings) keepsBaseline() bool { return s.measuresFailures() || s.testsSlowness() }
func (s *Settings) seesOverdue() bool   { return s.judgesSlowness() && !s.SlowCalls.EndedOnly }

// judgesSlowRatio reports whether the share of slow calls in the trip window can open the circuit.
func (s *Settings) judgesSlowRatio() bool {
	return s.judgesSlowness() && (!s.testsSlowness() || s.SlowCallThreshold > 0)
}

// awaitsFastProbe reports whether half-open goes on after a slow probe until there is a fast one.
func (s *Settings) awaitsFastProbe() bool {
	return s.testsSlowness() && s.ProbeCohort == 0 && s.Recovery.Fraction == 0
}

// baselineWindow returns what shares of failed and slow calls are measured over.
func (s *Settings) baselineWindow() time.Duration {
	if s.measuresFailures() {
		return s.Failures.Window
	}
	return s.SlowCalls.Window
}

// slowLimit returns the slow threshold beside measured quantiles, 0 for unknown ones: the lower of those that exist, and the
// longest duration, which no call exceeds, where there is none.
func (s *Settings) slowLimit(measured quantiles) time.Duration {
	limit := noSlowLimit
	if s.SlowCallThreshold > 0 {
		limit = s.SlowCallThreshold
	}
	if measured.normal > 0 {
		limit = min(limit, max(scaled(float64(measured.normal), s.SlowCalls.Multiple), measured.tail, s.SlowCalls.Floor))
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
