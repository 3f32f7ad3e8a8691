package main

import (
	"bytes"
	"fmt"

	"github.com/brownout-go/breaker"
)

// panel is the picture of one run.
type panel struct {
	name   string
	series []step
}

const (
	perBar      = 10 // steps, a second
	bars        = steps / perBar
	barWidth    = 7
	plotWidth   = bars * barWidth
	plotHeight  = 120
	bandHeight  = 10 // of the state below the bars
	marginLeft  = 50
	marginTop   = 34
	panelWidth  = marginLeft + plotWidth + 20
	panelHeight = marginTop + plotHeight + bandHeight + 40
	legendWidth = 130
)

// The colours of the pictures of examples/simulate.
const (
	servedColor   = "#5aa469"
	failedColor   = "#c83e3e"
	refusedColor  = "#c4c8cf"
	capacityColor = "#7a3e12"
)

var stateColors = map[breaker.State]string{
	breaker.Closed: "#dff0e1", breaker.Recovering: "#bcd6f3", breaker.HalfOpen: "#fbe083", breaker.Open: "#efb0a9",
}

// draw returns the panels as SVG, two in a row.
func draw(panels []panel) []byte {
	var b bytes.Buffer
	rows := (len(panels) + 1) / 2
	width, height := 2*panelWidth+legendWidth, rows*panelHeight
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="serif" font-size="12" shape-rendering="crispEdges">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	for n, p := range panels {
		fmt.Fprintf(&b, `<g transform="translate(%d %d)">`+"\n", n%2*panelWidth, n/2*panelHeight)
		p.draw(&b)
		b.WriteString("</g>\n")
	}
	legend(&b, 2*panelWidth)
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func (p panel) draw(b *bytes.Buffer) {
	text(b, marginLeft+plotWidth/2, 20, "middle", fmt.Sprintf("%s: %d served", p.name, served(p.series)))
	for n := range bars {
		p.bar(b, n)
	}
	b.WriteString(`<polyline fill="none" stroke="` + capacityColor + `" stroke-width="1.4" stroke-dasharray="4 3" points="`)
	for n, s := range p.series {
		x := float64(marginLeft) + float64(n+1)*barWidth/perBar
		fmt.Fprintf(b, "%.1f,%.1f ", x, marginTop+plotHeight*(1-s.capacity/offered))
	}
	b.WriteString(`"/>` + "\n")
	p.axes(b)
}

// bar draws one second: served at the bottom, then failed, then refused, and the state at its end below.
func (p panel) bar(b *bytes.Buffer, n int) {
	var sum step
	for _, s := range p.series[n*perBar : (n+1)*perBar] {
		sum.served += s.served
		sum.failed += s.failed
		sum.refused += s.refused
		sum.state = s.state
	}
	x, y := marginLeft+n*barWidth, float64(marginTop+plotHeight)
	for _, layer := range []struct {
		calls int
		color string
	}{{sum.served, servedColor}, {sum.failed, failedColor}, {sum.refused, refusedColor}} {
		h := float64(layer.calls) * plotHeight / (offered * perBar)
		y -= h
		rect(b, float64(x), y, barWidth, h, layer.color)
	}
	rect(b, float64(x), marginTop+plotHeight+4, barWidth, bandHeight, stateColors[sum.state])
}

// axes marks the seconds since the dependency is back, and the calls a second.
func (p panel) axes(b *bytes.Buffer) {
	const bottom = marginTop + plotHeight
	for second := -10; second <= 40; second += 10 {
		x := marginLeft + (second+back/perBar)*barWidth
		text(b, x, bottom+bandHeight+20, "middle", fmt.Sprint(second))
	}
	text(b, marginLeft+plotWidth/2, bottom+bandHeight+34, "middle", "seconds since the dependency is back")
	for calls := 0; calls <= 200; calls += 50 {
		text(b, marginLeft-6, bottom+4-calls*plotHeight/200, "end", fmt.Sprint(calls))
	}
}

func legend(b *bytes.Buffer, x int) {
	keys := []struct{ color, name string }{
		{servedColor, "served"}, {failedColor, "failed"}, {refusedColor, "refused"}, {capacityColor, "capacity (line)"},
	}
	for _, s := range []breaker.State{breaker.Closed, breaker.Recovering, breaker.HalfOpen, breaker.Open} {
		keys = append(keys, struct{ color, name string }{stateColors[s], s.String()})
	}
	for n, k := range keys {
		y := marginTop + 20*n
		rect(b, float64(x), float64(y), 14, 12, k.color)
		text(b, x+20, y+10, "start", k.name)
	}
}

func rect(b *bytes.Buffer, x, y, width, height float64, color string) {
	if height > 0 {
		fmt.Fprintf(b, `<rect x="%g" y="%.1f" width="%g" height="%.1f" fill="%s"/>`+"\n", x, y, width, height, color)
	}
}

func text(b *bytes.Buffer, x, y int, anchor, s string) {
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="%s">%s</text>`+"\n", x, y, anchor, s)
}
