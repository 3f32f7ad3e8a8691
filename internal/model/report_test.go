package model_test

import (
	"context"
	"errors"
	"time"

	"github.com/brownout-go/breaker"
	"github.com/brownout-go/breaker/internal/model"
)

func (r *rig) take(i int) pair {
	p := r.flying[i]
	r.note("permit %d", i)
	r.flying = append(r.flying[:i:i], r.flying[i+1:]...)
	return p
}

func (r *rig) end(o op) {
	if n := len(r.flying); n > 0 {
		p := r.take(o.choice % n)
		r.ended = append(r.ended, p)
		r.report(p, o)
	}
}

// endTwice reports on a permit that has ended, which does nothing.
func (r *rig) endTwice(o op) {
	if n := len(r.ended); n > 0 {
		before := r.clock.reads
		r.report(r.ended[o.choice%n], o)
		r.differ("clock reads of a second report", r.clock.reads-before, 0)
	}
}

// report ends a permit on both sides with one outcome.
func (r *rig) report(p pair, o op) {
	rep := model.Report{Outcome: o.outcome, Via: "Record"}
	var counted bool
	reading := r.reading(func() {
		switch o.how {
		case record:
			counted = p.got.Record(o.outcome)
		case recordLatency:
			rep.Measured, rep.Latency = true, r.latency(o)
			r.note("%v", rep.Latency)
			counted = p.got.RecordLatency(o.outcome, rep.Latency)
		case done:
			rep.Err, rep.Via = failure(o.outcome), "Mark"
			counted = p.got.Done(context.Background(), rep.Err)
		case doneCancelled:
			rep.Err = failure(o.outcome)
			if rep.Err != nil {
				rep.Outcome, rep.GaveUp = breaker.Ignored, true
			}
			counted = p.got.Done(cancelled(), rep.Err)
		case release:
			rep.Outcome = breaker.Ignored
			p.got.Release()
		}
	})
	if p.closed && rep.Outcome == breaker.Success && reading.Seen && r.countsOnly() {
		r.fault("a success read the clock, and nothing needs the time")
	}
	want := r.model.End(p.want, rep, reading)
	r.follow()
	if o.how != release {
		r.differ("the report's answer", counted, want)
	}
}

// countsOnly reports whether consecutive failures are the only trip.
func (r *rig) countsOnly() bool {
	d := r.breaker.Settings()
	return d.FailureRatio == 0 && d.Failures.Off && d.SlowCalls.Off && d.SlowCallThreshold == 0
}

func (r *rig) latency(o op) time.Duration {
	if o.nearThreshold {
		return r.model.Snapshot().SlowThreshold + o.latency
	}
	return o.latency
}

// failure returns an error that Done takes for an outcome.
func failure(o breaker.Outcome) error {
	err := errors.New(o.String())
	switch o {
	case breaker.Success:
		return nil
	case breaker.Transient:
		return err
	default:
		return breaker.Mark(err, o)
	}
}
