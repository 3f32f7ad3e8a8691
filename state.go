package breaker

import (
	"log/slog"
	"time"
)

// State is what a breaker does with the next call. The values are ordered by severity, so the larger of two states is the
// worse one. The zero value is [Closed].
type State uint8

const (
	// Closed admits every call and watches the outcomes.
	Closed State = iota
	// Recovering admits a growing fraction of the calls, after the probes of a half-open circuit have succeeded.
	Recovering
	// HalfOpen admits a few probes and refuses everything else.
	HalfOpen
	// Open refuses every call until the break has elapsed.
	Open
	// Isolated refuses every call until [Breaker.Reset].
	Isolated
)

var states = enum{"State", []string{"closed", "recovering", "half-open", "open", "isolated"}}

// String returns the state in lower case: closed, recovering, half-open, open or isolated.
func (s State) String() string { return states.text(uint8(s)) }

// MarshalText returns the text of String. An unknown state is an error.
func (s State) MarshalText() ([]byte, error) { return states.marshal(uint8(s)) }

// UnmarshalText reads the text of String. Unknown text is an error and leaves the state as it was.
func (s *State) UnmarshalText(text []byte) error {
	v, err := states.parse(text)
	if err == nil {
		*s = State(v)
	}
	return err
}

// Reason is why a breaker changed its state. The zero value is no reason: nothing has changed yet.
type Reason uint8

const (
	// ReasonConsecutiveFailures opened the circuit: Settings.ConsecutiveFailures transient failures in a row.
	ReasonConsecutiveFailures Reason = 1 + iota
	// ReasonFailureRatio opened the circuit: the failures in the window reached Settings.FailureRatio.
	ReasonFailureRatio
	// ReasonRelativeFailures opened the circuit: the failures are far above the dependency's own normal rate.
	ReasonRelativeFailures
	// ReasonSlowCalls opened the circuit: the slow calls in the window reached Settings.SlowCallRatio.
	ReasonSlowCalls
	// ReasonBreakElapsed made the circuit half-open: the break is over and a call asked for admission.
	ReasonBreakElapsed
	// ReasonProbeFailed re-opened the circuit: a probe failed, or the failures of a cohort reached their ratio.
	ReasonProbeFailed
	// ReasonProbeSlow re-opened the circuit: a probe was slow, or the slow probes of a cohort reached their ratio.
	ReasonProbeSlow
	// ReasonProbeTimeout re-opened the circuit: a probe was in flight for Settings.ProbeTimeout.
	ReasonProbeTimeout
	// ReasonProbesSucceeded ended half-open: enough probes succeeded.
	ReasonProbesSucceeded
	// ReasonRampFailed re-opened the circuit: a call failed while it was recovering.
	ReasonRampFailed
	// ReasonRampCompleted closed the circuit: the admitted fraction reached 1.
	ReasonRampCompleted
	// ReasonIsolated is a call of Isolate.
	ReasonIsolated
	// ReasonReset is a call of Reset.
	ReasonReset
	// ReasonOverdueCalls opened the circuit: the slow calls, with those still in flight, reached Settings.SlowCallRatio.
	ReasonOverdueCalls
)

var reasons = enum{"Reason", []string{
	"none",
	"consecutive-failures", "failure-ratio", "relative-failures", "slow-calls",
	"break-elapsed",
	"probe-failed", "probe-slow", "probe-timeout", "probes-succeeded",
	"ramp-failed", "ramp-completed",
	"isolated", "reset",
	"overdue-calls",
}}

// String returns the reason in kebab case, such as consecutive-failures, and none for the zero value.
func (r Reason) String() string { return reasons.text(uint8(r)) }

// MarshalText returns the text of String. An unknown reason is an error.
func (r Reason) MarshalText() ([]byte, error) { return reasons.marshal(uint8(r)) }

// UnmarshalText reads the text of String. Unknown text is an error and leaves the reason as it was.
func (r *Reason) UnmarshalText(text []byte) error {
	v, err := reasons.parse(text)
	if err == nil {
		*r = Reason(v)
	}
	return err
}

// Counts are the outcomes that a decision was taken on.
type Counts struct {
	Calls               int // that succeeded or failed; neutral outcomes are no calls
	Failures            int // transient failures among them
	Slow                int // slow calls among them, failed or not
	ConsecutiveFailures int // transient failures since the last success
}

// FailureRatio returns Failures / Calls, and 0 when there are no calls.
func (c Counts) FailureRatio() float64 { return ratio(c.Failures, c.Calls) }

// SlowRatio returns Slow / Calls, and 0 when there are no calls.
func (c Counts) SlowRatio() float64 { return ratio(c.Slow, c.Calls) }

// add counts one call.
func (c *Counts) add(failed, slow bool) {
	c.Calls++
	if failed {
		c.Failures++
		c.ConsecutiveFailures++
	} else {
		c.ConsecutiveFailures = 0
	}
	if slow {
		c.Slow++
	}
}

// ratio is the quotient that every trip condition compares, never a rounded product: 7 of 100 meets 0.07.
func ratio(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// StateChange is one change of a breaker's state. It is a value: keep and compare it freely.
type StateChange struct {
	Name     string    // of the breaker
	From, To State     // as the machine went, so each From is the To before it
	Reason   Reason    // why
	At       time.Time // when, by the breaker's clock
	// Break is how long the circuit stays open, when To is Open: grown, capped, and jittered or dynamic.
	Break time.Duration
	// Opens is the number of opens in a row, this one included, when To is Open. A clean close starts again at 1.
	Opens int
	// Counts are the outcomes at the decision: those of the trip window when From is Closed, otherwise those of the
	// half-open or recovering period that ends here.
	Counts Counts
	// Err is the failure that decided it, nil if there was none to keep.
	Err error
}

// LogValue groups the change for log/slog. Fields that say nothing for this change are left out.
func (c StateChange) LogValue() slog.Value {
	attrs := []slog.Attr{
		slog.String("name", c.Name),
		slog.String("from", c.From.String()),
		slog.String("to", c.To.String()),
		slog.String("reason", c.Reason.String()),
		slog.Time("at", c.At),
	}
	if c.To == Open {
		attrs = append(attrs, slog.Duration("break", c.Break), slog.Int("opens", c.Opens))
	}
	if c.Counts != (Counts{}) {
		attrs = append(attrs, slog.Group("counts",
			slog.Int("calls", c.Counts.Calls),
			slog.Int("failures", c.Counts.Failures),
			slog.Int("slow", c.Counts.Slow),
			slog.Int("consecutive_failures", c.Counts.ConsecutiveFailures)))
	}
	if c.Err != nil {
		attrs = append(attrs, slog.Any("err", c.Err))
	}
	return slog.GroupValue(attrs...)
}
