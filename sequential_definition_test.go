package breaker

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// direct is the sequential test written down as it is defined: a list of outcomes, and sums over all of it.
type direct struct {
	at              []time.Duration // of what entered the baseline
	failed          []bool
	armed           bool
	numbersAt       time.Duration // when the numbers were worked out
	served          int           // outcomes that they have been used for
	up, down, limit float64
	longest         float64 // row of failures
	score           float64
	row             int // of failures
}

const directBucket = 30 * time.Second

func (d *direct) enter(at time.Duration, failed bool) {
	d.at, d.failed = append(d.at, at), append(d.failed, failed)
}

// between counts what entered from the start of one bucket to the start of another.
func (d *direct) between(from, to int) (failures, calls float64) {
	for i, at := range d.at {
		if n := int(at / directBucket); n >= from && n < to {
			calls++
			if d.failed[i] {
				failures++
			}
		}
	}
	return failures, calls
}

func (d *direct) numbers(now time.Duration) {
	current := int(now / directBucket)
	from, to := max(0, current-9), current-1
	f, n := d.between(from, to)
	covered := float64(to-from) * directBucket.Seconds()
	if n < 100 {
		f, n = d.between(from, current+1)
		covered = max(0.001, (now - time.Duration(from)*directBucket).Seconds())
	}
	d.numbersAt, d.served = now, 0
	if d.armed = n >= 100; !d.armed {
		d.score = 0
		return
	}
	p := (f + 0.5) / (n + 1)
	p0 := math.Min(0.95, p+2*math.Sqrt(p*(1-p)/(n+1)))
	p1 := math.Min((1+p0)/2, math.Max(0.05, 5*p0))
	if p1 < 1.5*p0 {
		p1 = (1 + p0) / 2
	}
	d.up, d.down = math.Log(p1)-math.Log(p0), math.Log(1-p1)-math.Log(1-p0)
	d.limit = math.Log(math.Max(100, n/covered*month.Seconds()))
	d.longest = math.Max(5, math.Ceil(d.limit/math.Log(1/p0)))
}

// judge returns why the last outcome that entered opens a closed circuit, 0 if it does not.
func (d *direct) judge() Reason {
	now, failed := d.at[len(d.at)-1], d.failed[len(d.failed)-1]
	if !d.armed || d.served == 500 || now/directBucket != d.numbersAt/directBucket {
		d.numbers(now)
	}
	d.served++
	row := 5.0
	if d.armed {
		row = d.longest
		d.score = math.Max(0, d.score+map[bool]float64{true: d.up, false: d.down}[failed])
	}
	if d.row++; !failed {
		d.row = 0
	}
	switch {
	case float64(d.row) >= row:
		return ReasonConsecutiveFailures
	case d.armed && failed && d.score >= d.limit:
		return ReasonRelativeFailures
	default:
		return 0
	}
}

// The machine does as the definition says, in every state, over gaps and through opens.
func TestSequentialIsAsDefined(t *testing.T) {
	opens := map[Reason]int{}
	for seed := range uint64(12) {
		random := rand.New(rand.NewPCG(seed, 0))
		s := Settings{Failures: Failures{FalseAlarmEvery: month}, SlowCalls: SlowCalls{Off: true}, BreakDuration: 5 * time.Second}
		if seed%2 == 0 {
			s.Recovery.Fraction = 1
		}
		x, d := trialOf(t, newBreaker(s)), new(direct)
		failing := 0.0
		for range 2500 {
			x.now += time.Duration(random.ExpFloat64() * float64(time.Second) / (1 + 20*float64(seed%4)))
			switch random.IntN(500) {
			case 0:
				x.now += time.Duration(random.Int64N(int64(10 * time.Minute)))
			case 1, 2, 3:
				failing = random.Float64() * random.Float64()
			case 4:
				x.reset(x.now)
				d.score, d.row = 0, 0
			}
			x.follow(d, random.Float64() < failing, opens)
			if t.Failed() {
				return
			}
		}
	}
	assert.Greater(t, opens[ReasonConsecutiveFailures], 5)
	assert.Greater(t, opens[ReasonRelativeFailures], 5)
}

// follow makes one call, if it is admitted, and compares the machine with the definition.
func (x *trial) follow(d *direct, failed bool, opens map[Reason]int) {
	ticket, ok, change := x.admit(x.now, passing)
	if !ok {
		return
	}
	wasClosed := x.state == Closed
	if change != nil {
		d.score, d.row = 0, 0
	}
	outcome := map[bool]Outcome{true: Transient, false: Success}[failed]
	d.enter(x.now, failed)
	change = x.end(&ticket, outcome, normal)
	var want, got Reason
	if wasClosed {
		want = d.judge()
	}
	if change != nil {
		d.score, d.row = 0, 0
		if wasClosed {
			got = change.reason
			opens[got]++
		}
	}
	assert.Equal(x.t, want.String(), got.String())
	assert.Equal(x.t, d.armed, x.test.armed)
	assert.InDelta(x.t, d.score, x.test.score, 1e-6)
	if d.armed {
		assert.InDelta(x.t, d.limit, x.test.limit, 1e-9)
	}
}
