package breaker

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// failureRule and slowRule are the tests of the zero settings.
func failureRule() testRule { return newGauges(zeroRules()).failures.rule }
func slowRule() testRule    { return newGauges(zeroRules()).slowness.rule }

func zeroRules() *Settings {
	s := Settings{}.WithDefaults()
	return &s
}

// trialTest is a test beside its baseline.
type trialTest struct {
	test     sequential
	baseline ring
	frozen   bool // the baseline counts nothing
}

func newTrialTest(rule testRule) *trialTest {
	return &trialTest{test: sequential{rule: rule}, baseline: newRing(defaultBaselineWindow)}
}

// call counts a call as the machine does.
func (b *trialTest) call(now time.Duration, bad bool) (alarm bool) {
	if !b.frozen {
		b.baseline.at(now).add(bad && !b.test.rule.slow, bad && b.test.rule.slow)
	}
	if bad {
		return b.test.fail(now, 1, &b.baseline)
	}
	if b.test.score > 0 {
		b.test.pass(now, &b.baseline)
	}
	return false
}

// warm counts so many calls over so long, a given number of them bad, evenly, and returns when that is over.
func (b *trialTest) warm(calls, bad int, over time.Duration) (now time.Duration) {
	for i := range calls {
		now = over * time.Duration(i) / time.Duration(calls)
		b.baseline.at(now).add(false, false)
		if i*bad/calls != (i+1)*bad/calls {
			b.mark(now)
		}
	}
	return over
}

// mark makes the last call a bad one.
func (b *trialTest) mark(now time.Duration) {
	if b.test.rule.slow {
		b.baseline.at(now).slow++
	} else {
		b.baseline.at(now).failures++
	}
}

// plain is the sequential test written down as it is defined: a list of all calls, and sums over it.
type plain struct {
	rule                 testRule
	at                   []time.Duration
	bad                  []bool
	up, down             float64
	limit, rate          float64
	asked                bool
	numbersAt            time.Duration
	numbersOf            float64 // calls in the bucket of then
	score                float64
	since, sinceBad      float64
	sliceFrom            time.Duration
	gained, gainedBefore float64
	inSlice              bool
}

const plainBucket = defaultBaselineWindow / buckets

// among counts the calls of the buckets from one number to another, and the bad ones.
func (p *plain) among(from, to int64) (calls, bad float64) {
	for i, at := range p.at {
		if n := int64(at / plainBucket); n >= from && n <= to {
			calls++
			if p.bad[i] {
				bad++
			}
		}
	}
	return calls, bad
}

// numbers works the numbers out, if they are a bucket, a quarter of one or 500 calls old.
func (p *plain) numbers(now time.Duration) {
	n := int64(now / plainBucket)
	present, _ := p.among(n, n)
	if p.asked && n == int64(p.numbersAt/plainBucket) && now < p.numbersAt+plainBucket/4 && present < p.numbersOf+math.Min(refreshCalls, math.Max(imagined, p.numbersOf)) {
		return
	}
	p.asked, p.numbersAt, p.numbersOf = true, now, present
	first := max(0, n-buckets+1)
	calls, bad := p.among(first, n-2)
	covered := (time.Duration(n-1-first) * plainBucket).Seconds()
	if all, allBad := p.among(first, n); calls < math.Min(float64(p.rule.samples), math.Floor(all/2)) {
		calls, bad = all, allBad
		covered = (now - time.Duration(first)*plainBucket).Seconds()
	}
	share := (bad + imagined*p.rule.prior) / (calls + imagined)
	p0 := math.Min(0.95, share+2*math.Sqrt(share*(1-share)/(calls+imagined)))
	p1 := math.Max(p.rule.floor, p.rule.multiple*p0)
	if middle := (1 + p0) / 2; p1 > middle || p1 < 1.5*p0 {
		p1 = middle
	}
	p.up, p.down = math.Log(p1)-math.Log(p0), math.Log(1-p1)-math.Log(1-p0)
	p.rate = calls / math.Max(leastCovered.Seconds(), covered)
	p.limit = math.Log(math.Max(leastAlarm, p.rate*p.rule.every))
}

