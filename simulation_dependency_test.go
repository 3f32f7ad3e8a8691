package breaker

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// never is a draw for a call of median latency that chance does not fail.
var never = draw{failure: math.Nextafter(1, 0)}

func TestDependencyLatency(t *testing.T) {
	logNormal := Dependency{P50: 10 * time.Millisecond, P99: 80 * time.Millisecond}
	for name, tt := range map[string]struct {
		dependency Dependency
		normal     float64
		want       time.Duration
	}{
		"median":                      {logNormal, 0, 10 * time.Millisecond},
		"99th percentile":             {logNormal, z99, 80 * time.Millisecond},
		"as far below as above":       {logNormal, -z99, 1250 * time.Microsecond},
		"without P99 all take P50":    {Dependency{P50: 10 * time.Millisecond}, z99, 10 * time.Millisecond},
		"P99 equal to P50 is no tail": {Dependency{P50: time.Second, P99: time.Second}, z99, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModelled(tt.dependency, time.Minute)
			got := m.start(0, draw{latency: tt.normal, failure: 0.5})
			assert.InDelta(t, tt.want, got.takes, 10)
			assert.False(t, got.failed)
		})
	}
}

func TestDependencyFailsByChance(t *testing.T) {
	for name, tt := range map[string]struct {
		incidents []Incident
		failure   float64
		want      fate
	}{
		"just below the rate":         {nil, math.Nextafter(0.2, 0), fate{takes: time.Second, failed: true}},
		"at the rate":                 {nil, 0.2, fate{takes: time.Second}},
		"the incident adds":           {[]Incident{{0, time.Minute, 1, 0.5}}, 0.59, fate{time.Second, true, true}},
		"to what does not fail":       {[]Incident{{0, time.Minute, 1, 0.5}}, 0.61, fate{takes: time.Second}},
		"its own share stays its own": {[]Incident{{0, time.Minute, 1, 0.5}}, 0.19, fate{takes: time.Second, failed: true}},
		"an outage fails everything":  {[]Incident{{0, time.Minute, 1, 1}}, never.failure, fate{time.Second, true, true}},
		"a failing call takes P50": {
			[]Incident{{0, time.Minute, 7, 1}}, never.failure, fate{time.Second, true, true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModelled(Dependency{P50: time.Second, FailureRate: 0.2, Incidents: tt.incidents}, time.Minute)
			assert.Equal(t, tt.want, m.start(0, draw{failure: tt.failure}))
		})
	}
}

func TestDependencyIncidentsApplyByStartAndMultiply(t *testing.T) {
	m := newModelled(Dependency{P50: time.Second, Incidents: []Incident{
		{After: 10 * time.Second, For: 10 * time.Second, Slower: 3, Failing: 0.5},
		{After: 15 * time.Second, For: 10 * time.Second, Slower: 2, Failing: 0.5},
	}}, time.Minute)
	for i, step := range []struct {
		at      time.Duration
		failure float64
		want    fate
	}{
		{10*time.Second - 1, 0, fate{takes: time.Second}},
		{10 * time.Second, 0.49, fate{time.Second, true, true}},
		{10 * time.Second, 0.5, fate{takes: 3 * time.Second}},
		{15*time.Second - 1, 0.5, fate{takes: 3 * time.Second}},
		{15 * time.Second, 0.74, fate{time.Second, true, true}},
		{15 * time.Second, 0.75, fate{takes: 6 * time.Second}},
		{20 * time.Second, 0.5, fate{takes: 2 * time.Second}},
		{25*time.Second - 1, 0.5, fate{takes: 2 * time.Second}},
		{25 * time.Second, 0, fate{takes: time.Second}},
	} {
		assert.Equal(t, step.want, m.start(step.at, draw{failure: step.failure}), "step %d", i)
	}
}

func TestDependencyTimeout(t *testing.T) {
	slow := []Incident{{0, time.Minute, 4, 0}}
	for name, tt := range map[string]struct {
		timeout time.Duration
		failure float64
		want    fate
	}{
		"runs as long as the timeout":    {4 * time.Second, 0.5, fate{takes: 4 * time.Second}},
		"runs longer":                    {4*time.Second - 1, 0.5, fate{4*time.Second - 1, true, true}},
		"a failure is cut short as well": {time.Millisecond, 0, fate{takes: time.Millisecond, failed: true}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModelled(Dependency{P50: time.Second, FailureRate: 0.1, Incidents: slow}, tt.timeout)
			assert.Equal(t, tt.want, m.start(0, draw{failure: tt.failure}))
		})
	}
}

func TestDependencyQueuesAndSheds(t *testing.T) {
	m := newModelled(Dependency{P50: 10 * time.Millisecond, Capacity: 2}, time.Minute)
	for call, want := range []fate{
		{takes: 10 * time.Millisecond},
		{takes: 10 * time.Millisecond},
		{takes: 15 * time.Millisecond},
		{takes: 20 * time.Millisecond},
		{takes: 25 * time.Millisecond},
		{takes: 30 * time.Millisecond},
		{10 * time.Millisecond, true, true},
	} {
		assert.Equal(t, want, m.start(0, never), "call %d", call+1)
	}
	m.end(0)
	m.end(0)
	assert.Equal(t, fate{takes: 30 * time.Millisecond}, m.start(0, never), "the two that ended made room")
}

