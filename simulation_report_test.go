package breaker

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A report kept no more of latencies above 268 s than the longest, so each quantile among them was that one.
func TestRegression_SimulatedLatencyIsBoundedWhateverItsLength(t *testing.T) {
	var r Report
	for range 9 {
		r.latencies.add(5 * time.Minute)
	}
	r.latencies.add(time.Hour)
	assert.Equal(t, 9<<25*time.Microsecond, r.Latency(0.5))
	assert.Equal(t, time.Hour, r.Latency(1))
}

func TestReportFractions(t *testing.T) {
	r := Report{Calls: 200, Admitted: 150, Succeeded: 120}
	assert.Equal(t, 0.6, r.Availability())
	assert.Equal(t, 0.75, r.LoadFraction())
	assert.Zero(t, Report{}.Availability())
	assert.Zero(t, Report{}.LoadFraction())
}

func TestReportLatency(t *testing.T) {
	var r Report
	assert.Zero(t, r.Latency(0.5), "no calls")
	for ms := 1; ms <= 1000; ms++ {
		r.latencies.add(time.Duration(ms) * time.Millisecond)
	}
	for _, q := range []float64{0.001, 0.01, 0.5, 0.9, 0.99, 1} {
		want := time.Duration(q*1000) * time.Millisecond
		got := r.Latency(q)
		assert.GreaterOrEqual(t, got, want, "q %v", q)
		assert.LessOrEqual(t, float64(got), 1.125*float64(want), "q %v", q)
	}
	assert.Equal(t, time.Second, r.Latency(1), "no call took longer than the longest")
	assert.Equal(t, r.Latency(0.001), r.Latency(0))
	assert.Equal(t, r.Latency(0), r.Latency(-1))
	assert.Equal(t, r.Latency(1), r.Latency(2))
	assert.Equal(t, r.Latency(1), r.Latency(math.NaN()))
}

func TestReportLatencyBeyondTheHistogram(t *testing.T) {
	var r Report
	r.latencies.add(time.Millisecond)
	r.latencies.add(time.Hour)
	assert.Equal(t, time.Hour, r.Latency(1))
	assert.Less(t, r.Latency(0.5), 2*time.Millisecond)
}

func TestReportLatencyIsTheCallers(t *testing.T) {
	s := steady(200, 30*time.Second)
	s.Dependency.P99 = 100 * time.Millisecond
	r := simulate(t, s)
	assert.InEpsilon(t, 10*time.Millisecond, r.Latency(0.5), 0.2)
	assert.InEpsilon(t, 100*time.Millisecond, r.Latency(0.99), 0.3)

	// A failing call takes P50 and counts as well; a refused one does not.
	s.Dependency = Dependency{P50: 10 * time.Millisecond, Incidents: []Incident{{0, time.Minute, 50, 0.7}}}
	r = simulate(t, s)
	require.Positive(t, r.Rejected)
	assert.LessOrEqual(t, r.Latency(0.5), 11*time.Millisecond)
	assert.Equal(t, 500*time.Millisecond, r.Latency(1))
	assert.EqualValues(t, r.Admitted, r.latencies.calls)
}

// disturb marks seconds of a run.
func disturb(seconds ...int) func(*simulator) {
	return func(m *simulator) {
		for _, i := range seconds {
			m.disturbed[i] = true
		}
	}
}