// call counts a call and reports whether it alarms.
func (p *plain) call(now time.Duration, bad bool) bool {
	p.at, p.bad = append(p.at, now), append(p.bad, bad)
	if !bad && p.score == 0 {
		return false
	}
	p.numbers(now)
	p.since++
	if !bad {
		if p.score += p.down; p.score <= 0 {
			p.forget()
		}
		return false
	}
	p.sinceBad++
	if !p.inSlice {
		p.inSlice, p.sliceFrom = true, -slice
	}
	switch {
	case now >= p.sliceFrom+2*slice:
		p.sliceFrom, p.gained, p.gainedBefore = now, 0, 0
	case now >= p.sliceFrom+slice:
		p.sliceFrom, p.gained, p.gainedBefore = p.sliceFrom+slice, 0, p.gained
	}
	left := float64(p.sliceFrom+slice-now) / float64(slice)
	gain := math.Min(p.up, math.Max(0, p.rule.share*p.limit-p.gained-left*p.gainedBefore))
	p.gained += gain
	p.score += gain
	return p.score >= p.limit-1e-6 && p.sinceBad/p.since >= p.rule.ratio
}

func (p *plain) forget() {
	p.score, p.since, p.sinceBad, p.gained, p.gainedBefore = 0, 0, 0, 0, 0
}

// The test does as the definition says: over gaps, bursts and turns of the baseline, for both of its kinds.
func TestSequentialIsAsDefined(t *testing.T) {
	alarms, withheld := 0, 0
	for seed := range uint64(12) {
		rule := failureRule()
		if seed%2 == 1 {
			rule = slowRule()
		}
		r := rand.New(rand.NewPCG(seed, 16))
		b, p := newTrialTest(rule), &plain{rule: rule}
		var now time.Duration
		share := 0.02
		for range 1500 {
			now += time.Duration(r.ExpFloat64() * float64(time.Second) / (1 + 30*float64(seed%3))).Truncate(time.Millisecond)
			switch r.IntN(150) {
			case 0:
				now += time.Duration(r.Int64N(int64(6 * time.Minute))).Truncate(time.Millisecond)
			case 1, 2, 3:
				share = r.Float64()
			case 4, 5, 6:
				share = 0.02
			}
			bad := r.Float64() < share
			want, got := p.call(now, bad), b.call(now, bad)
			require.Equal(t, want, got, "seed %d at %v", seed, now)
			require.InDelta(t, p.score, b.test.score, 1e-6, "seed %d at %v", seed, now)
			require.InDelta(t, p.limit, b.test.limit, 1e-9)
			require.InDelta(t, p.rate, b.test.rate, 1e-9)
			require.Equal(t, [2]uint32{uint32(p.since), uint32(p.sinceBad)}, [2]uint32{b.test.calls, b.test.badCalls})
			if bad && !got && b.test.score >= b.test.limit {
				withheld++
			}
			if got {
				alarms++
				p.forget()
				b.test.clear()
			}
		}
	}
	assert.Greater(t, alarms, 10)
	assert.Greater(t, withheld, 3, "evidence without a share that is worth it")
}

// The numbers, worked out by hand: 20 imagined calls, two standard errors, the floor, the multiple, and halfway to 1.
func TestSequentialRates(t *testing.T) {
	rule := testRule{multiple: 5, floor: 0.05, prior: 0.02}
	for _, test := range []struct {
		name   string
		rule   testRule
		bad    int
		calls  int
		p0, p1 float64
	}{
		{"nothing is known", rule, 0, 0, 0.02 + 2*math.Sqrt(0.02*0.98/20), 5 * (0.02 + 2*math.Sqrt(0.02*0.98/20))},
		{"the multiple", rule, 8, 980, 0.0142, 0.0711},
		{"the floor", testRule{multiple: 5, floor: 0.5, prior: 0.02}, 0, 99_980, 0.000017, 0.5},
		{"halfway, beyond which the multiple does not go", rule, 400, 980, 0.4314, 0.7157},
		{"halfway, where the multiple is next to nothing", testRule{multiple: 1.2, floor: 0.01, prior: 0.02}, 10, 980, 0.0168, 0.5084},
		{"nothing works", rule, 1000, 1000, 0.9890, 0.9945},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := float64(test.calls) + imagined
			p := (float64(test.bad) + imagined*test.rule.prior) / n
			want0 := math.Min(0.95, p+2*math.Sqrt(p*(1-p)/n))
			p0, p1 := test.rule.rates(Counts{Calls: test.calls, Failures: test.bad, Slow: 7}, 0)
			assert.InDelta(t, want0, p0, 1e-12)
			if test.p0 < 0.95 {
				assert.InDelta(t, test.p0, p0, 0.002)
				assert.InDelta(t, test.p1, p1, 0.008)
			} else {
				assert.Equal(t, []float64{0.95, 0.975}, []float64{p0, p1})
			}
		})
	}
}

