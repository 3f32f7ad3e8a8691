package breaker

import (
	"slices"
	"time"
)

// flights counts the calls in flight by the bucket of time they began in, so that calls which take too long are seen before
// they return. The buckets are as wide as those of the trip window. There are never more than maxTakeoffs: permits that nobody
// ends cost no more than that.
type flights struct {
	width   time.Duration // of a bucket
	next    time.Duration // when they are due to be judged at an admission
	buckets []takeoffs    // those with calls in flight, oldest first
}

// takeoffs is the number of calls in flight that began in one bucket.
type takeoffs struct {
	number int64
	calls  int
}

// maxTakeoffs is how many buckets are kept apart. One more makes the two oldest one, whose calls count as begun in the later: none
// is overdue early.
const maxTakeoffs = 256

func newFlights(window time.Duration) *flights { return &flights{width: max(1, window/buckets)} }

// begin counts a call that begins at now. It returns the low half of its bucket's number, which tells the bucket from any other
// with a call in flight.
func (f *flights) begin(now time.Duration) (bucket uint32) {
	number := int64(now / f.width)
	if last := len(f.buckets) - 1; last >= 0 && f.buckets[last].number == number {
		f.buckets[last].calls++
	} else {
		f.buckets = append(f.buckets, takeoffs{number, 1})
		f.merge()
	}
	return uint32(number)
}

// merge makes one of the two oldest buckets where there are too many.
func (f *flights) merge() {
	if len(f.buckets) > maxTakeoffs {
		f.buckets[1].calls += f.buckets[0].calls
		f.buckets = slices.Delete(f.buckets, 0, 1)
	}
}

// end counts a call that ends, by the bucket it began in. Where that is no longer kept apart, it has become part of the oldest.
func (f *flights) end(bucket uint32) {
	i := len(f.buckets) - 1
	for i > 0 && uint32(f.buckets[i].number) != bucket { // nearly every call ends soon after it began
		i--
	}
	if f.buckets[i].calls--; f.buckets[i].calls == 0 {
		f.buckets = slices.Delete(f.buckets, i, i+1)
	}
}

// overdue returns how many calls have been in flight for longer than limit at now. A bucket counts once all that began in it
// have, so none counts early.
func (f *flights) overdue(now, limit time.Duration) (calls int) {
	for _, t := range f.buckets {
		if now-time.Duration(t.number+1)*f.width < limit {
			break
		}
		calls += t.calls
	}
	return calls
}

// isDue reports whether a bucket has passed since an admission judged the calls in flight.
func (f *flights) isDue(now time.Duration) bool { return now >= f.next }

// judged takes note that an admission at now has judged them.
func (f *flights) judged(now time.Duration) { f.next = (now/f.width + 1) * f.width }

// clear forgets the calls in flight: they belong to another epoch.
func (f *flights) clear() { f.buckets = nil }
