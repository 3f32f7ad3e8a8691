package breaker

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// possible is a simulation without a fault.
func possible() Simulation {
	return Simulation{
		Dependency: Dependency{
			P50: 10 * time.Millisecond, P99: 50 * time.Millisecond, FailureRate: 0.01, Capacity: 10, Warmup: time.Second,
			Incidents: []Incident{{time.Second, time.Second, 2, 0.5}, {After: 0, For: time.Second}},
		},
		Load:     Load{PerSecond: 10},
		Duration: 5 * time.Second,
	}
}

// impossible are the faults of one field each.
var impossible = map[string]struct {
	spoil func(*Simulation)
	field string
	value any
	says  string
}{
	"no P50":        {func(s *Simulation) { s.Dependency.P50 = 0 }, "Dependency.P50", time.Duration(0), "positive"},
	"negative P50":  {func(s *Simulation) { s.Dependency.P50 = -1 }, "Dependency.P50", time.Duration(-1), "positive"},
	"negative P99":  {func(s *Simulation) { s.Dependency.P99 = -1 }, "Dependency.P99", time.Duration(-1), "negative"},
	"P99 below P50": {func(s *Simulation) { s.Dependency.P99 = 1 }, "Dependency.P99", time.Duration(1), "P50, which is 10ms"},
	"negative rate": {func(s *Simulation) { s.Dependency.FailureRate = -1 }, "Dependency.FailureRate", -1.0, "[0, 1]"},
	"rate above 1":  {func(s *Simulation) { s.Dependency.FailureRate = 1.1 }, "Dependency.FailureRate", 1.1, "[0, 1]"},
	"rate of NaN": {
		func(s *Simulation) { s.Dependency.FailureRate = math.NaN() }, "Dependency.FailureRate", math.NaN(), "[0, 1]",
	},
	"capacity":        {func(s *Simulation) { s.Dependency.Capacity = -1 }, "Dependency.Capacity", -1, "negative"},
	"warm-up":         {func(s *Simulation) { s.Dependency.Warmup = -1 }, "Dependency.Warmup", time.Duration(-1), "negative"},
	"nothing to warm": {func(s *Simulation) { s.Dependency.Capacity = 0 }, "Dependency.Warmup", time.Second, "needs"},
	"no load":         {func(s *Simulation) { s.Load.PerSecond = 0 }, "Load.PerSecond", 0.0, "positive"},
	"negative load":   {func(s *Simulation) { s.Load.PerSecond = -3 }, "Load.PerSecond", -3.0, "positive"},
	"infinite load":   {func(s *Simulation) { s.Load.PerSecond = math.Inf(1) }, "Load.PerSecond", math.Inf(1), "finite"},
	"load of NaN":     {func(s *Simulation) { s.Load.PerSecond = math.NaN() }, "Load.PerSecond", math.NaN(), "finite"},
	"negative fleet":  {func(s *Simulation) { s.Breakers = -1 }, "Simulation.Breakers", -1, "from 1 to 1000000"},
	"fleet too large": {func(s *Simulation) { s.Breakers = 1_000_001 }, "Simulation.Breakers", 1_000_001, "from 1 to 1000000"},
	"timeout":         {func(s *Simulation) { s.Timeout = -1 }, "Simulation.Timeout", time.Duration(-1), "negative"},
	"no duration":     {func(s *Simulation) { s.Duration = 0 }, "Simulation.Duration", time.Duration(0), "positive"},
	"duration":        {func(s *Simulation) { s.Duration = -1 }, "Simulation.Duration", time.Duration(-1), "positive"},
	"settings":        {func(s *Simulation) { s.Settings.FailureRatio = 2 }, "Settings.FailureRatio", 2.0, "(0, 1]"},
	"a lost race":     {func(s *Simulation) { s.Settings.SlowCalls.Window = 1 }, "SlowCalls.Window", time.Duration(1), "absorb"},

	"incident before": {spoilIncident(1, func(i *Incident) { i.After = -1 }), "Incidents[1].After", time.Duration(-1), "negative"},
	"of no time":      {spoilIncident(0, func(i *Incident) { i.For = 0 }), "Incidents[0].For", time.Duration(0), "positive"},
	"faster":          {spoilIncident(1, func(i *Incident) { i.Slower = 0.9 }), "Incidents[1].Slower", 0.9, "at least 1"},
	"negative slower": {spoilIncident(1, func(i *Incident) { i.Slower = -2 }), "Incidents[1].Slower", -2.0, "at least 1"},
	"infinitely slower": {
		spoilIncident(1, func(i *Incident) { i.Slower = math.Inf(1) }), "Incidents[1].Slower", math.Inf(1), "finite",
	},
	"slower by NaN": {
		spoilIncident(1, func(i *Incident) { i.Slower = math.NaN() }), "Incidents[1].Slower", math.NaN(), "finite",
	},
	"failing below 0": {spoilIncident(0, func(i *Incident) { i.Failing = -1 }), "Incidents[0].Failing", -1.0, "[0, 1]"},
	"failing above 1": {spoilIncident(0, func(i *Incident) { i.Failing = 1.5 }), "Incidents[0].Failing", 1.5, "[0, 1]"},
}

