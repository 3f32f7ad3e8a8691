package main

import (
	_ "embed"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/brownout-go/breaker/benchmarks/internal/entry"
	"github.com/brownout-go/breaker/benchmarks/internal/figure"
	"github.com/brownout-go/breaker/benchmarks/internal/grid"
	"github.com/brownout-go/breaker/benchmarks/internal/markdown"
	"github.com/brownout-go/breaker/benchmarks/internal/protect"
	"github.com/brownout-go/breaker/benchmarks/internal/speed"
)

// page holds the prose; the tables are filled in.
//
//go:embed page.md
var page string

func (m *measurements) writePage(w io.Writer) error {
	functions := template.FuncMap{
		"machine": machine, "versions": versions, "setups": setups, "losses": m.lossTable, "reasons": m.reasonList,
		"count": func() int { return len(m.losses()) }, "measured": m.measured, "short": func() bool { return m.short },
		"quick": func() bool { return m.protection.Pace == protect.Quick }, "seeds": m.seeds, "flags": m.flags, "tuning": func() bool { return m.protection.Seeds == protect.Tuning },
		"shortparts": func() bool { return m.short || m.shortParts }, "targetflags": m.targetFlags,
		"bounds": m.boundTable, "sizes": m.sizeTable, "speed": m.speedTable, "floor": m.floor,
		"scenarios": func() []protect.Scenario { return m.scenarios }, "protection": m.protectionTable, "command": command,
		"changes": m.changeTable, "changecount": m.changeCount, "settings": m.settingTable,
		"regret": m.regretTable, "ranks": m.rankTable, "regretlosses": m.regretRows, "targets": m.targetTable,
		"targetcount": m.targetCount,
		"grid":        func() grid.Result { return m.grid },
	}
	t, err := template.New("page").Funcs(functions).Parse(page)
	if err != nil {
		return err
	}
	return t.Execute(w, nil)
}

func machine() string {
	return fmt.Sprintf("%d cores, %s/%s, %s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
}

// versions is a table of the peers' modules and the versions that are built into this command.
func versions() string {
	info, _ := debug.ReadBuildInfo()
	built := map[string]string{}
	for _, d := range info.Deps {
		built[d.Path] = d.Version
	}
	var rows [][]string
	for _, e := range entry.Field() {
		row := []string{"`" + e.Module + "`", built[e.Module]}
		if e.Module != "" && !slices.ContainsFunc(rows, func(r []string) bool { return r[0] == row[0] }) {
			rows = append(rows, row)
		}
	}
	return markdown.Table(2, []string{"module", "version"}, rows)
}

func setups() string {
	var list strings.Builder
	for _, e := range append(entry.Field(), protect.Oracle) {
		fmt.Fprintf(&list, "- **%s**: %s.\n", e.Name(), e.Setup)
	}
	return list.String()
}

// measured is how many measurements there are, that is rows in which ours could be first or not.
func (m *measurements) measured() int {
	n := len(speedColumns)
	for _, s := range m.scenarios {
		n += len(s.Columns)
	}
	return n
}

func (m *measurements) lossTable() string {
	blame := blames(readReasons(written))
	header := append([]string{"", "measured", "first", "its figure", "ahead of ours"}, append(ourConfigs(), "to blame")...)
	var rows [][]string
	for i, l := range m.losses() {
		row := []string{strconv.Itoa(i + 1), l.title, leaders(l.winners), l.best, strconv.Itoa(l.ahead)}
		ours := append(slices.Clone(l.ours), make([]string, len(ourConfigs()))...)[:len(ourConfigs())]
		rows = append(rows, append(append(row, ours...), blame[l.key]))
	}
	return markdown.Table(3, header, rows)
}

// ourConfigs are the configurations of ours, in the order of the field.
func ourConfigs() (configs []string) {
	for _, e := range entry.Field() {
		if e.Kind == entry.Ours {
			configs = append(configs, e.Config)
		}
	}
	return configs
}

// leaders names who is first: all of them, or the first two and how many more.
func leaders(names []string) string {
	if len(names) <= 3 {
		return strings.Join(names, "; ")
	}
	return fmt.Sprintf("%s; %s; %d more", names[0], names[1], len(names)-2)
}

// reasonList writes the reasons with the numbers of the rows they are for.
func (m *measurements) reasonList() string {
	rows := map[string]int{}
	for i, l := range m.losses() {
		rows[l.key] = i + 1
	}
	var list strings.Builder
	for _, r := range readReasons(written) {
		var numbers []string
		for _, key := range r.keys {
			if rows[key] > 0 {
				numbers = append(numbers, strconv.Itoa(rows[key]))
			}
		}
		if len(numbers) > 0 {
			fmt.Fprintf(&list, "- **%s** (%s). %s\n", strings.Join(numbers, ", "), r.blame, strings.ReplaceAll(r.text, "\n", "\n  "))
		}
	}
	return list.String()
}

func (m *measurements) boundTable() string {
	var rows [][]string
	for _, r := range m.bounds {
		bound := "-"
		if r.Most > 0 {
			bound = fmt.Sprintf("%.2f", r.Most)
		}
		rows = append(rows, []string{r.What, r.Against.Name, fmt.Sprintf("%.3f", r.Ratio()), bound, r.Verdict(),
			fmt.Sprintf("%.0f", r.MineTook.Allocs)})
	}
	return markdown.Table(2, []string{"ours", "against", "ratio", "at most", "", "allocations"}, rows)
}

func (m *measurements) sizeTable() string {
	var rows [][]string
	for _, r := range m.sizes {
		bound := "-"
		if r.Most > 0 {
			bound = markdown.Grouped(int(r.Most))
		}
		rows = append(rows, []string{r.What, markdown.Grouped(int(r.Bytes)), bound, r.Verdict()})
	}
	return markdown.Table(1, []string{"breaker", "bytes", "at most", ""}, rows)
}

// floor is the unit of the speed table.
func (m *measurements) floor() *speed.Timing { return m.rows[1].Success }

func (m *measurements) speedTable() string {
	cell := func(t *speed.Timing) string {
		if t == nil {
			return "-"
		}
		text := fmt.Sprintf("%.2f", t.Nanoseconds/m.floor().Nanoseconds)
		if t.Allocs >= 0.5 {
			text += fmt.Sprintf(" (%.0f)", t.Allocs)
		}
		return text
	}
	var rows [][]string
	for _, r := range m.rows {
		row := []string{r.Name, cell(r.Success), cell(r.Parallel), cell(r.Refused), cell(r.HalfOpen), "-", "-"}
		if r.Warm > 0 {
			row[5], row[6] = markdown.Grouped(int(r.Fresh)), markdown.Grouped(int(r.Warm))
		}
		rows = append(rows, row)
	}
	return markdown.Table(1, []string{"entry", "success", "success, all cores", "refusal, open", "refusal, half-open", "bytes, fresh",
		"bytes, with samples"}, rows)
}

func (m *measurements) protectionTable(s protect.Scenario) string {
	header := []string{"entry"}
	for _, c := range s.Columns {
		header = append(header, c.Name)
	}
	var rows [][]string
	for _, e := range s.Entries() {
		row := []string{e.Name()}
		for i, c := range s.Columns {
			row = append(row, figure.Format(c, m.figure(s, e, i)))
		}
		rows = append(rows, row)
	}
	return markdown.Table(1, header, rows)
}

// command reproduces one row of a scenario's table.
func command(s protect.Scenario) string {
	return fmt.Sprintf("go test ./internal/protect -v -run 'TestField/runs/%s/ours,_tuned$' -args -field.out=/dev/null", s.Key)
}
