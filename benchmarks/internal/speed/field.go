package speed

import (
	"github.com/brownout-go/breaker"
	"github.com/brownout-go/breaker/benchmarks/internal/entry"
)

// Row is what one entry costs. A field is nil where there is nothing to time.
type Row struct {
	Name                                 string
	Success, Parallel, Refused, HalfOpen *Timing
	Fresh, Warm                          float64 // bytes of a breaker before its first call and with samples; 0: not measured
}

// cell is where the timing of a contestant belongs.
type cell struct {
	contestant Contestant
	timing     **Timing
}

// MeasureField times all entries of the field that have something to time, between the floors, in one run.
func MeasureField(plan Plan) []Row {
	var rows []*Row
	var cells []cell
	var sizes []func()
	for _, f := range []Contestant{FloorEmpty, FloorLatency} {
		row := &Row{Name: "floor: " + f.Name}
		rows = append(rows, row)
		cells = append(cells, cell{f, &row.Success})
	}
	for name, bench := range benches {
		row := &Row{Name: name}
		rows = append(rows, row)
		cells = append(cells, row.cells(bench)...)
		sizes = append(sizes, func() { row.Fresh, row.Warm = Bytes(bench.New), Bytes(warm(bench)) })
	}
	contestants := make([]Contestant, len(cells))
	for i, c := range cells {
		contestants[i] = c.contestant
	}
	for i, timing := range plan.Measure(contestants) {
		*cells[i].timing = &timing
	}
	for _, measure := range sizes { // last, since some libraries keep every breaker for ever
		measure()
	}
	return values(rows)
}

// cells returns what is to be timed for the row.
func (r *Row) cells(b entry.Bench) []cell {
	var cells []cell
	for _, c := range []struct {
		loop     Loop
		parallel bool
		timing   **Timing
	}{
		{b.Success, false, &r.Success},
		{b.Success, true, &r.Parallel},
		{b.Refused, false, &r.Refused},
		{b.HalfOpen, false, &r.HalfOpen},
	} {
		if c.loop != nil {
			cells = append(cells, cell{Contestant{Name: r.Name, Loop: c.loop, Parallel: c.parallel}, c.timing})
		}
	}
	return cells
}

// benches yields what is timed, with its name: ours first.
func benches(yield func(string, entry.Bench) bool) {
	if !yield("ours, zero settings", entry.OursBench(breaker.Settings{})) ||
		!yield("ours, consecutive failures only", entry.OursBench(entry.ConsecutiveOnly())) {
		return
	}
	for _, e := range entry.Field() {
		if e.Bench != nil && !yield(e.Name(), e.Bench()) {
			return
		}
	}
}

func values(rows []*Row) []Row {
	all := make([]Row, len(rows))
	for i, r := range rows {
		all[i] = *r
	}
	return all
}
