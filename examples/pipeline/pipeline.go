package main

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/brownout-go/breaker"
)

// order is what goes through the pipeline.
type order struct {
	ID    int    `json:"id"`
	Price int    `json:"price,omitempty"`
	Error string `json:"error,omitempty"` // of a dead letter
}

// orders is the source: n orders, numbered from 1.
func orders(n int) iter.Seq[order] {
	return func(yield func(order) bool) {
		for id := 1; id <= n && yield(order{ID: id}); id++ {
		}
	}
}

// pipeline has three stages, read, price and write, joined by unbuffered channels. That is all the back-pressure it needs: while
// the workers wait for the circuit they take no orders, so none are read.
type pipeline struct {
	prices  *prices
	breaker *breaker.Breaker
	workers int
	tally   tally
}

func newPipeline(p *prices, s breaker.Settings, workers int) (*pipeline, error) {
	b, err := breaker.New(s)
	return &pipeline{prices: p, breaker: b, workers: workers}, err
}

// tally accounts for orders. Every order read becomes one of the other three.
type tally struct {
	read     atomic.Int64
	priced   atomic.Int64
	dead     atomic.Int64 // refused by the server for good
	returned atomic.Int64 // not done, and left to the source: nobody acknowledged them
}

// result is what became of an order.
type result struct {
	order order
	fate  fate
}

type fate int

const (
	priced   fate = iota
	dead          // it will never succeed
	returned      // it has not been tried, or not been tried with success
)

// run processes all orders, or as many as there is time for before the context ends. It returns when all stages have ended and
// every order that was read is accounted for. If the context ended it, it returns the context's error.
func (p *pipeline) run(ctx context.Context, source iter.Seq[order], out, deadLetters io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	read, done := make(chan order), make(chan result)
	go p.read(ctx, source, read)
	go p.price(ctx, read, done)
	if err := p.write(done, json.NewEncoder(out), json.NewEncoder(deadLetters), cancel); err != nil {
		return err
	}
	return ctx.Err()
}

// read is the first stage.
func (p *pipeline) read(ctx context.Context, source iter.Seq[order], read chan<- order) {
	defer close(read)
	for o := range source {
		select {
		case read <- o:
			p.tally.read.Add(1)
		case <-ctx.Done():
			return
		}
	}
}

// price is the second stage. It takes every order that was read, even after the context has ended, so that none is lost.
func (p *pipeline) price(ctx context.Context, read <-chan order, done chan<- result) {
	defer close(done)
	var workers sync.WaitGroup
	defer workers.Wait()
	for range p.workers {
		workers.Go(func() {
			for o := range read {
				done <- p.priceOne(ctx, o)
			}
		})
	}
}

// priceOne asks for a price until it gets an answer. While the circuit is open it waits inside Execute until its turn comes.
//
// Only a permanent error ends in the dead letters. A failure of the server says nothing about the order, and a refusal, which
// comes after Settings.MaxWait, means that it has not even been tried. Both are tried again.
func (p *pipeline) priceOne(ctx context.Context, o order) result {
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		price, err := breaker.Execute(ctx, p.breaker, func(ctx context.Context) (int, error) { return p.prices.ask(ctx, o) })
		switch {
		case err == nil:
			o.Price = price
			return result{o, priced}
		case isPermanent(err):
			o.Error = err.Error()
			return result{o, dead}
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return result{o, returned}
		}
	}
}

// write is the third stage. An order is done once it is written. If writing fails the pipeline ends, and the orders still in it
// go back to the source.
func (p *pipeline) write(done <-chan result, out, deadLetters *json.Encoder, stop func()) (failed error) {
	for r := range done {
		to, counter := out, &p.tally.priced
		switch {
		case failed != nil || r.fate == returned:
			p.tally.returned.Add(1)
			continue
		case r.fate == dead:
			to, counter = deadLetters, &p.tally.dead
		}
		if failed = to.Encode(r.order); failed != nil {
			p.tally.returned.Add(1)
			stop()
			continue
		}
		counter.Add(1)
	}
	return failed
}