func TestDependencyOutageLeavesCapacityCold(t *testing.T) {
	outage := Incident{After: time.Second, For: time.Second, Failing: 1}
	warmsUp := func(capacity int, i Incident) Dependency {
		return Dependency{Capacity: capacity, Warmup: time.Minute, Incidents: []Incident{i}}
	}
	for name, tt := range map[string]struct {
		dependency Dependency
		want       int
	}{
		"a twentieth":           {warmsUp(100, outage), 5},
		"at least one":          {warmsUp(10, outage), 1},
		"not without warm-up":   {Dependency{Capacity: 100, Incidents: []Incident{outage}}, 100},
		"not short of outage":   {warmsUp(100, Incident{time.Second, time.Second, 1, 0.99}), 100},
		"within a tick":         {warmsUp(100, Incident{1990 * time.Millisecond, 5 * time.Millisecond, 1, 1}), 5},
		"from the first moment": {warmsUp(100, Incident{0, 2 * time.Second, 1, 1}), 5},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tt.want, newModelled(tt.dependency, time.Minute).capacityAt(2*time.Second))
		})
	}
}

// warming is a dependency of capacity 20 that regrows by 0.2 in each tick it is used, as in the reference experiment, and by
// 0.05 when idle. It is cold from the end of its outage, at 1 s.
func warming() *modelled {
	return newModelled(Dependency{
		P50: time.Nanosecond, Capacity: 20, Warmup: 10 * time.Second, Incidents: []Incident{{0, time.Second, 1, 1}},
	}, time.Minute)
}

// ticks offers so many calls in each of the next n ticks, one at a time.
func (m *modelled) ticks(n, calls int) {
	for range n {
		at := m.tickEnds - warmupTick/2
		for range calls {
			m.start(at, never)
			m.end(at)
		}
		m.advance(m.tickEnds)
	}
}

func TestDependencyWarmup(t *testing.T) {
	type load struct{ ticks, calls int }
	for name, tt := range map[string]struct {
		loads []load
		want  float64
	}{
		"cold":                                  {nil, 1},
		"used":                                  {[]load{{10, 1}}, 3},
		"used to the full":                      {[]load{{10, 2}}, 3},
		"idle, a quarter as fast":               {[]load{{40, 0}}, 3},
		"never beyond full":                     {[]load{{200, 1}}, 20},
		"idle never beyond full":                {[]load{{2000, 0}}, 20},
		"knocked back":                          {[]load{{10, 1}, {1, 7}}, 2},
		"exactly twice the capacity is allowed": {[]load{{10, 1}, {1, 6}}, 3.2},
		"twice the whole calls of it":           {[]load{{14, 1}, {1, 7}}, 2.8},
		"no lower than cold":                    {[]load{{10, 1}, {9, 50}}, 1},
		"knocked back from full as well":        {[]load{{200, 1}, {2, 41}}, 18},
	} {
		t.Run(name, func(t *testing.T) {
			m := warming()
			m.advance(time.Second)
			for _, l := range tt.loads {
				m.ticks(l.ticks, l.calls)
			}
			assert.InDelta(t, tt.want, m.capacity, 1e-9)
		})
	}
}

func TestDependencyIsKnockedBackNoLowerThanCold(t *testing.T) {
	m := newModelled(Dependency{
		P50: time.Nanosecond, Capacity: 100, Warmup: 10 * time.Second, Incidents: []Incident{{0, time.Second, 1, 1}},
	}, time.Minute)
	m.advance(time.Second)
	m.ticks(3, 100)
	assert.InDelta(t, 5, m.capacity, 1e-9)
}

func TestDependencyStaysColdDuringAnOutage(t *testing.T) {
	m := warming()
	m.ticks(9, 1)
	assert.InDelta(t, 1, m.capacity, 0)
	m.ticks(1, 1)
	require.Equal(t, time.Second, m.tickEnds-warmupTick)
	assert.InDelta(t, 1, m.capacity, 0, "the tick that the outage ends with is part of it")
	m.ticks(1, 1)
	assert.InDelta(t, 1.2, m.capacity, 1e-9)
}

func TestDependencyStrain(t *testing.T) {
	const span = 10 * time.Second
	t.Run("never exceeded", func(t *testing.T) {
		m := newModelled(Dependency{P50: 1, Capacity: 1}, time.Minute)
		m.start(0, never)
		assert.False(t, m.strainedWithin(time.Second, span))
	})
	t.Run("exactly full", func(t *testing.T) {
		m := newModelled(Dependency{P50: 1, Capacity: 1}, time.Minute)
		m.start(0, never)
		m.end(time.Second)
		assert.False(t, m.strainedWithin(time.Second, span))
	})
	t.Run("unlimited", func(t *testing.T) {
		m := newModelled(Dependency{P50: 1}, time.Minute)
		m.start(0, never)
		m.start(0, never)
		assert.False(t, m.strainedWithin(0, span))
	})
	t.Run("exceeded until a call ends", func(t *testing.T) {
		m := newModelled(Dependency{P50: 1, Capacity: 1}, time.Minute)
		m.start(0, never)
		m.start(0, never)
		assert.True(t, m.strainedWithin(time.Hour, span), "it still is")
		m.end(time.Hour)
		assert.True(t, m.strainedWithin(time.Hour+span, span))
		assert.False(t, m.strainedWithin(time.Hour+span+1, span))
	})
	t.Run("not full until it has warmed up", func(t *testing.T) {
		m := warming()
		full := time.Second + 380*warmupTick // idle: 19 at 0.05 a tick
		assert.True(t, m.strainedWithin(full-1, 0))
		assert.True(t, m.strainedWithin(full+span, span))
		assert.False(t, m.strainedWithin(full+warmupTick+span, span), "a tick later, as the sum of the steps is rounded")
	})
}