// The test on slow calls goes by slow calls, the other by failures.
func TestSequentialCountsItsOwnKind(t *testing.T) {
	c := Counts{Calls: 1000, Failures: 300, Slow: 10}
	fails, slows := testRule{prior: 0.02, floor: 0.5}, testRule{prior: 0.02, floor: 0.5, slow: true}
	byFailures, _ := fails.rates(c, 0)
	bySlowness, _ := slows.rates(c, 0)
	assert.Greater(t, byFailures, 0.29)
	assert.Less(t, bySlowness, 0.03)
}

// frozen is a test whose numbers do not change, at a limit in bad calls.
func frozen(limit float64, rule testRule) *trialTest {
	b := newTrialTest(rule)
	b.baseline.at(0)
	b.test.bad, b.test.good, b.test.until = 1, -0.25, math.MaxInt64
	b.test.limit, b.test.rate, b.frozen = limit, 1, true
	return b
}

// The limit itself alarms, and a hair less does not.
func TestSequentialAlarmsAtTheLimit(t *testing.T) {
	b := frozen(3, testRule{share: 1})
	assert.False(t, b.call(1*time.Second, true))
	assert.False(t, b.call(2*time.Second, true))
	assert.Equal(t, 2.0/3, b.test.evidence(2*time.Second, &b.baseline))
	assert.True(t, b.call(3*time.Second, true))
	b = frozen(3.001, testRule{share: 1})
	for i := range 3 {
		assert.False(t, b.call(time.Duration(i)*time.Second, true))
	}
}

// A share is of the calls since the score last left 0: those before are not asked, those after all are.
func TestSequentialShareIsSinceTheScoreLeftNothing(t *testing.T) {
	for _, test := range []struct {
		good  int // after the first bad call, which leaves the score above 0
		alarm bool
	}{{3, true}, {0, true}, {11, true}, {12, false}} {
		b := frozen(8, testRule{share: 1, ratio: 0.5})
		var now time.Duration
		next := func(bad bool) bool { now += time.Second; return b.call(now, bad) }
		for range 1000 {
			next(false)
		}
		require.Zero(t, b.test.calls)
		for range 10 {
			require.False(t, next(true) && b.test.badCalls < 8)
		}
		for range test.good {
			next(false)
		}
		alarm := next(true)
		assert.Equal(t, test.alarm, alarm, "%d good calls: %d of %d bad, score %v", test.good, b.test.badCalls, b.test.calls, b.test.score)
	}
}

// A score that has come back to 0 forgets the calls as well, exactly at 0.
func TestSequentialForgetsAtNothing(t *testing.T) {
	b := frozen(8, testRule{share: 1})
	b.call(time.Second, true)
	for range 3 {
		b.call(time.Second, false)
	}
	require.Equal(t, [2]uint32{4, 1}, [2]uint32{b.test.calls, b.test.badCalls})
	b.call(time.Second, false)
	assert.Equal(t, [2]uint32{0, 0}, [2]uint32{b.test.calls, b.test.badCalls})
	assert.Zero(t, b.test.score)
}

// However many calls end badly within a slice, they add its share of the limit; after it the bound gives way by degrees, so that no
// burst across its end adds twice as much.
func TestSequentialSliceIsBounded(t *testing.T) {
	b := frozen(10, testRule{share: 0.5})
	require.False(t, b.test.fail(time.Second, 100, &b.baseline))
	require.False(t, b.test.fail(time.Second+slice-1, 100, &b.baseline))
	assert.Equal(t, 5.0, b.test.score)
	require.False(t, b.test.fail(time.Second+slice, 100, &b.baseline))
	assert.InDelta(t, 5.0, b.test.score, 1e-6)
	require.False(t, b.test.fail(time.Second+slice+slice/2, 100, &b.baseline))
	assert.InDelta(t, 7.5, b.test.score, 1e-6)
	assert.True(t, b.test.fail(time.Second+2*slice, 100, &b.baseline))
	assert.EqualValues(t, 500, b.test.badCalls)
}

// A lone failure before a burst begins a slice of its own. The burst, 200 ms long, opened the circuit across its end.
func TestRegression_BurstBehindALoneFailureIsOneEvent(t *testing.T) {
	b := frozen(10, testRule{share: 0.5})
	b.test.fail(time.Second, 1, &b.baseline)
	for at := 150 * time.Millisecond; at <= 350*time.Millisecond; at += 5 * time.Millisecond {
		require.False(t, b.test.fail(time.Second+at, 1, &b.baseline), "%v", at)
	}
}

