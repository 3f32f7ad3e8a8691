package speed

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// BenchmarkBounds times both sides of every promise about time:
//
//	go test ./internal/speed -bench . -benchmem
//
// The promises themselves are judged by the speed command, which lets the sides take turns.
func BenchmarkBounds(b *testing.B) {
	for _, bound := range Bounds() {
		b.Run(bound.What+"/ours", bound.Mine.benchmark)
		b.Run(bound.What+"/"+bound.Against.Name, bound.Against.benchmark)
	}
}

func (c Contestant) benchmark(b *testing.B) {
	b.ReportAllocs()
	c.time(b.N)
}

// BenchmarkField times a successful call of every entry.
func BenchmarkField(b *testing.B) {
	for name, bench := range benches {
		b.Run(name, Contestant{Loop: bench.Success}.benchmark)
	}
}

var sink *[64]byte

func TestMeasure_tells_slow_from_fast_and_counts_allocations(t *testing.T) {
	work := 0
	loop := func(steps int) Loop {
		return func(n int) {
			for range n * steps {
				work++
				if work < 0 {
					return
				}
			}
		}
	}
	allocating := func(n int) {
		for range n {
			sink = new([64]byte)
		}
	}
	timings := Plan{Rounds: 21, Round: 100 * time.Microsecond}.Measure([]Contestant{
		{Loop: loop(100)}, {Loop: loop(400)}, {Loop: allocating},
	})
	assert.InEpsilon(t, 4, timings[1].Nanoseconds/timings[0].Nanoseconds, 0.5)
	assert.Zero(t, timings[0].Allocs)
	assert.InDelta(t, 1, timings[2].Allocs, 0.01)
}

func TestMeasure_alternates_the_order(t *testing.T) {
	var order []string
	name := func(s string) Loop { return func(int) { order = append(order, s) } }
	contestants := []Contestant{{Loop: name("a")}, {Loop: name("b")}}
	Plan{Rounds: 3, Round: time.Nanosecond}.Measure(contestants)
	rounds := strings.Join(order, "")
	assert.Contains(t, rounds, "abbaab", "forth, back, forth")
}

func TestBytes_is_what_one_instance_holds(t *testing.T) {
	assert.InEpsilon(t, 4096, Bytes(func() any { return new([4096]byte) }), 0.05)
}

func TestBounds_are_written_with_their_verdict(t *testing.T) {
	result := func(most, mine, against float64) BoundResult {
		return BoundResult{Bound{What: "call", Most: most}, Timing{Nanoseconds: mine}, Timing{Nanoseconds: against}}
	}
	for _, test := range []struct {
		name  string
		times []BoundResult
		sizes []SizeResult
		kept  bool
		want  string
	}{
		{"kept exactly at the bound", []BoundResult{result(0.5, 50, 100)}, nil, true, "kept"},
		{"a time is missed", []BoundResult{result(0.5, 51, 100)}, nil, false, "missed"},
		{"nothing promised", []BoundResult{result(0, 900, 100)}, nil, true, "9.000"},
		{"a size is missed", nil, []SizeResult{{Size{What: "default", Most: 640}, 641}}, false, "missed"},
	} {
		var text strings.Builder
		assert.Equal(t, test.kept, WriteBounds(&text, test.times, test.sizes), test.name)
		assert.Contains(t, text.String(), test.want, test.name)
	}
}

func TestMeasureField_has_a_row_for_every_entry_that_is_timed(t *testing.T) {
	rows := MeasureField(Plan{Rounds: 1, Round: time.Microsecond})
	require.Equal(t, "floor: empty call", rows[0].Name)
	require.Equal(t, "ours, zero settings", rows[2].Name)
	for _, r := range rows {
		assert.NotNil(t, r.Success, r.Name)
		if !strings.HasPrefix(r.Name, "floor") {
			assert.Positive(t, r.Warm, r.Name)
			assert.NotNil(t, r.Parallel, r.Name)
		}
	}
}

func TestMeasureSettings_compares_with_zero_settings_and_allocates_nothing(t *testing.T) {
	costs := MeasureSettings(Plan{Rounds: 1, Round: 10 * time.Microsecond})
	require.Len(t, costs, 4)
	assert.Equal(t, SettingCost{Name: "zero settings", Success: 1, Parallel: 1, Refused: 1}, costs[0])
	for _, c := range costs {
		assert.Positive(t, c.Success*c.Parallel*c.Refused, c.Name)
		assert.Zero(t, c.Allocs, c.Name)
	}
}
