package breaker

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// craft is a call in flight as a model of flights knows it.
type craft struct {
	began   time.Duration
	crossed bool
}

// sky is a model of flights: all calls in flight, each looked at every time.
type sky struct {
	width time.Duration
	calls map[int]*craft
}

// judge returns how many calls cross at now: those of which the whole slot is past the threshold.
func (s *sky) judge(now, limit time.Duration) (calls uint32) {
	for _, c := range s.calls {
		if end := (c.began/s.width + 1) * s.width; !c.crossed && now-limit >= end {
			c.crossed = true
			calls++
		}
	}
	return calls
}

func (s *sky) overdue() (calls uint32) {
	for _, c := range s.calls {
		if c.crossed {
			calls++
		}
	}
	return calls
}

// pilot moves flights and their model alike.
type pilot struct {
	t       *testing.T
	r       *rand.Rand
	f       *flights
	sky     sky
	now     time.Duration
	limit   time.Duration
	last    int
	crossed map[int]bool // by the end of the call
	ended   int          // calls
	due     uint32       // calls that judgements returned
}

func newPilot(t *testing.T, seed uint64, now, limit time.Duration) *pilot {
	f := newFlights(now, limit)
	return &pilot{
		t: t, r: rand.New(rand.NewPCG(seed, 7)), f: f, now: now, limit: limit, crossed: map[int]bool{},
		sky: sky{width: time.Duration(1) << f.shift, calls: map[int]*craft{}},
	}
}

func (p *pilot) judge() {
	got := p.f.judge(p.now, p.limit)
	require.Equal(p.t, p.sky.judge(p.now, p.limit), got, "at %v", p.now)
	p.due += got
}

func (p *pilot) begin() {
	if p.f.isDue(p.now) {
		p.judge()
	}
	p.f.begin(p.now)
	p.last++
	p.sky.calls[p.last] = &craft{began: p.now}
}

func (p *pilot) end(n int) {
	c := p.sky.calls[n]
	got := p.f.end(c.began)
	require.Equal(p.t, c.crossed, got, "call of %v ends at %v", c.began, p.now)
	delete(p.sky.calls, n)
	p.ended++
	if got {
		p.crossed[n] = true
	}
}

// some returns a call in flight, the oldest every now and then.
func (p *pilot) some() int {
	oldest, pick, left := p.last+1, 0, p.r.IntN(len(p.sky.calls))
	for n := range p.last + 1 {
		if p.sky.calls[n] == nil {
			continue
		}
		oldest = min(oldest, n)
		if left == 0 {
			pick = n
		}
		left--
	}
	if p.r.IntN(10) == 0 {
		return oldest
	}
	return pick
}

// Flights are those of a plain list, through gaps, rounds of the slots and thresholds that move, with calls that are long forgotten;
// and each call crosses once.
func TestFlightsAreAsTheirModel(t *testing.T) {
	crossings := 0
	for seed := range uint64(20) {
		limit := []time.Duration{100 * time.Millisecond, time.Second, 3 * time.Nanosecond, 90 * time.Minute}[seed%4]
		p := newPilot(t, seed, time.Duration(seed)*limit/3, limit)
		for range 3000 {
			p.now += time.Duration(p.r.Int64N(int64(limit)/8 + 2))
			switch n := p.r.IntN(400); {
			case n < 2:
				p.now += time.Duration(p.r.Int64N(int64(limit)*8 + 2))
			case n < 6:
				if l := limit*3/4 + time.Duration(p.r.Int64N(int64(limit)/2+1)); p.f.fits(l) {
					p.limit = l
				}
			case n < 60 && p.f.isDue(p.now):
				p.judge()
			case n < 240 && len(p.sky.calls) > 60 || n < 160 && len(p.sky.calls) > 0:
				p.end(p.some())
			default:
				p.begin()
			}
			require.Equal(t, p.sky.overdue(), p.f.overdue(), "seed %d at %v", seed, p.now)
		}
		for len(p.sky.calls) > 0 {
			p.end(p.some())
		}
		require.Zero(t, p.f.overdue())
		require.EqualValues(t, len(p.crossed), p.due, "each call that crossed did so once")
		crossings += len(p.crossed)
	}
	assert.Greater(t, crossings, 1000)
}

