package main

import (
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/brownout-go/breaker/benchmarks/internal/protect"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// draw writes the pictures of the page into dir.
//
// They are bitmaps: a vector picture names its font, and where that is missing its letters run into each other.
func (m *measurements) draw(dir string) error {
	plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, build := range map[string]func() (*plot.Plot, error){
		"bench_speed.png": m.speedPicture,
		"bench_collapse.png": func() (*plot.Plot, error) {
			return m.timeline("collapse", "Served after a capacity collapse", "calls served a second", collapseLines,
				func(s protect.Second) int { return s.Succeeded })
		},
		"bench_brownout.png": func() (*plot.Plot, error) {
			return m.timeline("brownout", "Callers kept waiting in a brownout", "calls over 1 s, begun in this second", brownoutLines,
				func(s protect.Second) int { return s.Late })
		},
	} {
		p, err := build()
		if err != nil {
			return err
		}
		if err := p.Save(24*vg.Centimeter, 12*vg.Centimeter, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// The entries that the timelines show; all others would only hide them.
var (
	collapseLines = []string{"oracle, knows the capacity", "ours, zero settings", "ours, classic", "aegis sre, as it comes",
		"go-zero, as it comes", "simple rule, slow is failed"}
	brownoutLines = []string{"no breaker, for scale", "ours, zero settings", "ours, tuned", "hystrix-go, tuned",
		"simple rule, slow is failed"}
)

// palette can be told apart by those who do not see red and green (Okabe and Ito 2008).
var palette = []color.Color{
	color.Black,
	color.RGBA{R: 0x00, G: 0x72, B: 0xb2, A: 0xff},
	color.RGBA{R: 0x56, G: 0xb4, B: 0xe9, A: 0xff},
	color.RGBA{R: 0xd5, G: 0x5e, B: 0x00, A: 0xff},
	color.RGBA{R: 0x00, G: 0x9e, B: 0x73, A: 0xff},
	color.RGBA{R: 0xcc, G: 0x79, B: 0xa7, A: 0xff},
}

// before and after are the seconds that a timeline shows, counted from the start of its incident.
const before, after = 10, 90

// timeline draws a number of each second around an incident.
func (m *measurements) timeline(key, title, axis string, entries []string, number func(protect.Second) int) (
	*plot.Plot, error) {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, "seconds since the incident began", axis
	p.Legend.Top = true
	p.Legend.Padding = vg.Millimeter
	began := m.incidentOf(key)
	for i, name := range entries {
		result, found := m.results.Find(key, name)
		if !found {
			return nil, fmt.Errorf("no timeline of %s in %s", name, key)
		}
		var points plotter.XYs
		for second := began - before; second < min(began+after, len(result.Timeline)-1); second++ {
			points = append(points, plotter.XY{X: float64(second - began), Y: float64(number(result.Timeline[second]))})
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return nil, err
		}
		line.Color, line.Width = palette[i], vg.Points(1.5)
		p.Add(line)
		p.Legend.Add(name, line)
	}
	p.Y.Min = 0
	p.Y.Max = 50 * math.Ceil(1.6*p.Y.Max/50) // room for the legend
	return p, nil
}

// incidentOf is the second in which the incident of a scenario begins.
func (m *measurements) incidentOf(key string) int {
	for _, s := range m.scenarios {
		if s.Key == key {
			return int(s.Dependency.Incidents[0].After / time.Second)
		}
	}
	panic("no scenario " + key)
}

// speedPicture draws what a successful call costs.
func (m *measurements) speedPicture() (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text, p.X.Label.Text = "A successful call", "as a multiple of two clock reads and a lock"
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.X.Min, p.X.Max = 0.01, 200
	var names []string
	for i := len(m.rows) - 1; i >= 0; i-- {
		row := m.rows[i]
		y := float64(len(names))
		bar, err := plotter.NewLine(plotter.XYs{{X: p.X.Min, Y: y}, {X: row.Success.Nanoseconds / m.floor().Nanoseconds, Y: y}})
		if err != nil {
			return nil, err
		}
		bar.Width, bar.Color = vg.Points(10), barColor(row.Name)
		p.Add(bar)
		names = append(names, row.Name)
	}
	p.NominalY(names...)
	p.Y.Min, p.Y.Max = -0.5, float64(len(names))-0.5
	return p, nil
}

func barColor(name string) color.Color {
	if strings.HasPrefix(name, "ours") {
		return palette[1]
	}
	return color.Gray{Y: 0xa0}
}
