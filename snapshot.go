package breaker

import "time"

// Snapshot is everything a breaker shows of itself, read at one moment under one lock. It is what the next call would find: an
// open breaker whose break has elapsed reads HalfOpen, a recovering one that admits everything reads Closed.
//
// Snapshots marshal to JSON and back with snake_case keys and durations as text ("12.5s"); what is unknown or does not apply
// is left out.
type Snapshot struct {
	Name   string
	State  State
	Reason Reason // of the last change of state
	// Since is when the state was last changed; the end of the break when State is HalfOpen for that alone; when the breaker
	// was made if it never changed.
	Since            time.Time
	OpenedAt         time.Time     // zero while Closed
	RetryAfter       time.Duration // 0 unless Open
	Counts           Counts        // the trip window now; while HalfOpen and Recovering the outcomes since that began; else zero
	ProbesInFlight   int           // while HalfOpen
	ProbeSuccesses   int           // so far, while HalfOpen
	Waiting          int           // callers waiting for admission
	AdmittedFraction float64       // 1 Closed, the ramp's while Recovering, 0 otherwise
	NormalLatency    time.Duration // measured; 0: unknown
	SlowThreshold    time.Duration // in force; 0: none
	// NormalFailureRate is the measured failure rate; nil: unknown.
	NormalFailureRate *float64
	TripRatio         float64 // the failure ratio that trips now; 0: none in force
	Evidence          float64 // of the test on failures, as a fraction of what trips, in [0, 1]
	SlowEvidence      float64 // of the test on slow calls, likewise
	// NormalSlowRate is the measured share of slow calls; nil: unknown.
	NormalSlowRate *float64
	Break          time.Duration // being served, or served last; 0 while Closed
	BreakBasis     BreakBasis    // why it is as long as it is, before jitter
	Totals         Totals        // since the breaker was made
}

// Totals count since the breaker was made. Nothing resets them.
type Totals struct {
	Successes uint64
	Transient uint64
	Throttled uint64
	Permanent uint64
	Ignored   uint64
	Slow      uint64 // calls among the successes and transient failures, and ignored ones that were slow when their caller gave them up
	Discarded uint64 // outcomes of calls admitted before the circuit opened, in none of the above
	Rejected  uint64 // calls refused
	Opens     uint64 // entries into Open
}

func (t *Totals) count(o Outcome) {
	switch o {
	case Success:
		t.Successes++
	case Transient:
		t.Transient++
	case Throttled:
		t.Throttled++
	case Permanent:
		t.Permanent++
	default:
		t.Ignored++
	}
}
