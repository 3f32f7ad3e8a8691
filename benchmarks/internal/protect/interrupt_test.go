package protect

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestPlan_meets_what_touches_calls_in_flight(t *testing.T) {
	const from, length, took = 10 * time.Second, time.Second, 100 * time.Millisecond
	stall, freeze := Incident{Stall: true}, Incident{Freeze: true}
	for _, test := range []struct {
		name     string
		incident Incident
		at       time.Duration
		want     plan
	}{
		{"over before a stall", stall, from - took, plan{latency: took}},
		{"in flight as a stall begins", stall, from - took + 1, plan{latency: took + length}},
		{"begun in a stall", stall, from + length/4, plan{latency: took + 3*length/4}},
		{"begun after a stall", stall, from + length, plan{latency: took}},
		{"over before a freeze", freeze, from - took, plan{latency: took}},
		{"ended in a freeze", freeze, from - took + 1, plan{latency: took, frozen: length - 1}},
		{"refused", Incident{Refusing: true, Failing: 1}, from, plan{latency: refused, fails: true}},
		{"refused no more", Incident{Refusing: true, Failing: 1}, from + length, plan{latency: took}},
	} {
		test.incident.After, test.incident.For = from, length
		d := Dependency{Latency: LogNormal(took, took), Incidents: []Incident{test.incident}}
		assert.Equal(t, test.want, d.plan(random(), test.at), test.name)
	}
}

func TestPlan_long_calls_outlive_a_freeze(t *testing.T) {
	p := plan{latency: 10 * time.Second}
	p.meet(Incident{Freeze: true, After: time.Second, For: time.Second}, 0)
	assert.Equal(t, plan{latency: 10 * time.Second}, p)
}

func TestPlan_a_reset_fails_calls_in_flight_at_one_moment(t *testing.T) {
	const reset = 10 * time.Second
	d := Dependency{Latency: LogNormal(time.Second, time.Second), Incidents: []Incident{{Reset: true, After: reset}}}
	for _, test := range []struct {
		name string
		at   time.Duration
		want plan
	}{
		{"over before", reset - time.Second, plan{latency: time.Second}},
		{"just begun", reset - 1, plan{latency: 1, fails: true}},
		{"nearly over", reset - time.Second + 1, plan{latency: time.Second - 1, fails: true}},
		{"begun at that moment", reset, plan{latency: time.Second}},
	} {
		assert.Equal(t, test.want, d.plan(random(), test.at), test.name)
	}
}

func TestGrowing(t *testing.T) {
	const fast, slow = time.Millisecond, time.Minute
	l := Growing(LogNormal(fast, fast), LogNormal(slow, slow), 0.05, 0.6, time.Hour)
	for at, want := range map[time.Duration]float64{0: 0.05, 30 * time.Minute: 0.325, time.Hour: 0.6} {
		r, n := random(), 0
		for range 10_000 {
			n += count(l(r, at) == slow)
		}
		assert.InDelta(t, want, float64(n)/10_000, 0.02, "at %v", at)
	}
	assert.Equal(t, 20*fast, Slower(LogNormal(fast, fast), 20)(random(), 0))
}

func TestRun_a_frozen_process_makes_no_call_and_sees_all_end_at_once(t *testing.T) {
	s := Scenario{Length: time.Minute, Load: Load{PerSecond: 100}, Dependency: Dependency{
		Latency:   LogNormal(time.Second, time.Second),
		Incidents: []Incident{{After: 30 * time.Second, For: 10 * time.Second, Freeze: true}},
	}}
	_, r := drive(t, s, scriptedEntry(0, 0), 1)
	assert.Zero(t, r.sum(30*time.Second, 40*time.Second, func(s Second) int { return s.Offered }))
	assert.InEpsilon(t, 100, r.Seconds[29].Late, 0.3, "all that was in flight is late")
	assert.Zero(t, r.Seconds[27].Late)
	assert.Zero(t, r.Regret.Stake-r.sum(0, s.Length, admitted), "and good all the same")
}

func TestRun_calls_at_equal_times(t *testing.T) {
	s := Scenario{Length: 10 * time.Second, Load: Load{Every: 3 * time.Second}, Dependency: Dependency{Latency: usual()}}
	_, r := drive(t, s, scriptedEntry(0, 0), 1)
	for i, second := range r.Seconds[:10] {
		assert.Equal(t, count(i > 0 && i%3 == 0), second.Offered, "second %d", i)
	}
}

func TestRun_hurried_callers_run_out_of_time_and_their_calls_are_moot(t *testing.T) {
	s := Scenario{Length: time.Minute, Load: Load{PerSecond: 100, Hurried: 1, Budget: 10 * time.Millisecond}, Dependency: Dependency{
		Latency: LogNormal(5*time.Millisecond, 5*time.Millisecond),
	}}
	_, r := drive(t, s, scriptedEntry(0, 0), 1)
	assert.InEpsilon(t, 3000, r.sum(0, s.Length, succeeded), 0.1, "half of the budgets are enough")
	assert.InDelta(t, r.sum(0, s.Length, succeeded), r.Regret.Stake, 1)
	assert.Zero(t, r.Regret.Total())
}
