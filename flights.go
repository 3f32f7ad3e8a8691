package breaker

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// flights counts the calls in flight by the time they began, so that calls which take too long are seen before they return, each
// once, as it crosses the threshold. Calls begin without the lock and end under it.
//
// Time is cut into slots, used in turn. A slot is never zeroed: how many calls of it are in flight is the difference of two numbers
// that only grow. Calls of an earlier round that are in flight still have crossed the threshold, so each slot keeps how many of its
// calls have. None counts early: a slot crosses once the last call that may have begun in it has.
//
// When the threshold changes by more than the slots can follow, new flights take the place of these. A call ends where it began.
type flights struct {
	shift   uint         // a slot is 1 << shift nanoseconds wide
	next    atomic.Int64 // when the calls in flight are due to be judged
	begun   [slots]atomic.Uint32
	ended   [slots]uint32
	crossed [slots]uint32 // in flight and past the threshold
	judged  int64         // number of the last slot that has crossed
}

// slots is how many of them there are. Between a tenth and a twentieth of the threshold each, they reach beyond it.
const slots = 32

// newFlights returns flights for a threshold, from now on.
func newFlights(now, limit time.Duration) *flights {
	f := &flights{shift: shiftFor(limit)}
	f.judged = f.slotOf(now) - 1
	f.next.Store(int64(now))
	return f
}

// leastShift makes slots a millisecond wide at the least, or nearly: narrower ones would be due with every call.
const leastShift = 20

// shiftFor returns the width of the slots for a threshold: at most a tenth of it, where that is not too narrow.
func shiftFor(limit time.Duration) uint {
	return uint(max(leastShift, bits.Len64(uint64(limit/10))-1))
}

func (f *flights) slotOf(at time.Duration) int64 { return int64(at) >> f.shift }

// begin counts a call that begins at a time for which the calls in flight are not due to be judged.
func (f *flights) begin(at time.Duration) { f.begun[f.slotOf(at)%slots].Add(1) }

// isDue reports whether the calls in flight are due to be judged at now.
func (f *flights) isDue(now time.Duration) bool { return int64(now) >= f.next.Load() }

// end counts a call that ends, and reports whether it had crossed the threshold.
func (f *flights) end(began time.Duration) (crossed bool) {
	n := f.slotOf(began)
	i := n % slots
	f.ended[i]++
	if crossed = n <= f.judged; crossed && f.crossed[i] > 0 {
		f.crossed[i]--
	}
	return crossed
}

// judge returns how many calls have crossed the threshold by now that had not before.
func (f *flights) judge(now, limit time.Duration) (calls uint32) {
	current := f.slotOf(now)
	f.next.Store((current + 1) << f.shift)
	for last := f.slotOf(now-limit) - 1; f.judged < last; {
		f.judged = max(f.judged+1, last-slots+1)
		i := f.judged % slots
		inFlight := f.begun[i].Load() - f.ended[i]
		if inFlight > f.crossed[i] {
			calls += inFlight - f.crossed[i]
		}
		f.crossed[i] = inFlight
	}
	return calls
}

// overdue returns how many calls in flight are past the threshold.
func (f *flights) overdue() (calls uint32) {
	for _, n := range f.crossed {
		calls += n
	}
	return calls
}

// fits reports whether the slots suit a threshold: each is at most a tenth of it, and they reach beyond it.
func (f *flights) fits(limit time.Duration) bool {
	width := time.Duration(1) << f.shift
	narrow := f.shift == leastShift || limit/10 >= width
	return narrow && limit>>f.shift < slots-4
}
