// Example exports a breaker to Prometheus while its dependency fails and comes back, and prints what a server would scrape. It takes
// five seconds, from the folder of the module:
//
//	go run ./example
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/brownout-go/breaker"
	"github.com/brownout-go/breaker/breakerprom"
)

// schedule is when the dependency fails, and how often it is called and scraped.
type schedule struct{ fails, works, ends, call, scrape time.Duration }

func main() {
	s := schedule{
		fails: time.Second, works: 2 * time.Second, ends: 5 * time.Second,
		call: 10 * time.Millisecond, scrape: time.Second,
	}
	if err := run(os.Stdout, s); err != nil {
		log.Fatal(err)
	}
}

// run calls a dependency by the schedule and prints scrapes of the breaker.
func run(w io.Writer, s schedule) error {
	var monitor breaker.Monitor
	registry := prometheus.NewRegistry()
	registry.MustRegister(breakerprom.NewCollector(&monitor))
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	defer server.Close()

	inventory := breaker.MustNew(breaker.Settings{
		Name: "inventory", BreakDuration: s.scrape / 2, Recovery: breaker.Recovery{Fraction: 2, Min: s.scrape}, Monitor: &monitor,
	})
	defer runtime.KeepAlive(inventory) // a monitor does not
	calls, scrapes := time.NewTicker(s.call), time.NewTicker(s.scrape)
	defer calls.Stop()
	defer scrapes.Stop()
	for begun := time.Now(); time.Since(begun) < s.ends; {
		select {
		case <-calls.C:
			now := time.Since(begun)
			_ = inventory.Execute(context.Background(), func(context.Context) error { return s.dependency(now) })
		case <-scrapes.C:
			fmt.Fprintf(w, "after %v\n", time.Since(begun).Round(s.scrape))
			if err := scrape(w, server.URL); err != nil {
				return err
			}
		}
	}
	fmt.Fprintln(w, "at the end")
	return scrape(w, server.URL)
}

// dependency takes its time, and fails for a while.
func (s schedule) dependency(now time.Duration) error {
	<-time.After(s.call / 2)
	if now >= s.fails && now < s.works {
		return errors.New("connection refused")
	}
	return nil
}

// scrape prints the series that are not 0.
func scrape(w io.Writer, url string) error {
	response, err := http.Get(url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "#") && !strings.HasSuffix(line, " 0\n") {
			fmt.Fprint(w, "  ", line)
		}
	}
	return nil
}
