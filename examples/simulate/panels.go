package main

import (
	"image/color"
	"slices"
	"strconv"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/brownout-go/breaker"
)

var (
	servedColor   = color.NRGBA{0x5a, 0xa4, 0x69, 0xff}
	failedColor   = color.NRGBA{0xc8, 0x3e, 0x3e, 0xff}
	refusedColor  = color.NRGBA{0xc4, 0xc8, 0xcf, 0xff}
	incidentColor = color.NRGBA{0xff, 0xb3, 0x1a, 0x60} // lets through what it lies on

	fractionLine = draw.LineStyle{Color: color.NRGBA{0x1d, 0x3f, 0x72, 0xff}, Width: vg.Points(1.6)}
	capacityLine = draw.LineStyle{
		Color: color.NRGBA{0x7a, 0x3e, 0x12, 0xff}, Width: vg.Points(1.4), Dashes: []vg.Length{vg.Points(4), vg.Points(3)},
	}

	failuresLine = draw.LineStyle{Color: failedColor, Width: vg.Points(1.6)}
	slownessLine = draw.LineStyle{
		Color: color.NRGBA{0x8a, 0x5a, 0xb0, 0xff}, Width: vg.Points(1.6), Dashes: []vg.Length{vg.Points(5), vg.Points(2)},
	}

	stateColors = map[breaker.State]color.Color{
		breaker.Closed:     color.NRGBA{0xdf, 0xf0, 0xe1, 0xff},
		breaker.Recovering: color.NRGBA{0xbc, 0xd6, 0xf3, 0xff},
		breaker.HalfOpen:   color.NRGBA{0xfb, 0xe0, 0x83, 0xff},
		breaker.Open:       color.NRGBA{0xef, 0xb0, 0xa9, 0xff},
	}
)

func callKeys() []key {
	return []key{
		swatch("served", servedColor), swatch("failed", failedColor), swatch("refused", refusedColor),
		swatch("incident", incidentColor),
	}
}

func admissionKeys(warmsUp bool) []key {
	list := []key{{"admitted fraction", &plotter.Line{LineStyle: fractionLine}}}
	if warmsUp {
		list = append(list, key{"capacity / full", &plotter.Line{LineStyle: capacityLine}})
	}
	for _, s := range []breaker.State{breaker.Closed, breaker.Recovering, breaker.HalfOpen, breaker.Open} {
		list = append(list, swatch(s.String(), stateColors[s]))
	}
	return list
}

func evidenceKeys() []key {
	return []key{
		{"of failures", &plotter.Line{LineStyle: failuresLine}}, {"of slowness", &plotter.Line{LineStyle: slownessLine}},
	}
}

// end is when a sample ends: a second after its start, but for a shorter last one.
func (c *column) end(s breaker.Sample) time.Duration {
	return min(s.At+time.Second, c.simulation.Duration)
}

// peak is the busiest second, in offered calls a second.
func (c *column) peak() (peak float64) {
	for _, s := range c.report.Timeline {
		peak = max(peak, float64(s.Offered)/(c.end(s)-s.At).Seconds())
	}
	return peak
}

// calls draws what became of the calls of each second, stacked, and the incidents over them.
func (c *column) calls(peak float64) *plot.Plot {
	p := c.panel(c.name, "calls a second", 1.08*max(peak, 1))
	p.Y.Tick.Marker = plot.TickerFunc(ticks)
	// Each layer covers the lower part of the one before it.
	p.Add(
		c.layer(refusedColor, func(s breaker.Sample) int { return s.Succeeded + s.Failed + s.Rejected }),
		c.layer(failedColor, func(s breaker.Sample) int { return s.Succeeded + s.Failed }),
		c.layer(servedColor, func(s breaker.Sample) int { return s.Succeeded }),
	)
	for _, i := range c.simulation.Dependency.Incidents {
		p.Add(band(min(i.After, c.simulation.Duration), min(i.After+i.For, c.simulation.Duration), p.Y.Max, incidentColor))
	}
	return p
}

