// Package protect runs every entry of the field through the same incidents, on fake time, and measures how well it protects
// its callers and the dependency: whether it opens when it should, stays closed when it should, and gives traffic back well.
package protect

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"time"
)

// Latency is how long the work of one healthy call takes, at a time since the start of a scenario.
type Latency func(r *rand.Rand, at time.Duration) time.Duration

// LogNormal is latency with a median and a 99th percentile.
func LogNormal(p50, p99 time.Duration) Latency {
	const z99 = 2.3263478740408408 // the standard normal quantile at 0.99
	sigma := math.Log(float64(p99)/float64(p50)) / z99
	return func(r *rand.Rand, _ time.Duration) time.Duration {
		return time.Duration(float64(p50) * math.Exp(sigma*r.NormFloat64()))
	}
}

// TwoHumped is latency of which one half is one value and the other half another, each give or take 10 %.
func TwoHumped(fast, slow time.Duration) Latency {
	return func(r *rand.Rand, _ time.Duration) time.Duration {
		d := fast
		if r.Float64() < 0.5 {
			d = slow
		}
		return time.Duration(float64(d) * (0.9 + 0.2*r.Float64()))
	}
}

// Swinging is latency that rises to a multiple of itself and falls back, once in a period.
func Swinging(l Latency, multiple float64, period time.Duration) Latency {
	return func(r *rand.Rand, at time.Duration) time.Duration {
		phase := (1 - math.Cos(2*math.Pi*float64(at)/float64(period))) / 2
		return time.Duration(float64(l(r, at)) * (1 + (multiple-1)*phase))
	}
}

// Growing is latency of two kinds, of which the second grows from one fraction of the calls to another.
func Growing(first, second Latency, from, to float64, over time.Duration) Latency {
	return func(r *rand.Rand, at time.Duration) time.Duration {
		if r.Float64() < from+(to-from)*float64(at)/float64(over) {
			return second(r, at)
		}
		return first(r, at)
	}
}

// Slower is latency times a multiple.
func Slower(l Latency, multiple float64) Latency {
	return func(r *rand.Rand, at time.Duration) time.Duration { return time.Duration(float64(l(r, at)) * multiple) }
}

// Incident is a time in which something happens to calls: to those that start in it, but where a field says otherwise.
type Incident struct {
	After, For time.Duration
	Slower     float64 // latency multiple; 0: none
	Share      float64 // of calls that are slower; 0: all
	Failing    float64 // fraction of calls that fail, in place of the healthy rate; 1 is an outage
	Hang       bool    // no call returns
	Refusing   bool    // calls that fail do so within a millisecond, as refused connections do
	Stall      bool    // the dependency stands still: calls that start in it or are in flight go on at its end
	Freeze     bool    // the callers' process stands still: it makes no call, and calls that end meanwhile end for it at once after it
	Reset      bool    // calls in flight at its start fail at that moment
}

func (i Incident) covers(at time.Duration) bool { return at >= i.After && at < i.After+i.For }

// End is when the incident is over.
func (i Incident) End() time.Duration { return i.After + i.For }

// Dependency is what the calls go to.
type Dependency struct {
	Latency     Latency
	FailureRate float64 // of healthy calls
	Capacity    int     // calls at once without slowing down; beyond three times as many they fail; 0: unlimited
	Warmup      time.Duration
	Incidents   []Incident
}

// plan is what would become of one call if it were admitted. It is drawn for every call, admitted or not, so that all
// entries meet the same load.
type plan struct {
	latency time.Duration
	frozen  time.Duration // how much longer it takes for its caller, whose process stands still
	fails   bool
}

// never is longer than any time-out.
const never = 24 * time.Hour

func (d *Dependency) plan(r *rand.Rand, at time.Duration) plan {
	p := plan{latency: d.Latency(r, at)}
	luck, share := r.Float64(), r.Float64()
	failing := d.FailureRate
	for _, i := range d.Incidents {
		if !i.covers(at) {
			continue
		}
		if i.Failing > 0 {
			failing = i.Failing
		}
		if i.Slower > 0 && (i.Share == 0 || share < i.Share) {
			p.latency = time.Duration(float64(p.latency) * i.Slower)
		}
		if i.Hang {
			p.latency = never
		}
	}
	p.fails = luck < failing
	for _, i := range d.Incidents {
		p.meet(i, at)
	}
	return p
}

