package protect

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// byHand is a record of a dependency whose p99 is 100 ms, so that a bad call costs 1 and 10 a second.
func byHand(s Scenario) *Record {
	return &Record{scenario: s, p99: 100 * time.Millisecond, Seconds: make([]Second, 100)}
}

func TestFate(t *testing.T) {
	const ms, standard = time.Millisecond, 300 * time.Millisecond
	for _, test := range []struct {
		name   string
		call   plan
		leaves time.Duration
		want   fate
	}{
		{"fast", plan{latency: 10 * ms}, never, good},
		{"at the standard", plan{latency: standard}, never, good},
		{"over it", plan{latency: standard + 1}, never, bad},
		{"failing", plan{latency: ms, fails: true}, never, bad},
		{"given up before it would have ended", plan{latency: 10 * ms}, 9 * ms, moot},
		{"a failure that nobody waits for", plan{latency: 10 * ms, fails: true}, 9 * ms, moot},
		{"ended as it was given up", plan{latency: 10 * ms}, 10 * ms, good},
		{"hanging until a time-out that is over the standard", plan{latency: never}, 5 * time.Second, bad},
		{"hanging, and given up before anybody could tell", plan{latency: never}, standard - 1, moot},
	} {
		assert.Equal(t, test.want, fateOf(test.call, test.leaves, standard), test.name)
	}
}

func TestRegret_of_hand_made_calls(t *testing.T) {
	const second = time.Second
	r := byHand(Scenario{})
	for _, o := range []outcome{
		{fate: good, admitted: true, took: second / 100}, // costs nothing
		{fate: good}, // 1
		{fate: good}, // 1
		{fate: bad, admitted: true, took: 2 * second, whole: second},  // 1 + 20; at stake were 1 + 10
		{fate: bad, admitted: true, failed: true, took: 0, whole: 0},  // 1
		{fate: bad, whole: 5 * second},                                // costs nothing; at stake were 1 + 50
		{fate: moot, admitted: true, took: second, whole: 5 * second}, // costs nothing
		{fate: moot}, // costs nothing
	} {
		r.add(o)
	}
	assert.Equal(t, Regret{Offered: 8, GoodRefused: 2, BadAdmitted: 22, Stake: 3 + 11 + 1 + 51}, r.Regret)
	assert.InDelta(t, 24, r.Regret.Total(), 1e-9)
	assert.InDelta(t, 3, r.Regret.PerCall(), 1e-9)
	assert.InDelta(t, 24.0/66, r.Regret.Share(), 1e-9)
	assert.Zero(t, Regret{}.Share())
}

func TestRegret_under_limited_capacity_is_against_the_oracle(t *testing.T) {
	const ms = time.Millisecond
	limited := Scenario{Oracle: true, Dependency: Dependency{Incidents: []Incident{{After: 10 * time.Second}}}}
	record := func(served, refused, failed int) *Record {
		r := byHand(limited)
		r.add(outcome{at: time.Second}) // refused in health
		r.add(outcome{at: time.Second, admitted: true, took: 100 * ms})
		for range served {
			r.add(outcome{at: 10 * time.Second, admitted: true, took: 300 * ms})
		}
		for range refused {
			r.add(outcome{at: 10 * time.Second})
		}
		for range failed {
			r.add(outcome{at: 10 * time.Second, admitted: true, failed: true, took: 100 * ms}) // 2 each
		}
		return r
	}
	oracle := record(7, 3, 0)
	for _, test := range []struct {
		name                    string
		served, refused, failed int
		want                    Regret
	}{
		{"as good as the oracle", 7, 3, 0, Regret{12, 1, 0, 9}},
		{"better than the oracle", 8, 2, 0, Regret{12, 1, 0, 10}},
		{"refuses too many", 4, 6, 0, Regret{12, 4, 0, 9}},
		{"overruns it and refuses few", 2, 1, 7, Regret{12, 2, 14, 23}},
	} {
		r := record(test.served, test.refused, test.failed)
		r.against(oracle)
		assert.Equal(t, test.want, r.Regret, test.name)
	}
	late := byHand(limited)
	late.add(outcome{at: 10 * time.Second, admitted: true, took: 301 * ms})
	assert.InDelta(t, 4.01, late.Regret.BadAdmitted, 1e-9, "slower than the standard is bad")
}

