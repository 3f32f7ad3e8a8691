// Command simulate runs a scenario through the breaker's simulation, prints the report and draws it as an SVG and a PNG.
// With -compare it runs a second breaker through the same scenario and draws the two side by side.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/brownout-go/breaker"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run is the command: the report goes to stdout, progress and help to stderr.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	s, out, err := parse(args, stderr)
	if err != nil {
		return err
	}
	var columns []column
	for _, settings := range s.settings() {
		simulation := s.simulation(settings)
		progress := newProgress(stderr, name(settings, len(columns)), simulation.Duration)
		simulation.OnSample = progress.sample
		report, err := simulation.Run(ctx)
		progress.done()
		if err != nil {
			return err
		}
		columns = append(columns, column{name(settings, len(columns)), simulation, report})
	}
	for i, c := range columns {
		if i > 0 {
			fmt.Fprintln(stdout)
		}
		fmt.Fprintf(stdout, "%s\n%s", c.name, c.report)
	}
	return save(columns, out)
}

// name is what the n-th settings are called in the report and the pictures.
func name(s breaker.Settings, n int) string {
	if s.Name != "" {
		return s.Name
	}
	return []string{"settings", "compare"}[n]
}

// progress shows how far a run has come, once it has taken long enough for somebody to wonder.
type progress struct {
	to      io.Writer
	name    string
	length  time.Duration
	told    time.Time
	written bool
}

const progressEvery = 500 * time.Millisecond

func newProgress(to io.Writer, name string, length time.Duration) *progress {
	return &progress{to: to, name: name, length: length, told: time.Now()}
}

func (p *progress) sample(s breaker.Sample) {
	if time.Since(p.told) < progressEvery {
		return
	}
	p.told = time.Now()
	p.written = true
	fmt.Fprintf(p.to, "\r%s: %v of %v simulated, %v", p.name, s.At, p.length, s.State)
}

// done ends the line.
func (p *progress) done() {
	if p.written {
		fmt.Fprintln(p.to)
	}
}
