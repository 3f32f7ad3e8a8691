package breaker

import (
	"math"
	"slices"
	"time"
)

// probes are the probes in flight, oldest first. There are never more than the half-open limit, so a slice serves.
type probes struct {
	last   uint32 // number of the last probe admitted
	flying []probe
}

type probe struct {
	number uint32
	since  time.Duration
}

// The slots of calls that are no probe.
const (
	noSlot   = 0              // admitted while Closed
	rampSlot = math.MaxUint32 // admitted while Recovering
)

// admit starts a probe at now and returns its number, a slot of its own.
func (p *probes) admit(now time.Duration) uint32 {
	if p.last++; p.last == rampSlot {
		p.last = 1
	}
	p.flying = append(p.flying, probe{p.last, now})
	return p.last
}

// end gives the slot of a probe back.
func (p *probes) end(number uint32) {
	p.flying = slices.DeleteFunc(p.flying, func(f probe) bool { return f.number == number })
}

// oldest returns when the oldest probe in flight was admitted; false if there is none.
func (p *probes) oldest() (time.Duration, bool) {
	if len(p.flying) == 0 {
		return 0, false
	}
	return p.flying[0].since, true
}