// refused is how long a refused connection takes.
const refused = time.Millisecond

// meet lets the call, which starts at a time, live through an incident that touches calls in flight.
func (p *plan) meet(i Incident, at time.Duration) {
	end := at + p.latency
	switch touched := at < i.End() && end > i.After; {
	case i.Refusing && i.covers(at) && p.fails:
		p.latency = refused
	case !touched:
	case i.Stall:
		p.latency += i.End() - max(at, i.After)
	case i.Reset:
		p.latency, p.fails = i.After-at, true
	case i.Freeze:
		p.frozen = max(0, i.End()-end)
	}
}

// thaw is how long the callers' process still stands still at a time; 0: it does not.
func (d *Dependency) thaw(at time.Duration) time.Duration {
	for _, i := range d.Incidents {
		if i.Freeze && i.covers(at) {
			return i.End() - at
		}
	}
	return 0
}

var (
	errFailed     = errors.New("the dependency failed")
	errOverloaded = errors.New("the dependency is overloaded")
)

// server is a dependency at work. Its capacity follows the reference model of the specification: an outage leaves a
// twentieth; from then on each tenth of a second adds a tenth of Capacity/Warmup if calls were admitted in it and a quarter
// of that if none were, but costs a twentieth of the capacity if more than twice the capacity was admitted.
type server struct {
	Dependency
	began time.Time

	mu       sync.Mutex // protects the following fields
	inFlight int
	peak     int // of inFlight
	capacity float64
	step     int64 // the tenth of a second that admitted counts in
	admitted int
}

const capacityStep = 100 * time.Millisecond

func newServer(d Dependency) *server {
	return &server{Dependency: d, began: time.Now(), capacity: float64(d.Capacity)}
}

// now is the time since the load began.
func (s *server) now() time.Duration { return time.Since(s.began) }

// serve does the work of one call.
func (s *server) serve(ctx context.Context, p plan) error {
	latency, err := s.enter(p)
	defer s.leave()
	if waitErr := wait(ctx, latency+p.frozen); waitErr != nil {
		return waitErr
	}
	return err
}

func (s *server) enter(p plan) (time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(int64(s.now() / capacityStep))
	s.admitted++
	s.inFlight++
	s.peak = max(s.peak, s.inFlight)
	latency := p.latency
	if s.Capacity > 0 {
		load := float64(s.inFlight) / s.capacity
		if load > 3 {
			return latency, errOverloaded
		}
		latency = time.Duration(float64(latency) * max(1, load))
	}
	if p.fails {
		return latency, errFailed
	}
	return latency, nil
}

func (s *server) leave() {
	s.mu.Lock()
	s.inFlight--
	s.mu.Unlock()
}

// busy reports whether a call is in the dependency.
func (s *server) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inFlight > 0
}

// room reports whether one more call would be served without slowing down, for an oracle.
func (s *server) room() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(int64(s.now() / capacityStep))
	return s.inFlight < int(s.capacity)
}

// advance brings the capacity up to the step.
func (s *server) advance(step int64) {
	if s.Warmup == 0 {
		return
	}
	for ; s.step < step; s.step++ {
		at := time.Duration(s.step) * capacityStep
		if s.inOutage(at) {
			s.capacity = max(1, float64(s.Capacity)/20)
		} else {
			s.capacity = s.grown()
		}
		s.admitted = 0
	}
}

func (s *server) grown() float64 {
	full := float64(s.Capacity)
	growth := full * float64(capacityStep) / float64(s.Warmup)
	switch floor := max(1, math.Floor(s.capacity)); {
	case float64(s.admitted) > 2*floor:
		return max(1, s.capacity-full/20)
	case s.admitted == 0:
		return min(full, s.capacity+growth/4)
	default:
		return min(full, s.capacity+growth)
	}
}

func (s *server) inOutage(at time.Duration) bool {
	for _, i := range s.Incidents {
		if i.Failing == 1 && i.covers(at) {
			return true
		}
	}
	return false
}

// wait waits for d or for the end of ctx.
func wait(ctx context.Context, d time.Duration) error {
	if ctx.Done() == nil {
		time.Sleep(d)
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