// The definition of Report.Recovered, over a timeline of five seconds with ten calls in each.
func TestReportRecovered(t *testing.T) {
	const second = time.Second
	for name, tt := range map[string]struct {
		incidents []Incident
		spoil     func(*simulator)
		after     time.Duration
		ok        bool
	}{
		"without an incident":                 {nil, disturb(), 0, false},
		"at the very end of it":               {[]Incident{{0, second, 1, 1}}, disturb(), 0, true},
		"the next second that starts":         {[]Incident{{0, second + 1, 1, 1}}, disturb(), second - 1, true},
		"the last incident to end counts":     {[]Incident{{0, 3 * second, 1, 1}, {second, second, 1, 1}}, disturb(), 0, true},
		"not while calls are disturbed":       {[]Incident{{0, second, 1, 1}}, disturb(1, 2), 2 * second, true},
		"one undisturbed second is enough":    {[]Incident{{0, second, 1, 1}}, disturb(2, 3, 4), 0, true},
		"never":                               {[]Incident{{0, second, 1, 1}}, disturb(1, 2, 3, 4), 0, false},
		"seconds before the end do not count": {[]Incident{{0, 4 * second, 1, 1}}, disturb(4), 0, false},
		"a second without calls proves nothing": {
			[]Incident{{0, second, 1, 1}}, func(m *simulator) { m.result.Timeline[1].Offered = 0 }, second, true,
		},
		"the last one, if it is whole": {[]Incident{{0, 4 * second, 1, 1}}, disturb(), 0, true},
		"the last one is not whole": {
			[]Incident{{0, 4 * second, 1, 1}}, func(m *simulator) { m.Duration -= 1 }, 0, false,
		},
		"an incident beyond the run": {[]Incident{{time.Hour, second, 1, 1}}, disturb(), 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := &simulator{disturbed: make([]bool, 5)}
			m.Duration = 5 * second
			m.Dependency.Incidents = tt.incidents
			for i := range 5 {
				m.result.Timeline = append(m.result.Timeline, Sample{At: time.Duration(i) * second, Offered: 10})
			}
			tt.spoil(m)
			after, ok := m.recovery()
			assert.Equal(t, tt.after, after)
			assert.Equal(t, tt.ok, ok)
		})
	}
}

// What disturbs a second: a refusal and a failure for another reason than FailureRate, charged to the second of the offer.
func TestReportDisturbedSeconds(t *testing.T) {
	disturbed := func(s Simulation) []bool {
		m, err := newSimulator(s.withDefaults(), New)
		require.NoError(t, err)
		require.NoError(t, m.play(t.Context()))
		return m.disturbed
	}
	off := Settings{ConsecutiveFailures: 1_000_000, Failures: Failures{Off: true}, SlowCalls: SlowCalls{Off: true}}
	for name, tt := range map[string]struct {
		settings   Settings
		dependency Dependency
		want       []bool
	}{
		"by chance": {off, Dependency{P50: 1, FailureRate: 1}, []bool{false, false, false}},
		"incident": {
			off, Dependency{P50: 1, Incidents: []Incident{{time.Second, time.Second, 1, 0.9}}}, []bool{false, true, false},
		},
		"time-out":      {off, Dependency{P50: 1, Incidents: []Incident{{0, time.Second, 1e18, 0}}}, []bool{true, false, false}},
		"overload":      {off, Dependency{P50: time.Second, Capacity: 5}, []bool{true, true, true}},
		"mere slowness": {off, Dependency{P50: 1, Incidents: []Incident{{0, time.Minute, 100, 0}}}, []bool{false, false, false}},
		"refusals": {
			Settings{BreakDuration: time.Minute}, Dependency{P50: 1, FailureRate: 1}, []bool{true, true, true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := steady(100, 3*time.Second)
			s.Settings, s.Dependency, s.Timeout = tt.settings, tt.dependency, 5*time.Second
			assert.Equal(t, tt.want, disturbed(s))
		})
	}
}

func TestReportTimeToOpen(t *testing.T) {
	const second, slow = time.Second, ReasonSlowCalls
	type open struct {
		at  time.Duration
		why Reason
	}
	incidents := []Incident{{20 * second, second, 1, 1}, {10 * second, second, 1, 1}}
	for name, tt := range map[string]struct {
		incidents []Incident
		opens     []open
		after     time.Duration
		ok        bool
	}{
		"no open":     {incidents, nil, 0, false},
		"no incident": {nil, []open{{second, slow}}, 0, false},
		"the first at or after it": {
			incidents, []open{{9 * second, slow}, {12 * second, slow}, {13 * second, slow}}, 2 * second, true,
		},
		"at its very start":    {incidents, []open{{10 * second, slow}}, 0, true},
		"only before":          {incidents, []open{{10*second - 1, slow}}, 0, false},
		"a re-open is an open": {incidents, []open{{9 * second, slow}, {11 * second, ReasonProbeFailed}}, second, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := steady(1, time.Minute)
			s.Dependency.Incidents = tt.incidents
			m, err := newSimulator(s.withDefaults(), New)
			require.NoError(t, err)
			for _, o := range tt.opens {
				m.clock.now = o.at
				m.opened(o.why)
			}
			assert.Equal(t, tt.after, m.result.TimeToOpen)
			assert.Equal(t, tt.ok, m.result.Opened)
			assert.Equal(t, len(tt.opens), m.result.Opens)
		})
	}
}