func TestRegret_of_a_breaker_that_is_known(t *testing.T) {
	_, none := drive(t, outage(), scriptedEntry(0, 0), 1)
	assert.Zero(t, none.Regret.GoodRefused)
	assert.InEpsilon(t, none.Regret.BadAdmitted, none.Regret.Stake-24_000+6000, 0.02, "it admits all that is bad")
	_, all := drive(t, outage(), scriptedEntry(0, time.Hour), 1)
	assert.Zero(t, all.Regret.BadAdmitted)
	assert.InEpsilon(t, 18_000, all.Regret.GoodRefused, 0.02, "it refuses three good minutes of four")
	_, oracle := drive(t, outage(), scriptedEntry(time.Minute, 2*time.Minute), 1)
	assert.LessOrEqual(t, oracle.Regret.Total(), 2.0, "but for calls at the very edges")
	assert.InDelta(t, 1, none.Regret.Share()+all.Regret.Share(), 1e-9, "each of the two regrets what the other does not")
}

func TestHealthyP99(t *testing.T) {
	const ms = time.Millisecond
	assert.InEpsilon(t, 30*ms, healthyP99(usual(), time.Hour), 0.05)
	swing := healthyP99(Swinging(LogNormal(10*ms, 10*ms+1), 3, time.Hour), time.Hour)
	assert.InEpsilon(t, 30*ms, swing, 0.01, "the whole swing is seen")
}

func TestMedianRegret(t *testing.T) {
	runs := []Regret{{GoodRefused: 5}, {BadAdmitted: 1}, {GoodRefused: 1, BadAdmitted: 2}}
	assert.Equal(t, runs[2], medianRegret(runs))
}

func TestRank(t *testing.T) {
	const peer, other, tuned = "gobreaker, as it comes", "gobreaker, tuned", "ours, tuned"
	figures := map[string]float64{ZeroSettings: 10, peer: 9, tuned: 1, "no breaker, for scale": 0}
	assert.Equal(t, 2, Rank(ZeroSettings, figures), "our other entries and no breaker do not contend")
	assert.Equal(t, 1, Rank(peer, figures))
	figures[other] = 9.995
	assert.Equal(t, 2, Rank(ZeroSettings, figures), "less by less than a thousandth is even")
	figures[other] = 9.98
	assert.Equal(t, 3, Rank(ZeroSettings, figures))
}

func TestResults_are_kept_and_joined(t *testing.T) {
	file := filepath.Join(t.TempDir(), "field.json")
	p := Plan{Pace: Quick}
	mine := Results{{Scenario: "a", Entry: "x", Regret: Regret{Offered: 2, GoodRefused: 1}}}
	field := Results{mine[0], {Scenario: "a", Entry: "y"}, {Scenario: "b", Entry: "y"}}
	field[0].Regret.GoodRefused = 9
	require.NoError(t, field.Write(file, p))
	p.Entries = []string{"x"}
	read, err := ReadField(file, p)
	require.NoError(t, err)
	assert.Equal(t, field, read)
	assert.Equal(t, Results{mine[0], field[1]}, mine.Within(read), "what ran anew stands, and other scenarios are left out")
	p.Runs = 7
	_, err = ReadField(file, p)
	assert.ErrorContains(t, err, "other flags")
}

func TestResults_sums_are_of_entries_that_ran_everywhere(t *testing.T) {
	scenarios := []Scenario{{Key: "a"}, {Key: "b"}}
	results := Results{
		{Scenario: "a", Entry: "x", Regret: Regret{Offered: 2, GoodRefused: 1}},
		{Scenario: "b", Entry: "x", Regret: Regret{Offered: 4, GoodRefused: 4}},
		{Scenario: "a", Entry: "y"},
	}
	assert.Equal(t, map[string]float64{"x": 5}, results.Sums(scenarios, PlainTotal))
	assert.Equal(t, map[string]float64{"x": 1.5}, results.Sums(scenarios, CallTotal))
}
