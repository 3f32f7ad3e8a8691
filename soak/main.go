// Command soak keeps one breaker busy against a real server on the loopback interface that fails in every way a server can, and
// says whether anything was lost or left behind. It exits with 1 if so.
//
//	go run ./soak -soak 10m
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"
)

const longest = 24 * time.Hour

func main() {
	length := flag.Duration("soak", 10*time.Minute, "how long, at most 24h")
	callers := flag.Int("callers", 64, "calls in flight at once")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *length, *callers); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

// run soaks for so long, or until the context ends, prints what happened, and returns what was wrong.
func run(ctx context.Context, length time.Duration, callers int) error {
	if length <= 0 || length > longest || callers <= 0 {
		return errors.New("-soak must be positive and at most 24h, -callers positive")
	}
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	before := measure()
	faulty, err := listen()
	if err != nil {
		return err
	}
	l := newLoad("http://"+faulty.address, callers)
	peak := watch(ctx)
	go l.run(ctx)
	faults := faulty.misbehave(ctx)
	<-l.done
	highest := <-peak
	l.client.CloseIdleConnections()
	faulty.kill()
	r := report{load: l, faults: faults, before: before, peak: highest, after: settle(before), length: length}
	r.print(os.Stdout)
	return r.check()
}