func TestReportFalseOpens(t *testing.T) {
	const reach = 30*time.Second + 5*time.Second // Window + Timeout
	brownout := []Incident{{10 * time.Second, 10 * time.Second, 2, 0}}
	for name, tt := range map[string]struct {
		incidents []Incident
		at        time.Duration
		why       Reason
		strain    time.Duration // 0: none
		want      int
	}{
		"nothing explains it":         {nil, time.Minute, ReasonConsecutiveFailures, 0, 1},
		"on a ratio":                  {nil, time.Minute, ReasonFailureRatio, 0, 1},
		"on the baseline":             {nil, time.Minute, ReasonRelativeFailures, 0, 1},
		"on slowness":                 {nil, time.Minute, ReasonSlowCalls, 0, 1},
		"before the incident":         {brownout, 10*time.Second - 1, ReasonSlowCalls, 0, 1},
		"at its start":                {brownout, 10 * time.Second, ReasonSlowCalls, 0, 0},
		"within the reach of its end": {brownout, 20*time.Second + reach, ReasonSlowCalls, 0, 0},
		"beyond it":                   {brownout, 20*time.Second + reach + 1, ReasonSlowCalls, 0, 1},
		"not from closed: probe":      {nil, time.Minute, ReasonProbeFailed, 0, 0},
		"not from closed: slow probe": {nil, time.Minute, ReasonProbeSlow, 0, 0},
		"not from closed: lost probe": {nil, time.Minute, ReasonProbeTimeout, 0, 0},
		"not from closed: ramp":       {nil, time.Minute, ReasonRampFailed, 0, 0},
		"capacity was exceeded":       {nil, time.Minute, ReasonSlowCalls, time.Minute - reach, 0},
		"longer ago":                  {nil, time.Minute, ReasonSlowCalls, time.Minute - reach - 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := steady(1, 2*time.Minute)
			s.Timeout = 5 * time.Second
			s.Dependency.Incidents = tt.incidents
			s.Dependency.Capacity = 1
			m, err := newSimulator(s.withDefaults(), New)
			require.NoError(t, err)
			if tt.strain > 0 {
				m.dependency.start(tt.strain, never)
				m.dependency.start(tt.strain, never)
				m.dependency.end(tt.strain)
			}
			m.clock.now = tt.at
			m.opened(tt.why)
			assert.Equal(t, tt.want, m.result.FalseOpens)
		})
	}
}

// A dependency that fails three calls in ten by chance meets five in a row before long; every open from closed is a false one.
func TestReportFalseOpensOfARun(t *testing.T) {
	s := steady(100, time.Minute)
	s.Dependency.FailureRate = 0.3
	s.Settings = Settings{Failures: Failures{Off: true}, BreakDuration: time.Second}
	r := simulate(t, s)
	assert.Positive(t, r.FalseOpens)
	assert.Greater(t, r.Opens, r.FalseOpens, "a probe that fails re-opens")
	s.Dependency.Capacity, s.Dependency.Warmup = 20, time.Hour
	s.Dependency.Incidents = []Incident{{0, time.Second, 1, 1}}
	assert.Zero(t, simulate(t, s).FalseOpens, "a cold dependency is a cause")
}

func TestReportPeakProbes(t *testing.T) {
	s := steady(1000, 30*time.Second)
	s.Settings = Settings{BreakDuration: 2 * time.Second, BreakJitter: JitterNone, HalfOpenProbes: 4, ProbeSuccesses: 20}
	s.Dependency = Dependency{P50: 100 * time.Millisecond, Incidents: []Incident{{10 * time.Second, time.Second, 1, 1}}}
	r := simulate(t, s)
	assert.Equal(t, 1, r.Opens, "the premise: one half-open period")
	assert.InDelta(t, 22, r.PeakProbesPerSecond, 2, "twenty in 500 ms, and those in flight with the last of them")
	s.Dependency.Incidents = nil
	assert.Zero(t, simulate(t, s).PeakProbesPerSecond)
}

