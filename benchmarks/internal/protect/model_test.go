package protect

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func random() *rand.Rand { return rand.New(rand.NewPCG(1, 1)) }

// quantiles returns the quantiles of 100,000 draws.
func quantiles(l Latency, at time.Duration, qs ...float64) []time.Duration {
	r := random()
	draws := make([]time.Duration, 100_000)
	for i := range draws {
		draws[i] = l(r, at)
	}
	slices.Sort(draws)
	var found []time.Duration
	for _, q := range qs {
		found = append(found, draws[int(q*float64(len(draws)))])
	}
	return found
}

func TestLatency_has_its_quantiles(t *testing.T) {
	const ms = time.Millisecond
	swing := Swinging(LogNormal(10*ms, 30*ms), 3, time.Hour)
	for _, test := range []struct {
		name    string
		latency Latency
		at      time.Duration
		q       float64
		want    time.Duration
	}{
		{"log-normal, median", LogNormal(10*ms, 30*ms), 0, 0.5, 10 * ms},
		{"log-normal, p99", LogNormal(10*ms, 30*ms), 0, 0.99, 30 * ms},
		{"two-humped, below the middle", TwoHumped(ms, 25*ms), 0, 0.25, ms},
		{"two-humped, above the middle", TwoHumped(ms, 25*ms), 0, 0.75, 25 * ms},
		{"swinging, at the start", swing, 0, 0.5, 10 * ms},
		{"swinging, at its height", swing, 30 * time.Minute, 0.5, 30 * ms},
		{"swinging, back again", swing, time.Hour, 0.5, 10 * ms},
	} {
		got := quantiles(test.latency, test.at, test.q)[0]
		assert.InEpsilon(t, test.want, got, 0.05, test.name)
	}
}

func TestDependency_plans_by_the_incident_a_call_starts_in(t *testing.T) {
	const from, to = 10 * time.Second, 20 * time.Second
	fixed := LogNormal(time.Second, time.Second+1)
	share := func(i Incident, at time.Duration, counted func(plan) bool) float64 {
		i.After, i.For = from, to-from
		d := Dependency{Latency: fixed, FailureRate: 0.01, Incidents: []Incident{i}}
		r, n := random(), 0
		for range 10_000 {
			n += count(counted(d.plan(r, at)))
		}
		return float64(n) / 10_000
	}
	fails := func(p plan) bool { return p.fails }
	slow := func(p plan) bool { return p.latency > 2*time.Second }
	for _, test := range []struct {
		name     string
		incident Incident
		at       time.Duration
		counted  func(plan) bool
		want     float64
	}{
		{"healthy failures before", Incident{Failing: 0.3}, from - 1, fails, 0.01},
		{"failures from its first moment", Incident{Failing: 0.3}, from, fails, 0.3},
		{"until its last", Incident{Failing: 0.3}, to - 1, fails, 0.3},
		{"healthy failures after", Incident{Failing: 0.3}, to, fails, 0.01},
		{"an outage", Incident{Failing: 1}, from, fails, 1},
		{"all slower", Incident{Slower: 8}, from, slow, 1},
		{"some slower", Incident{Slower: 8, Share: 0.3}, from, slow, 0.3},
		{"a hang", Incident{Hang: true}, from, func(p plan) bool { return p.latency == never }, 1},
		{"no hang after", Incident{Hang: true}, to, slow, 0},
	} {
		assert.InDelta(t, test.want, share(test.incident, test.at, test.counted), 0.02, test.name)
	}
}

func TestServer_slows_down_and_fails_with_load(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(Dependency{Capacity: 2})
		for i, want := range []struct {
			latency time.Duration
			err     error
		}{
			{time.Second, nil}, {time.Second, nil}, {1500 * time.Millisecond, nil}, {2 * time.Second, nil},
			{2500 * time.Millisecond, nil}, {3 * time.Second, nil}, {time.Second, errOverloaded},
		} {
			latency, err := s.enter(plan{latency: time.Second})
			assert.Equal(t, want.latency, latency, "call %d", i+1)
			assert.ErrorIs(t, err, want.err, "call %d", i+1)
		}
		assert.Equal(t, 7, s.peak)
	})
}

// TestServer_warms_up_as_the_reference_model follows the reference experiment of the specification in its shape: capacity 20,
// an outage, and steps of 100 ms with so many admitted calls.
func TestServer_warms_up_as_the_reference_model(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(Dependency{Latency: usual(), Capacity: 20, Warmup: 10 * time.Second,
			Incidents: []Incident{{After: time.Second, For: time.Second, Failing: 1}}})
		assertCapacity := func(after string, want float64) {
			t.Helper()
			s.room()
			assert.InDelta(t, want, s.capacity, 1e-9, after)
		}
		time.Sleep(time.Second)
		assertCapacity("healthy", 20)
		time.Sleep(time.Second)
		assertCapacity("an outage", 1)
		for _, step := range []struct {
			name     string
			admitted int
			want     float64
		}{
			{"an idle step", 0, 1.05}, {"a used step", 1, 1.25}, {"as many as it bears", 2, 1.45}, {"too many", 3, 1},
		} {
			for range step.admitted {
				_, _ = s.enter(plan{})
				s.leave()
			}
			time.Sleep(capacityStep)
			assertCapacity(step.name, step.want)
		}
		time.Sleep(time.Minute)
		assertCapacity("a long time", 20)
	})
}

func TestWait_ends_with_the_context(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		start := time.Now()
		require.NoError(t, wait(ctx, 300*time.Millisecond))
		require.ErrorIs(t, wait(ctx, never), context.DeadlineExceeded)
		assert.Equal(t, time.Second, time.Since(start))
		require.NoError(t, wait(context.Background(), time.Second))
		assert.Equal(t, 2*time.Second, time.Since(start))
	})
}
