package main

import (
	"bytes"
	"fmt"
	"math"
	"time"

	"github.com/brownout-go/breaker"
)

// panel is the picture of some minutes of one breaker. One call in ten is drawn.
type panel struct {
	name      string
	fast      []point
	slow      []point
	threshold []point
	states    []breaker.State // at the end of each second
}

type point struct {
	at      time.Duration
	latency time.Duration
}

const (
	length      = 12 * time.Minute
	falls, ends = 9 * time.Minute, 10 * time.Minute // of the brownout
	plotWidth   = 480
	plotHeight  = 190
	bandHeight  = 12
	marginLeft  = 56
	marginTop   = 34
	panelWidth  = marginLeft + plotWidth + 18
	panelHeight = marginTop + plotHeight + bandHeight + 52
	legendWidth = 132
	drawnOf     = 10
)

// The colours of the pictures of examples/simulate.
const (
	servedColor    = "#5aa469"
	slowColor      = "#c83e3e"
	thresholdColor = "#1d3f72"
	incidentColor  = "#ffb31a"
)

var stateColors = map[breaker.State]string{
	breaker.Closed: "#dff0e1", breaker.HalfOpen: "#fbe083", breaker.Open: "#efb0a9",
	breaker.Recovering: "#bcd6f3",
}

func panels() []panel {
	settings := tailSettings()
	return []panel{watch(settings[0]), watch(settings[1])}
}

// watch sends calls with two humps, of equal weight, through a breaker.
func watch(c candidate) panel {
	p := panel{name: c.name}
	t := newTraffic(c.settings, perSecond, 8)
	for n := 0; t.elapsed() < length; n++ {
		slower := time.Duration(1)
		if t.elapsed() >= falls && t.elapsed() < ends {
			slower = brownout
		}
		limit := t.breaker.Snapshot().SlowThreshold
		latency, ok := t.twoHumps(0.5, slower)
		now := t.elapsed()
		switch {
		case !ok || n%drawnOf != 0:
		case limit > 0 && latency > limit:
			p.slow = append(p.slow, point{now, latency})
		default:
			p.fast = append(p.fast, point{now, latency})
		}
		if last := len(p.threshold) - 1; limit > 0 && (last < 0 || p.threshold[last].latency != limit) {
			p.threshold = append(p.threshold, point{now, limit})
		}
		for time.Duration(len(p.states)+1)*time.Second <= now {
			p.states = append(p.states, t.breaker.State())
		}
	}
	return p
}

// draw returns the panels as SVG, side by side.
func draw(panels []panel) []byte {
	var b bytes.Buffer
	width := len(panels)*panelWidth + legendWidth
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="serif" font-size="12">`+"\n", width, panelHeight)
	rect(&b, 0, 0, float64(width), panelHeight, "white")
	for n, p := range panels {
		fmt.Fprintf(&b, `<g transform="translate(%d 0)">`+"\n", n*panelWidth)
		p.draw(&b)
		b.WriteString("</g>\n")
	}
	legend(&b, len(panels)*panelWidth)
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func (p panel) draw(b *bytes.Buffer) {
	text(b, marginLeft+plotWidth/2, 20, "middle", p.name)
	fmt.Fprintf(b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s" fill-opacity="0.25"/>`+"\n",
		x(falls), marginTop, x(ends)-x(falls), plotHeight, incidentColor)
	dots(b, p.fast, servedColor)
	dots(b, p.slow, slowColor)
	fmt.Fprintf(b, `<path fill="none" stroke="%s" stroke-width="1.6" d="`, thresholdColor)
	for n, t := range p.threshold {
		if n == 0 {
			fmt.Fprintf(b, "M%.1f %.1f", x(t.at), y(t.latency))
		}
		fmt.Fprintf(b, "H%.1fV%.1f", x(t.at), y(t.latency))
	}
	fmt.Fprintf(b, `H%.1f"/>`+"\n", x(length))
	p.band(b)
	axes(b)
}

// band draws the state of each second below the plot.
func (p panel) band(b *bytes.Buffer) {
	for from := 0; from < len(p.states); {
		to := from
		for to < len(p.states) && p.states[to] == p.states[from] {
			to++
		}
		left, right := x(time.Duration(from)*time.Second), x(time.Duration(to)*time.Second)
		rect(b, left, marginTop+plotHeight+4, right-left, bandHeight, stateColors[p.states[from]])
		from = to
	}
}

// dots draws calls.
func dots(b *bytes.Buffer, points []point, color string) {
	fmt.Fprintf(b, `<path stroke="%s" stroke-width="1.6" d="`, color)
	for _, p := range points {
		fmt.Fprintf(b, "M%.1f %.1fh1.6", x(p.at), y(p.latency))
	}
	b.WriteString(`"/>` + "\n")
}

// axes marks minutes and, on a logarithmic scale, latencies.
func axes(b *bytes.Buffer) {
	const bottom = marginTop + plotHeight
	for minute := time.Duration(0); minute <= length; minute += time.Minute {
		text(b, int(x(minute)), bottom+bandHeight+20, "middle", fmt.Sprintf("%.0f", minute.Minutes()))
	}
	text(b, marginLeft+plotWidth/2, bottom+bandHeight+36, "middle", "minutes")
	for _, latency := range []time.Duration{time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond} {
		text(b, marginLeft-6, int(y(latency))+4, "end", latency.String())
		rect(b, marginLeft, y(latency), plotWidth, 0.4, "#bbbbbb")
	}
}

func x(at time.Duration) float64 { return marginLeft + plotWidth*float64(at)/float64(length) }

// y places a latency between half a millisecond and half a second.
func y(latency time.Duration) float64 {
	return marginTop + plotHeight*(1-math.Log10(float64(latency)/float64(500*time.Microsecond))/3)
}

func legend(b *bytes.Buffer, left int) {
	for n, k := range []struct{ color, name string }{
		{servedColor, "a call"}, {slowColor, "a slow call"}, {thresholdColor, "slow threshold"}, {incidentColor, "brownout"},
		{stateColors[breaker.Closed], "closed"}, {stateColors[breaker.HalfOpen], "half-open"}, {stateColors[breaker.Open], "open"},
		{stateColors[breaker.Recovering], "recovering"},
	} {
		top := marginTop + 20*n
		rect(b, float64(left), float64(top), 14, 12, k.color)
		text(b, left+20, top+10, "start", k.name)
	}
}

func rect(b *bytes.Buffer, x, y, width, height float64, color string) {
	fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`+"\n", x, y, width, height, color)
}

func text(b *bytes.Buffer, x, y int, anchor, s string) {
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="%s">%s</text>`+"\n", x, y, anchor, s)
}