func TestReportSlowIsWhatTheBreakersJudged(t *testing.T) {
	s := steady(100, 10*time.Second)
	s.Settings = Settings{SlowCallThreshold: 20 * time.Millisecond, SlowCallRatio: 1}
	s.Dependency.Incidents = []Incident{{5 * time.Second, 100 * time.Millisecond, 2.1, 0}}
	r := simulate(t, s)
	assert.InDelta(t, 10, r.Slow, 9)
	s.Dependency.Incidents[0].Slower = 2
	assert.Zero(t, simulate(t, s).Slow, "as long as the threshold is not longer")
}

// The most of each time.Second is kept: at the end of a second the evidence may be gone, and an open takes it away.
func TestReportEvidence(t *testing.T) {
	failing := Incident{After: 30 * time.Second, For: 10 * time.Second, Failing: 0.8}
	slower := Incident{After: 30 * time.Second, For: 10 * time.Second, Slower: 30}
	for _, tc := range []struct {
		incident         Incident
		failures, slowly float64 // the most of the run
	}{{failing, 1, 0}, {slower, 0, 1}} {
		s := Simulation{
			Settings: Settings{ConsecutiveFailures: Disabled}, Dependency: Dependency{P50: 10 * time.Millisecond, Incidents: []Incident{tc.incident}},
			Load: Load{PerSecond: 4}, Duration: 40 * time.Second,
		}
		r := simulate(t, s)
		require.True(t, r.Opened)
		var most Sample
		for _, sample := range r.Timeline {
			most.Evidence = max(most.Evidence, sample.Evidence)
			most.SlowEvidence = max(most.SlowEvidence, sample.SlowEvidence)
		}
		assert.Equal(t, []float64{tc.failures, tc.slowly}, []float64{most.Evidence, most.SlowEvidence})
		before := r.Timeline[30+int(r.TimeToOpen/time.Second)-1]
		assert.Positive(t, before.Evidence+before.SlowEvidence, "it grows before it trips")
		assert.Less(t, before.Evidence+before.SlowEvidence, 1.0)

		s.Settings = Classic()
		for _, sample := range simulate(t, s).Timeline {
			assert.Zero(t, sample.Evidence+sample.SlowEvidence, "no test")
		}
	}
}

func TestReportCapacity(t *testing.T) {
	s := brownoutScenario()
	r := simulate(t, s)
	assert.Equal(t, 40, r.Timeline[0].Capacity)
	assert.Equal(t, 2, r.Timeline[34].Capacity)
	assert.Greater(t, r.Timeline[40].Capacity, 2)
	s.Dependency.Capacity, s.Dependency.Warmup = 0, 0
	for _, sample := range simulate(t, s).Timeline {
		require.Zero(t, sample.Capacity)
	}
}

// The golden file pins one report with its timeline. Delete it to write it anew.
func TestReportGolden(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("floating point differs between architectures")
	}
	r := simulate(t, brownoutScenario())
	var b strings.Builder
	b.WriteString(r.String())
	for _, s := range r.Timeline {
		fmt.Fprintf(&b, "%4.0f %4d %4d %4d %4d %4d %-10s %.3f %3d\n", s.At.Seconds(), s.Offered, s.Admitted, s.Rejected, s.Succeeded,
			s.Failed, s.State, s.AdmittedFraction, s.Capacity)
	}
	file := filepath.Join("testdata", "simulation_report.golden")
	want, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o644))
		t.Fatalf("%s is new: look at it and run again", file)
	}
	require.NoError(t, err)
	assert.Equal(t, string(want), b.String())
}

func TestReportStringIsAligned(t *testing.T) {
	lines := strings.Split(strings.TrimSuffix(simulate(t, brownoutScenario()).String(), "\n"), "\n")
	ends := map[int]bool{}
	for _, line := range lines {
		require.Greater(t, len(line), 34, line)
		assert.NotContains(t, line, "\t")
		assert.Equal(t, strings.TrimRight(line, " "), line)
		ends[len(strings.TrimRight(line[:35], " "))] = true
	}
	assert.Len(t, ends, 1, "the figures end in one column")
	assert.Len(t, lines, 15)
}