// What a slice may add is not given back by what good calls take away.
func TestSequentialSliceIsNotGivenBack(t *testing.T) {
	b := frozen(8, testRule{share: 0.5})
	b.test.fail(time.Second, 100, &b.baseline)
	b.call(time.Second, false)
	b.test.fail(time.Second, 100, &b.baseline)
	assert.Equal(t, 3.75, b.test.score)
}

// The numbers serve for a quarter of a bucket, until the turn of the bucket, and until the calls have doubled: whatever comes first.
func TestSequentialRefreshes(t *testing.T) {
	for name, test := range map[string]struct {
		calls  int
		at     time.Duration // after the bad call at 35 s
		before bool          // one call, or one nanosecond, earlier
	}{
		"a quarter of a bucket":         {1, plainBucket / 4, false},
		"so many calls again, at first": {imagined, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTrialTest(failureRule())
			b.warm(300, 0, 30*time.Second)
			b.call(35*time.Second, true)
			good := b.test.good
			for range test.calls - 1 {
				b.test.score = 1
				b.call(35*time.Second+max(0, test.at-1), false)
			}
			require.Equal(t, good, b.test.good)
			b.test.score = 1
			b.call(35*time.Second+test.at, false)
			assert.NotEqual(t, good, b.test.good)
		})
	}
	b := newTrialTest(failureRule())
	b.warm(300, 0, 30*time.Second)
	b.call(59*time.Second, true)
	good := b.test.good
	b.call(time.Minute-1, true)
	require.Equal(t, good, b.test.good)
	b.call(time.Minute, true)
	assert.NotEqual(t, good, b.test.good, "the turn of the bucket")
}

// An incident of less than a bucket is no part of what is normal, unless there is little else.
func TestSequentialBaselineLags(t *testing.T) {
	b := newTrialTest(failureRule())
	now := b.warm(1000, 0, 4*plainBucket)
	for i := range 100 {
		b.call(now+time.Duration(i)*time.Millisecond, true)
	}
	lagged, _ := b.test.rule.rates(Counts{Calls: 750}, 0)
	_, p1 := b.test.rule.rates(Counts{Calls: 750}, 0)
	assert.InDelta(t, math.Log(p1/lagged), b.test.bad, 1e-9)
	young := newTrialTest(failureRule())
	young.warm(100, 0, time.Second)
	young.call(time.Second, true)
	p0, p1 := young.test.rule.rates(Counts{Calls: 101, Failures: 1}, 0)
	assert.InDelta(t, math.Log(p1/p0), young.test.bad, 1e-9, "all there is")
}

// Evidence is read by the numbers that a call would find, and reading changes nothing.
func TestSequentialEvidenceChangesNothing(t *testing.T) {
	b := newTrialTest(failureRule())
	now := b.warm(1000, 10, 4*plainBucket) + 10*time.Second
	for i := range 3 {
		b.call(now+time.Duration(i)*time.Second, true)
	}
	before := *b
	later := now + plainBucket
	e := b.test.evidence(later, &b.baseline)
	assert.Equal(t, before, *b)
	found := *b
	found.test.refresh(later, &found.baseline)
	assert.Equal(t, min(1, found.test.score/found.test.limit), e)
	b.test.score = 1e9
	assert.Equal(t, 1.0, b.test.evidence(later, &b.baseline))
}

// A streak needs more failures the more calls there are, and never fewer than chance would bring.
func TestSequentialStreak(t *testing.T) {
	for rate, want := range map[float64]int{0: 5, 0.5: 5, 1: 5, 3: 7, 9.9: 13, busy: 5 + busyExtra, 1000: 5 + busyExtra} {
		s := &sequential{rate: rate, row: 4}
		assert.Equal(t, want, s.streak(5), "%v calls/s", rate)
		s.row = 40
		assert.Equal(t, 40, s.streak(5))
	}
}

// No count overflows, and no number is NaN or infinite, from no call to more than a counter holds.
func TestSequentialExtremes(t *testing.T) {
	for _, c := range []Counts{{}, {Calls: 1, Failures: 1, Slow: 1}, {Calls: 1e9}, {Calls: 1e9, Failures: 1e9, Slow: 1e9}} {
		for _, rule := range []testRule{failureRule(), slowRule()} {
			p0, p1 := rule.rates(c, 0)
			assert.True(t, 0 < p0 && p0 < p1 && p1 < 1, "%+v: %v %v", c, p0, p1)
		}
	}
	b := newTrialTest(slowRule())
	for i := range 5 {
		now := time.Duration(i) * time.Second
		b.baseline.at(now).add(false, true)
		b.test.fail(now, math.MaxUint32, &b.baseline)
	}
	assert.EqualValues(t, uint32(math.MaxUint32), b.test.badCalls)
	assert.EqualValues(t, uint32(math.MaxUint32), b.test.calls)
	assert.False(t, math.IsNaN(b.test.score) || math.IsInf(b.test.score, 0))
}

