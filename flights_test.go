package breaker

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A bucket is a second wide here. It counts once the last call that may have begun in it is overdue.
func TestFlightsAreNeverOverdueEarly(t *testing.T) {
	const limit = 100 * time.Millisecond
	f := newFlights(10 * time.Second)
	f.begin(time.Second)
	late := f.begin(2*time.Second - 1)
	next := f.begin(2 * time.Second)
	for _, step := range []struct {
		at   time.Duration
		want int
	}{
		{time.Second, 0}, {2*time.Second + limit - 1, 0}, {2*time.Second + limit, 2},
		{3*time.Second + limit - 1, 2}, {3*time.Second + limit, 3}, {time.Hour, 3},
	} {
		assert.Equal(t, step.want, f.overdue(step.at, limit), "%v", step.at)
	}
	assert.Zero(t, f.overdue(endOfTime, noSlowLimit), "nothing is slow")
	f.end(next)
	f.end(late)
	assert.Equal(t, 1, f.overdue(time.Hour, limit))
}

func TestFlightsAreDueOnceABucket(t *testing.T) {
	f := newFlights(10 * time.Second)
	for _, step := range []struct {
		at   time.Duration
		want bool
	}{
		{1500 * time.Millisecond, true}, {1500 * time.Millisecond, false}, {2*time.Second - 1, false},
		{2 * time.Second, true}, {3*time.Second - 1, false}, {time.Hour, true}, {time.Hour, false},
	} {
		if assert.Equal(t, step.want, f.isDue(step.at), "%v", step.at); step.want {
			f.judged(step.at)
		}
	}
}

func TestFlightsForgetAnEpoch(t *testing.T) {
	f := newFlights(10 * time.Second)
	f.begin(0)
	f.clear()
	assert.Zero(t, f.overdue(time.Hour, 0))
}

// The shortest window has buckets of 100 µs, whose numbers pass 32 bits within five days.
func TestFlightsOfAShortWindowOnTheSixthDay(t *testing.T) {
	f := newFlights(time.Millisecond)
	const day = 24 * time.Hour
	early, late := f.begin(5*day), f.begin(6*day)
	assert.Equal(t, 2, f.overdue(6*day+time.Second, time.Millisecond))
	f.end(late)
	assert.Equal(t, 1, f.overdue(5*day+time.Second, time.Millisecond))
	f.end(early)
	assert.Empty(t, f.buckets)
}

// A call that begins and ends costs no allocation once the slice has grown, however many others are in flight.
func TestFlightsDoNotAllocate(t *testing.T) {
	f := newFlights(10 * time.Second)
	var now time.Duration
	f.begin(now)
	f.end(f.begin(time.Second))
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		now += time.Second
		f.end(f.begin(now))
	}))
}

// FuzzFlights compares with a list of all calls in flight. A byte is a step: its top bit ends a call, and otherwise one begins
// after some quarters of a bucket.
func FuzzFlights(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 0x80, 0x81, 9, 0x80, 0x83})
	f.Add([]byte{1, 0x80, 1, 0x80, 1, 0x80, 127, 127, 0xff, 0xfe})
	f.Fuzz(func(t *testing.T, steps []byte) {
		type flight struct {
			begun  time.Duration
			bucket uint32
		}
		var now time.Duration
		var list []flight
		flights := newFlights(10 * time.Second)
		for _, step := range steps[:min(len(steps), 300)] { // every step looks at all of them
			if step&0x80 == 0 {
				now += time.Duration(step) * 250 * time.Millisecond
				list = append(list, flight{now, flights.begin(now)})
			} else if len(list) > 0 {
				i := int(step) % len(list)
				flights.end(list[i].bucket)
				list = slices.Delete(list, i, i+1)
			}
			for _, limit := range []time.Duration{0, 400 * time.Millisecond, 3 * time.Second, noSlowLimit} {
				least, most := 0, 0
				for _, l := range list {
					if now-l.begun > limit {
						most++
					}
					if now-l.begun-time.Second > limit {
						least++
					}
				}
				got := flights.overdue(now, limit)
				require.True(t, least <= got && got <= most, "%d overdue by %v: want %d to %d", got, limit, least, most)
			}
			flights.check(t, len(list))
		}
	})
}

// check asserts that the buckets are in order, that none is empty, and that they count so many calls.
func (f *flights) check(t *testing.T, calls int) {
	t.Helper()
	for i, b := range f.buckets {
		require.Positive(t, b.calls)
		require.True(t, i == 0 || f.buckets[i-1].number < b.number)
		calls -= b.calls
	}
	require.Zero(t, calls, "calls in flight")
}

// Permits that nobody ended left a bucket each, without bound, and every judgement walked over all of them.
func TestRegression_ForgottenPermitsHaveBoundedBuckets(t *testing.T) {
	f := newFlights(10 * time.Second)
	for i := range 10_000 {
		f.begin(time.Duration(i) * time.Second)
		require.LessOrEqual(t, len(f.buckets), maxTakeoffs)
	}
	f.check(t, 10_000)
	assert.Equal(t, 10_000, f.overdue(time.Hour*24, time.Second), "none is forgotten")
	kept := f.buckets[len(f.buckets)-1]
	assert.Equal(t, takeoffs{9_999, 1}, kept)
	assert.Equal(t, takeoffs{10_000 - maxTakeoffs, 10_000 - maxTakeoffs + 1}, f.buckets[0])
}

// takeoff is a call in flight as a model of flights knows it: merged with others it takes over the number of the later.
type takeoff struct {
	begun  time.Duration
	bucket uint32
	number int64
}

// flightsModel is a list of all calls in flight, oldest first.
type flightsModel []takeoff

// begin adds a call and merges the oldest buckets while there are too many.
func (m *flightsModel) begin(begun time.Duration, bucket uint32) {
	*m = append(*m, takeoff{begun, bucket, int64(begun / time.Second)})
	var numbers []int64
	for _, c := range *m {
		numbers = append(numbers, c.number)
	}
	if numbers = slices.Compact(numbers); len(numbers) > maxTakeoffs {
		for i := range *m {
			(*m)[i].number = max((*m)[i].number, numbers[1])
		}
	}
}

func (m flightsModel) overdue(now, limit time.Duration) (calls int) {
	for _, c := range m {
		if now-time.Duration(c.number+1)*time.Second >= limit {
			calls++
		}
	}
	return calls
}

// Merged buckets are those of a plain list of calls, whichever of them end in between.
func TestFlightsMergeAsTheirModel(t *testing.T) {
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 14))
		f, model, now := newFlights(10*time.Second), flightsModel{}, time.Duration(0)
		for range 2000 {
			now += time.Duration(r.IntN(1500)) * time.Millisecond
			if len(model) == 0 || r.IntN(4) > 0 {
				model.begin(now, f.begin(now))
			} else {
				i := r.IntN(len(model)) * r.IntN(2) // also the oldest
				f.end(model[i].bucket)
				model = slices.Delete(model, i, i+1)
			}
			require.LessOrEqual(t, len(f.buckets), maxTakeoffs)
			for _, limit := range []time.Duration{0, 3 * time.Second, 200 * time.Second} {
				require.Equal(t, model.overdue(now, limit), f.overdue(now, limit))
			}
		}
		f.check(t, len(model))
		require.Greater(t, len(model), 2*maxTakeoffs, "much was merged")
		for len(model) > 0 {
			i := r.IntN(len(model))
			f.end(model[i].bucket)
			model = slices.Delete(model, i, i+1)
		}
		assert.Empty(t, f.buckets)
	}
}
