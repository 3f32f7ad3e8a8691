package breaker

import (
	"math"
	"time"
)

// buckets is the number of buckets in a ring. A window therefore moves on in tenths of its length.
const buckets = 10

// bucket counts the calls of a tenth of a window. The counters saturate.
type bucket struct{ calls, failures, slow uint32 }

// ring counts calls, failures and slow calls over a sliding window of ten buckets. Buckets lie on a fixed grid of the
// breaker's time; those that have left the window are dropped when the ring is written and ignored when it is read, so a ring
// that was idle reports nothing old. Time never goes back.
//
// It serves as the trip window, which is cleared at every decision, and as the failure baseline, which never is. It keeps no
// sum: every call writes, and only a failed or slow one reads.
type ring struct {
	width   time.Duration // of a bucket
	end     time.Duration // of the current bucket; 0 before the first write
	slot    int           // of the current bucket
	buckets [buckets]bucket
}

func newRing(window time.Duration) ring { return ring{width: max(1, window/buckets)} }

// at returns the bucket to count a call at now in. It and add are small enough to be inlined: they run for every call.
func (r *ring) at(now time.Duration) *bucket {
	if now >= r.end {
		r.turn(now)
	}
	return &r.buckets[r.slot]
}

func (b *bucket) add(failed, slow bool) {
	if b.calls == math.MaxUint32 {
		return
	}
	b.calls++
	if failed {
		b.failures++
	}
	if slow {
		b.slow++
	}
}

// current returns the number of the current bucket, -1 before the first write.
func (r *ring) current() int64 { return int64(r.end/r.width) - 1 }

// turn makes the bucket of now the current one and drops those that have left the window.
func (r *ring) turn(now time.Duration) {
	number := int64(now / r.width)
	for n := max(r.current(), number-buckets) + 1; n <= number; n++ {
		r.buckets[n%buckets] = bucket{}
	}
	r.slot = int(number % buckets)
	r.end = time.Duration(number+1) * r.width
}

// read returns the sum of the buckets that are in the window at now, changing nothing.
func (r *ring) read(now time.Duration) Counts {
	c, _ := r.readLagged(now, 0)
	return c
}

// readLagged is read without the last so many buckets. It returns as well the time that the buckets it read cover.
func (r *ring) readLagged(now time.Duration, lag int64) (c Counts, covered time.Duration) {
	number := int64(now / r.width)
	oldest := max(0, number-buckets+1)
	newest := number - lag
	var calls, failures, slow uint64
	for n := oldest; n <= min(newest, r.current()); n++ {
		b := &r.buckets[n%buckets]
		calls += uint64(b.calls)
		failures += uint64(b.failures)
		slow += uint64(b.slow)
	}
	covered = min(now, time.Duration(newest+1)*r.width) - time.Duration(oldest)*r.width
	return Counts{Calls: clampInt(calls), Failures: clampInt(failures), Slow: clampInt(slow)}, covered
}

// clear forgets every call.
func (r *ring) clear() { *r = ring{width: r.width} }

// clampInt converts a sum where int is small.
func clampInt(n uint64) int { return int(min(n, math.MaxInt)) }