// Independent calls of which p0 are bad raise an alarm once in e^limit calls at the most: here at a limit that a test can wait for.
func TestSequentialFalseAlarmsAreBounded(t *testing.T) {
	const between = 2000
	for _, p := range []float64{0.005, 0.05, 0.3} {
		r := rand.New(rand.NewPCG(uint64(p*1000), 1))
		b := newTrialTest(testRule{share: 1})
		b.baseline.at(0)
		p1 := min((1+p)/2, 5*p)
		b.test.bad, b.test.good = math.Log(p1/p), math.Log((1-p1)/(1-p))
		b.test.limit, b.test.until = math.Log(between), math.MaxInt64
		b.test.seen = 0
		alarms, calls := 0, 100*between
		for i := range calls {
			b.baseline.buckets[0].calls = 0 // the numbers hold
			if r.Float64() >= p {
				if b.test.score > 0 {
					b.test.pass(0, &b.baseline)
				}
			} else if b.test.fail(time.Duration(i)*time.Second, 1, &b.baseline) {
				alarms++
				b.test.clear()
			}
		}
		assert.LessOrEqual(t, alarms, calls/between+30, "at %v", p)
		assert.Positive(t, alarms, "at %v", p)
	}
}

// Three days of a dependency that is as bad as it was in the five minutes before raise no alarm.
func TestSequentialIsSilentOnWhatIsNormal(t *testing.T) {
	for _, rule := range []testRule{failureRule(), slowRule()} {
		for _, share := range []float64{0.001, 0.01, 0.1, 0.3, 0.6} {
			for _, rate := range []float64{0.5, 5} {
				r := rand.New(rand.NewPCG(uint64(share*1000), uint64(rate)))
				b := newTrialTest(rule)
				now := b.warm(int(rate*300), int(share*rate*300), 5*time.Minute)
				for now < 72*time.Hour {
					now += time.Duration(r.ExpFloat64() / rate * float64(time.Second))
					if b.call(now, r.Float64() < share) {
						t.Errorf("%v bad at %v/s: alarm at %v", share, rate, now)
						break
					}
				}
			}
		}
	}
}

// A shift of three times or more is seen within 0.9 to 2.5 times the calls that no test with as few false alarms can undercut on the mean.
func TestSequentialDetection(t *testing.T) {
	narrow := failureRule()
	narrow.floor, narrow.ratio = 0, 0 // any abnormal share
	for name, test := range map[string]struct {
		rule          testRule
		before, after float64
	}{
		"1 % to 30 %, any share": {narrow, 0.01, 0.3}, "10 % to 70 %": {failureRule(), 0.1, 0.7},
		"20 % failures": {failureRule(), 0.2, 0.6}, "25 % failures": {failureRule(), 0.25, 0.75}, "30 % failures": {failureRule(), 0.3, 0.9},
		"20 % slow": {slowRule(), 0.2, 0.6}, "25 % slow": {slowRule(), 0.25, 0.75}, "30 % slow": {slowRule(), 0.3, 0.9},
	} {
		t.Run(name, func(t *testing.T) {
			const rate, runs = 3.0, 60
			sum := 0.0
			for seed := range uint64(runs) {
				sum += float64(detect(t, test.rule, seed, rate, test.before, test.after))
			}
			distance := test.after*math.Log(test.after/test.before) + (1-test.after)*math.Log((1-test.after)/(1-test.before))
			least := math.Log(rate*month.Seconds()) / distance
			t.Logf("%.1f calls, %.2f of the least", sum/runs, sum/runs/least)
			assert.InDelta(t, (0.9+2.5)/2, sum/runs/least, (2.5-0.9)/2)
		})
	}
}

// detect returns after how many calls a shift is seen, six minutes after the start.
func detect(t *testing.T, rule testRule, seed uint64, rate, before, after float64) (calls int) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 9))
	b := newTrialTest(rule)
	now := b.warm(900, int(900*before), 5*time.Minute)
	next := func() { now += time.Duration(r.ExpFloat64() / rate * float64(time.Second)) }
	for ; now < 6*time.Minute; next() {
		require.False(t, b.call(now, r.Float64() < before), "seed %d: false alarm", seed)
	}
	for {
		calls++
		if b.call(now, r.Float64() < after) {
			return calls
		}
		require.Less(t, calls, 100_000)
		next()
	}
}