func spoilIncident(n int, spoil func(*Incident)) func(*Simulation) {
	return func(s *Simulation) { spoil(&s.Dependency.Incidents[n]) }
}

func TestSimulationRefusesTheImpossible(t *testing.T) {
	for name, tt := range impossible {
		t.Run(name, func(t *testing.T) {
			s := possible()
			tt.spoil(&s)
			s.OnSample = func(Sample) { t.Error("it ran") }
			report, err := s.Run(t.Context())
			assert.Zero(t, report)
			var problems *SettingsError
			require.ErrorAs(t, err, &problems)
			require.Len(t, problems.Problems, 1)
			p := problems.Problems[0]
			assert.Equal(t, tt.field, p.Field)
			if v, ok := tt.value.(float64); !ok || v == v {
				assert.Equal(t, tt.value, p.Value)
			}
			assert.Contains(t, p.Message, tt.says)
			assert.ErrorContains(t, err, tt.field)
		})
	}
}

// What is just possible is run, however strange.
func TestSimulationRunsTheExtreme(t *testing.T) {
	s := possible()
	spoilIncident(1, func(i *Incident) { i.Slower = math.MaxFloat64 })(&s)
	_, err := s.Run(t.Context())
	require.NoError(t, err)
}

func TestSimulationNamesEveryProblem(t *testing.T) {
	s := possible()
	s.Settings.MinCalls = -1
	s.Dependency.P50 = 0
	s.Dependency.Incidents[0].Failing = 2
	s.Dependency.Incidents[1].Slower = 0.5
	s.Load.PerSecond = -1
	s.Duration = -time.Second
	var err *SettingsError
	require.ErrorAs(t, errorOf(s.Run(t.Context())), &err)
	var fields []string
	for _, p := range err.Problems {
		fields = append(fields, p.Field)
	}
	assert.Equal(t, []string{
		"Settings.MinCalls", "Dependency.P50", "Incidents[0].Failing", "Incidents[1].Slower", "Load.PerSecond",
		"Simulation.Duration",
	}, fields)
}

func errorOf(_ Report, err error) error { return err }

func TestSimulationBoundsItsEvents(t *testing.T) {
	for name, tt := range map[string]struct {
		breakers  int
		perSecond float64
		duration  time.Duration
		refused   string
	}{
		"just within":               {1, 499_999.5, 100 * time.Second, ""},
		"just beyond":               {1, 499_999.6, 100 * time.Second, "100 million events"},
		"a fleet counts":            {200, 2500, 100 * time.Second, "100 million events"},
		"calls of an hour":          {1, 20_000, time.Hour, "144 million events"},
		"seconds count as well":     {1, 1e-9, 100_000_001 * time.Second, "100 million events"},
		"and of each breaker":       {1_000_000, 1e-9, 101 * time.Second, "101 million events"},
		"a part of a second is one": {1_000_000, 1e-9, 100*time.Second + 1, "101 million events"},
		"beyond every number":       {1_000_000, math.MaxFloat64, math.MaxInt64, "+Inf million events"},
	} {
		t.Run(name, func(t *testing.T) {
			s := possible()
			s.Breakers, s.Load.PerSecond, s.Duration = tt.breakers, tt.perSecond, tt.duration
			err := s.validate()
			if tt.refused == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tt.refused)
			for _, way := range []string{"lower Duration", "Load.PerSecond (", "Breakers (", "at most 100 million"} {
				assert.ErrorContains(t, err, way)
			}
		})
	}
}

func TestSimulationTakesTheDefaults(t *testing.T) {
	s := possible()
	incidents := slices.Clone(s.Dependency.Incidents)
	d := s.withDefaults()
	assert.Equal(t, 1, d.Breakers)
	assert.Equal(t, time.Minute, d.Timeout)
	assert.Equal(t, 1.0, d.Dependency.Incidents[1].Slower)
	assert.Equal(t, incidents, s.Dependency.Incidents, "what the caller wrote is left alone")
	assert.Equal(t, d, d.withDefaults())
}

func TestSimulationWithoutContextPanics(t *testing.T) {
	assert.PanicsWithValue(t, "breaker: nil context", func() {
		//lint:ignore SA1012 the nil context is the mistake under test
		_, _ = possible().Run(nil)
	})
}

func TestSimulationEndsWithItsContext(t *testing.T) {
	t.Run("done before", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("enough"))
		s := possible()
		s.OnSample = func(Sample) { t.Error("it ran") }
		report, err := s.Run(ctx)
		assert.Equal(t, context.Canceled, err)
		assert.Zero(t, report)
	})
	t.Run("midway", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s := possible()
		seen := 0
		s.OnSample = func(Sample) {
			if seen++; seen == 2 {
				cancel()
			}
		}
		_, err := s.Run(ctx)
		assert.Equal(t, context.Canceled, err)
		assert.Equal(t, 2, seen)
	})
	t.Run("out of time", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 0)
		defer cancel()
		_, err := possible().Run(ctx)
		assert.Equal(t, context.DeadlineExceeded, err)
	})
}
