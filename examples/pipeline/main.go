// Pipeline reads orders, asks an HTTP server for their prices, and writes them to a file. For a while the server is down. Instead
// of failing, the pipeline waits: no order is skipped, dead-lettered or acknowledged because the dependency is down, and the
// source is read no faster than orders get through. In the end every order is accounted for. It takes about ten seconds:
//
//	go run ./examples/pipeline
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"time"

	"github.com/brownout-go/breaker"
)

// settings are right for a pipeline: wait while the circuit is open, and come back along a ramp, because otherwise all waiting
// orders would go at once. The break is short to keep the example short.
func settings(onStateChange func(context.Context, breaker.StateChange)) breaker.Settings {
	return breaker.Settings{
		Name:                "prices",
		ConsecutiveFailures: 5,
		BreakDuration:       500 * time.Millisecond,
		MaxBreakDuration:    time.Second,
		Recovery:            breaker.Recovery{Fraction: 1},
		WhenOpen:            breaker.Wait,
		OnStateChange:       onStateChange,
	}
}

// options are the command line.
type options struct {
	orders, workers int
	outage          time.Duration
	dir             string
}

func parse(args []string, errs io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("pipeline", flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.IntVar(&o.orders, "orders", 2000, "how many orders there are")
	flags.IntVar(&o.workers, "workers", 8, "how many orders are priced at once")
	flags.DurationVar(&o.outage, "outage", 4*time.Second, "how long the server is out, a second after the start")
	flags.StringVar(&o.dir, "dir", "", "`directory` for priced.jsonl and dead-letters.jsonl (default a new temporary one)")
	if err = flags.Parse(args); err != nil {
		return o, err
	}
	if o.orders < 0 || o.workers < 1 {
		return o, errors.New("-orders must not be negative, -workers must be positive")
	}
	if o.dir == "" {
		o.dir, err = os.MkdirTemp("", "pipeline-")
	}
	return o, err
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if errors.Is(err, context.Canceled) {
		err = errors.New("interrupted")
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "pipeline:", err)
		os.Exit(1)
	}
}

// run starts the server and lets all orders through the pipeline. It returns when everything it started has ended.
func run(ctx context.Context, args []string, out, errs io.Writer) error {
	o, err := parse(args, errs)
	if err != nil {
		return err
	}
	progress := newProgress(out)
	outage := time.Now().Add(time.Second)
	url, closeServer, err := listen(&priceServer{outage, outage.Add(o.outage)})
	if err != nil {
		return err
	}
	defer closeServer()
	p, err := newPipeline(&prices{&http.Client{Timeout: 2 * time.Second}, url}, settings(progress.change), o.workers)
	if err != nil {
		return err
	}
	priced, deadLetters, err := create(o.dir)
	if err != nil {
		return err
	}
	stopShowing := progress.show(p)
	err = p.run(ctx, orders(o.orders), priced, deadLetters)
	stopShowing()
	err = errors.Join(err, priced.Close(), deadLetters.Close())
	return errors.Join(err, report(out, o, &p.tally, err == nil))
}

// create makes the two files that orders end in.
func create(dir string) (priced, deadLetters *os.File, err error) {
	if priced, err = os.Create(filepath.Join(dir, "priced.jsonl")); err != nil {
		return nil, nil, err
	}
	if deadLetters, err = os.Create(filepath.Join(dir, "dead-letters.jsonl")); err != nil {
		return nil, nil, errors.Join(err, priced.Close())
	}
	return priced, deadLetters, nil
}

// progress prints lines that begin with the time since the start. It is safe for concurrent use, as a log.Logger is.
type progress struct {
	lines *log.Logger
	start time.Time
}

func newProgress(out io.Writer) *progress { return &progress{log.New(out, "", 0), time.Now()} }

func (p *progress) printf(format string, args ...any) {
	p.lines.Printf("%5.1fs  "+format, append([]any{time.Since(p.start).Seconds()}, args...)...)
}

func (p *progress) change(_ context.Context, c breaker.StateChange) {
	p.printf("circuit %v -> %v (%v)", c.From, c.To, c.Reason)
}

// show prints what a pipeline does, every half second, until the function it returns is called.
func (p *progress) show(of *pipeline) (stop func()) {
	every, stopped := time.NewTicker(500*time.Millisecond), make(chan struct{})
	var showing sync.WaitGroup
	showing.Go(func() {
		for {
			select {
			case <-every.C:
				s, t := of.breaker.Snapshot(), &of.tally
				p.printf("%4d read  %4d priced  %3d dead letters  circuit %v, %d waiting",
					t.read.Load(), t.priced.Load(), t.dead.Load(), s.State, s.Waiting)
			case <-stopped:
				return
			}
		}
	})
	return func() {
		every.Stop()
		close(stopped)
		showing.Wait()
	}
}

// report accounts for every order. A pipeline that ran to the end has read all of them and returned none.
func report(out io.Writer, o options, t *tally, finished bool) error {
	read, priced, dead, returned := t.read.Load(), t.priced.Load(), t.dead.Load(), t.returned.Load()
	fmt.Fprintf(out, "\n%d of %d orders read: %d priced, %d dead letters, %d given back to the source. See %s\n",
		read, o.orders, priced, dead, returned, o.dir)
	if lost := read - priced - dead - returned; lost != 0 {
		return fmt.Errorf("%d orders are unaccounted for", lost)
	}
	if finished && (read != int64(o.orders) || returned != 0) {
		return errors.New("the pipeline ended before the orders did")
	}
	fmt.Fprintln(out, "No order is lost.")
	return nil
}
