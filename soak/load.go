package main

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"

	"github.com/brownout-go/breaker"
	"github.com/brownout-go/breaker/breakerhttp"
)

// load is callers that call without a pause, through one breaker, and what they saw.
type load struct {
	url     string
	callers int
	breaker *breaker.Breaker
	client  *http.Client
	done    chan struct{} // closed when the last caller is through

	calls, refusals, failures, answers atomic.Uint64

	mu          sync.Mutex // protects following fields
	transitions map[[2]breaker.State]int
	last        breaker.State // that the observer heard of
	breaks      int           // in the chain of events
}

func newLoad(url string, callers int) *load {
	l := &load{url: url, callers: callers, done: make(chan struct{}), transitions: map[[2]breaker.State]int{}}
	l.breaker = breaker.MustNew(breaker.Settings{
		Name: "soak", FailureRatio: 0.5, Window: 2 * time.Second, SlowCallThreshold: 500 * time.Millisecond,
		BreakDuration: 100 * time.Millisecond, MaxBreakDuration: time.Second, HalfOpenProbes: 3, ProbeSuccesses: 5,
		Recovery:       breaker.Recovery{Fraction: 0.5, Min: 50 * time.Millisecond, Max: time.Second},
		RejectionDelay: 10 * time.Millisecond, OnStateChange: l.hear,
	})
	base := &http.Transport{MaxIdleConnsPerHost: callers}
	l.client = &http.Client{
		Transport: &breakerhttp.Transport{Base: base, Breaker: l.breaker, ThroughBody: true},
		Timeout:   time.Second,
	}
	return l
}

// hear keeps the changes of state, and whether each continues the one before it.
func (l *load) hear(_ context.Context, c breaker.StateChange) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.From != l.last {
		l.breaks++
	}
	l.last = c.To
	l.transitions[[2]breaker.State{c.From, c.To}]++
}

// run calls until the context ends.
func (l *load) run(ctx context.Context) {
	defer close(l.done)
	var all sync.WaitGroup
	for range l.callers {
		all.Go(func() {
			for ctx.Err() == nil {
				l.call()
			}
		})
	}
	all.Wait()
}

// call makes one request. One in twenty gives up early, once it has been admitted: a context that is done before counts nowhere.
func (l *load) call() {
	l.calls.Add(1)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if rand.IntN(20) == 0 {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
			GetConn: func(string) { time.AfterFunc(rand.N(20*time.Millisecond), cancel) },
		})
	}
	var refusal *breaker.RejectedError
	switch err := l.get(ctx); {
	case err == nil:
		l.answers.Add(1)
	case errors.As(err, &refusal):
		l.refusals.Add(1)
	default:
		l.failures.Add(1)
	}
}

// get requests the page and reads it to its end.
func (l *load) get(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.url, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := l.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}
