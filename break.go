package breaker

import "time"

// BreakBasis is why a break is as long as it is, before jitter. The zero value is no break.
type BreakBasis uint8

const (
	// BreakWritten is Settings.BreakDuration, grown with the opens in a row.
	BreakWritten BreakBasis = 1 + iota
	// BreakTraffic is 25 times the normal gap between two calls, so that probes are a small part of the load.
	BreakTraffic
	// BreakIncident is a tenth of the time since the circuit first opened, so that its end is noticed within a tenth of its length; or
	// a tenth of the last incident, where that was short and not long ago.
	BreakIncident
	// BreakDynamic is the answer of Settings.BreakDurationFunc.
	BreakDynamic
)

var bases = enum{"BreakBasis", []string{"none", "written", "traffic", "incident", "dynamic"}}

// String returns the basis in lower case: none, written, traffic, incident or dynamic.
func (b BreakBasis) String() string { return bases.text(uint8(b)) }

// MarshalText returns the text of String. An unknown basis is an error.
func (b BreakBasis) MarshalText() ([]byte, error) { return bases.marshal(uint8(b)) }

// UnmarshalText reads the text of String. Unknown text is an error and leaves the basis as it was.
func (b *BreakBasis) UnmarshalText(text []byte) error {
	v, err := bases.parse(text)
	if err == nil {
		*b = BreakBasis(v)
	}
	return err
}

const (
	// probeShare is the share of the load that probes may be, where the break is measured.
	probeShare = 0.04
	// incidentShare is the share of an incident within which its end is noticed.
	incidentShare = 0.1
	// The first break, where it is measured and nothing is known of the incident.
	shortestFirstBreak = 1500 * time.Millisecond
	longestFirstBreak  = 10 * time.Second
	// shortestBreak is the first break after an incident that was short, which is remembered for so long.
	shortestBreak = 500 * time.Millisecond
	remembered    = time.Hour
)

// firstBreak returns the first break for a rate of calls a second, 0 for none, after an incident of a length, 0 for none.
func firstBreak(rate float64, before, limit time.Duration) (time.Duration, BreakBasis) {
	d, basis := longestFirstBreak, BreakTraffic
	if rate > 0 {
		d = max(shortestFirstBreak, min(d, scaled(float64(time.Second), 1/(probeShare*rate))))
	}
	if again := max(shortestBreak, scaled(float64(before), incidentShare)); before > 0 && again < d {
		d, basis = again, BreakIncident
	}
	return min(d, limit), basis
}

// furtherBreak returns the break that follows a first one, unless that is longer, so long after the circuit first opened.
func furtherBreak(since time.Duration) time.Duration { return scaled(float64(since), incidentShare) }

// grown returns the nominal break of the nth open in a row, first × 2^(n−1), capped at limit. It saturates: no n overflows.
func grown(first, limit time.Duration, n int) time.Duration {
	for d := first; ; d *= 2 {
		if n <= 1 || d >= limit {
			return min(d, limit)
		}
		if d > limit/2 {
			return limit
		}
		n--
	}
}
