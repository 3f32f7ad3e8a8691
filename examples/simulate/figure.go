package main

import (
	"errors"
	"image/color"
	"os"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/brownout-go/breaker"
)

// column is one run, drawn from the top: the calls of each second, the admitted fraction, the evidence of the tests.
type column struct {
	name       string
	simulation breaker.Simulation
	report     breaker.Report
}

const (
	columnWidth  = 6 * vg.Inch
	legendWidth  = 1.5 * vg.Inch
	figureHeight = 6.5 * vg.Inch
	resolution   = 110 // dots an inch
)

// save writes the figure to path.svg and path.png.
func save(columns []column, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	width := vg.Length(len(columns))*columnWidth + legendWidth
	svg := vgsvg.New(width, figureHeight)
	paint(columns, draw.New(svg))
	img := vgimg.NewWith(vgimg.UseWH(width, figureHeight), vgimg.UseDPI(resolution))
	paint(columns, draw.New(img))
	return errors.Join(encode(path+".svg", svg), encode(path+".png", vgimg.PngCanvas{Canvas: img}))
}

func encode(file string, canvas vg.CanvasWriterTo) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = canvas.WriteTo(f)
	return errors.Join(err, f.Close())
}

// paint draws the columns from left to right, and the keys to the right of them.
func paint(columns []column, c draw.Canvas) {
	var peak float64
	warmsUp := false
	for _, col := range columns {
		peak = max(peak, col.peak())
		warmsUp = warmsUp || col.simulation.Dependency.Warmup > 0
	}
	rows := make([][]*plot.Plot, 3)
	for _, col := range columns {
		rows[0] = append(rows[0], col.calls(peak))
		rows[1] = append(rows[1], col.admission())
		rows[2] = append(rows[2], col.evidence())
	}
	left := draw.Crop(c, 0, -legendWidth, 0, 0)
	tiles := draw.Tiles{Rows: len(rows), Cols: len(columns), PadX: 14, PadY: 12, PadTop: 8, PadBottom: 8, PadLeft: 8, PadRight: 12}
	canvases := plot.Align(rows, tiles, left)
	for r := range rows {
		for n, p := range rows[r] {
			p.Draw(canvases[r][n])
		}
	}
	keys(c, canvases[0][0].Max.Y-vg.Points(20), callKeys())
	keys(c, canvases[1][0].Max.Y, admissionKeys(warmsUp))
	keys(c, canvases[2][0].Max.Y, evidenceKeys())
}

// key explains one colour or line.
type key struct {
	name  string
	thumb plot.Thumbnailer
}

// keys draws a legend in the right margin, from top downwards.
func keys(c draw.Canvas, top vg.Length, list []key) {
	l := plot.NewLegend()
	l.Top, l.Left = true, true
	l.Padding = vg.Points(4)
	l.TextStyle.Font.Size = vg.Points(10)
	for _, k := range list {
		l.Add(k.name, k.thumb)
	}
	c.Rectangle.Min.X = c.Max.X - legendWidth
	c.Rectangle.Max.Y = top
	l.Draw(c)
}

// swatch is the key of a filled area.
func swatch(name string, fill color.Color) key {
	return key{name, &plotter.Polygon{Color: fill}}
}
