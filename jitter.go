package breaker

import (
	"math"
	"time"
)

// Jitter is how a break is spread over time, so that a fleet of breakers which opened together does not probe together. Let d
// be the break and r a random number in [0, 1). The zero value is [JitterEqual].
type Jitter uint8

const (
	// JitterEqual serves d/2 + r·d/2, at least a nanosecond: the dependency is always left alone for half the break.
	JitterEqual Jitter = iota
	// JitterFull serves r·d, at least a nanosecond: the widest spread, at the price of very short breaks.
	JitterFull
	// JitterNone serves d. A fleet then probes in one pulse.
	JitterNone
)

var jitters = enum{"Jitter", []string{"equal", "full", "none"}}

// String returns the jitter in lower case: equal, full or none.
func (j Jitter) String() string { return jitters.text(uint8(j)) }

// MarshalText returns the text of String. An unknown jitter is an error.
func (j Jitter) MarshalText() ([]byte, error) { return jitters.marshal(uint8(j)) }

// UnmarshalText reads the text of String. Unknown text is an error and leaves the jitter as it was.
func (j *Jitter) UnmarshalText(text []byte) error {
	v, err := jitters.parse(text)
	if err == nil {
		*j = Jitter(v)
	}
	return err
}

// spread returns the break d after jitter, for the random number r in [0, 1).
func (j Jitter) spread(d time.Duration, r float64) time.Duration {
	switch j {
	case JitterEqual:
		return min(d, max(1, scaled(float64(d)/2, 1+r)))
	case JitterFull:
		return min(d, max(1, scaled(float64(d), r)))
	default:
		return d
	}
}

// scaled returns d × factor, saturating at the largest duration.
func scaled(d, factor float64) time.Duration {
	if v := d * factor; v < math.MaxInt64 {
		return time.Duration(v)
	}
	return math.MaxInt64
}

// later returns t + d for non-negative d, saturating at the largest duration.
func later(t, d time.Duration) time.Duration {
	if t > math.MaxInt64-d {
		return math.MaxInt64
	}
	return t + d
}