// admission draws the admitted fraction over the state of each second, and the capacity of a dependency that warms up.
func (c *column) admission() *plot.Plot {
	p := c.panel("", "fraction", 1.05)
	// Seconds in the same state are one band: each by itself would have a seam.
	for rest := c.report.Timeline; len(rest) > 0; {
		n := slices.IndexFunc(rest, func(s breaker.Sample) bool { return s.State != rest[0].State })
		if n < 0 {
			n = len(rest)
		}
		p.Add(band(rest[0].At, c.end(rest[n-1]), p.Y.Max, stateColors[rest[0].State]))
		rest = rest[n:]
	}
	if full := c.simulation.Dependency.Capacity; c.simulation.Dependency.Warmup > 0 {
		p.Add(c.line(capacityLine, func(s breaker.Sample) float64 { return float64(s.Capacity) / float64(full) }))
	}
	p.Add(c.line(fractionLine, func(s breaker.Sample) float64 { return s.AdmittedFraction }))
	return p
}

// evidence draws the most that the tests on failures and on slow calls had in each second. What reaches 1 is abnormal, and opens the
// circuit if refusing is worth it. Failures in a row open it with less.
func (c *column) evidence() *plot.Plot {
	p := c.panel("", "evidence", 1.05)
	p.X.Label.Text = "seconds"
	p.Add(
		c.line(failuresLine, func(s breaker.Sample) float64 { return s.Evidence }),
		c.line(slownessLine, func(s breaker.Sample) float64 { return s.SlowEvidence }),
	)
	return p
}

// panel is an empty plot over the whole run.
func (c *column) panel(title, label string, top float64) *plot.Plot {
	p := plot.New()
	p.Title.Text = title
	p.Title.Padding = vg.Points(6)
	p.Y.Label.Text = label
	p.X.Min, p.X.Max = 0, c.simulation.Duration.Seconds()
	p.Y.Min, p.Y.Max = 0, top
	p.X.Padding, p.Y.Padding = 0, 0
	p.X.Tick.Marker = plot.TickerFunc(ticks)
	return p
}

// ticks marks at most ten steps of 1, 2 or 5 times a power of ten, and their halves.
func ticks(from, to float64) (marks []plot.Tick) {
	step := 1.0
	for n := 0; (to-from)/step > 10; n++ {
		step *= []float64{2, 2.5, 2}[n%3]
	}
	for t := from; t <= to; t += step {
		marks = append(marks, plot.Tick{Value: t, Label: strconv.FormatFloat(t, 'f', -1, 64)}, plot.Tick{Value: t + step/2})
	}
	return marks
}

// layer fills the area below a count, in calls a second.
func (c *column) layer(fill color.Color, count func(breaker.Sample) int) *plotter.Polygon {
	points := plotter.XYs{{}}
	for _, s := range c.report.Timeline {
		start, end := s.At.Seconds(), c.end(s).Seconds()
		y := float64(count(s)) / (end - start)
		points = append(points, plotter.XY{X: start, Y: y}, plotter.XY{X: end, Y: y})
	}
	points = append(points, plotter.XY{X: c.simulation.Duration.Seconds()})
	return &plotter.Polygon{XYs: []plotter.XYs{points}, Color: fill}
}

// line joins the values at the ends of the seconds.
func (c *column) line(style draw.LineStyle, value func(breaker.Sample) float64) *plotter.Line {
	points := make(plotter.XYs, len(c.report.Timeline))
	for n, s := range c.report.Timeline {
		points[n] = plotter.XY{X: c.end(s).Seconds(), Y: value(s)}
	}
	return &plotter.Line{XYs: points, LineStyle: style}
}

// band fills the full height between two times.
func band(from, to time.Duration, height float64, fill color.Color) *plotter.Polygon {
	a, b := from.Seconds(), to.Seconds()
	return &plotter.Polygon{XYs: []plotter.XYs{{{X: a}, {X: b}, {X: b, Y: height}, {X: a, Y: height}}}, Color: fill}
}