// None crosses early, and none later than a slot after it should, which is a tenth of the threshold at the most; nor is one due twice.
func TestFlightsCrossWithinASlot(t *testing.T) {
	for _, limit := range []time.Duration{20 * time.Microsecond, 100 * time.Millisecond, 3 * time.Second, time.Hour} {
		for i := range time.Duration(37) {
			start := 17*time.Second + i*limit/31
			f := newFlights(start, limit)
			width := time.Duration(1) << f.shift
			require.LessOrEqual(t, width, max(limit/10, 1<<leastShift))
			f.begin(start)
			require.Zero(t, f.judge(start+limit, limit), "not after exactly the threshold")
			require.EqualValues(t, 1, f.judge(start+limit+width, limit), "%v", limit)
			require.Zero(t, f.judge(start+limit+2*width, limit))
			require.Zero(t, f.judge(start+100*limit, limit))
			require.True(t, f.end(start))
		}
	}
}

// Judgements are due once a slot, at its first moment.
func TestFlightsAreDueOnceASlot(t *testing.T) {
	f := newFlights(time.Second, time.Second)
	width := time.Duration(1) << f.shift
	require.True(t, f.isDue(time.Second))
	f.judge(time.Second, time.Second)
	next := (time.Second/width + 1) * width
	assert.False(t, f.isDue(next-1))
	assert.True(t, f.isDue(next))
	f.judge(next+width/2, time.Second)
	assert.False(t, f.isDue(next+width-1))
	assert.True(t, f.isDue(next+width))
}

// A call that was forgotten for rounds and rounds of its slot is still one that has crossed, and does not hide those that came after.
func TestFlightsForgottenCallsStayOverdue(t *testing.T) {
	const limit = 100 * time.Millisecond
	f := newFlights(0, limit)
	width := time.Duration(1) << f.shift
	f.begin(0)
	for round := range time.Duration(50) {
		now := (round + 1) * slots * width // the same slot
		f.judge(now, limit)
		f.begin(now)
		require.EqualValues(t, 1, f.judge(now+2*limit, limit), "round %d", round)
		require.EqualValues(t, 2, f.overdue())
		require.True(t, f.end(now))
		require.EqualValues(t, 1, f.overdue())
	}
	require.True(t, f.end(0))
	require.Zero(t, f.overdue())
}

// Slots fit a threshold if it is 10 to 28 of them; new ones always fit their own.
func TestFlightsFit(t *testing.T) {
	f := newFlights(0, time.Second)
	width := time.Duration(1) << f.shift
	assert.True(t, f.fits(10*width))
	assert.False(t, f.fits(10*width-1))
	assert.True(t, f.fits((slots-4)*width-1))
	assert.False(t, f.fits((slots-4)*width))
	for limit := time.Duration(1); limit < noSlowLimit/4; limit += 1 + limit/5 {
		require.True(t, newFlights(0, limit).fits(limit), "%v", limit)
	}
	require.True(t, newFlights(0, noSlowLimit-1).fits(noSlowLimit-1))
}

// Calls begin without the lock while others end and are judged under it, and none is lost: all that began are gone once all have ended.
func TestFlightsFromManyGoroutines(t *testing.T) {
	const limit = 200 * time.Microsecond
	start := time.Now()
	f := newFlights(0, limit)
	var lock sync.Mutex
	var wait sync.WaitGroup
	var due, crossed uint32
	for range 4 {
		wait.Go(func() {
			var mine []time.Duration
			for n := range 4000 {
				now := time.Since(start)
				if f.isDue(now) {
					lock.Lock()
					due += f.judge(max(now, time.Duration(f.next.Load())), limit)
					lock.Unlock()
				}
				if !f.isDue(now) {
					f.begin(now)
					mine = append(mine, now)
				}
				if n%3 == 0 || n == 3999 {
					lock.Lock()
					for _, began := range mine {
						if f.end(began) {
							crossed++
						}
					}
					lock.Unlock()
					mine = mine[:0]
				}
			}
		})
	}
	wait.Wait()
	for i := range f.begun {
		require.Equal(t, f.ended[i], f.begun[i].Load(), "slot %d", i)
	}
	assert.Zero(t, f.overdue())
	assert.LessOrEqual(t, due, crossed, "whatever was due had crossed")
}

// A call that begins, is judged and ends costs no allocation.
func TestFlightsDoNotAllocate(t *testing.T) {
	const limit = time.Second
	f := newFlights(0, limit)
	var now time.Duration
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		now += 70 * time.Millisecond
		f.judge(now, limit)
		f.begin(now)
		f.end(now)
	}))
}
