package model_test

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"

	"github.com/brownout-go/breaker"
	"github.com/brownout-go/breaker/internal/model"
)

func (r *rig) fault(format string, args ...any) {
	r.faults = append(r.faults, fmt.Sprintf(format, args...))
}

func (r *rig) differ(what string, got, want any) {
	if got != want {
		r.fault("%s: got %v, want %v", what, got, want)
	}
}

// close compares two numbers that may be rounded differently, and makes them equal for what compares exactly.
func (r *rig) close(what string, got, want *float64) {
	if !(math.Abs(*got-*want) < 1e-9) {
		r.differ(what, *got, *want)
	}
	*got = *want
}

func (r *rig) compareRefusal(err error, want *model.Refusal) {
	var got *breaker.RejectedError
	switch {
	case want == nil:
		r.fault("admission: got %v, want a permit", err)
	case !errors.As(err, &got):
		r.fault("admission: got %v, want a RejectedError", err)
	default:
		r.differ("the refusal's name", got.Name, r.settings.Name)
		r.differ("the refusal's state", got.State, want.State)
		r.differ("the refusal's reason", got.Reason, want.Reason)
		r.differ("the refusal's cause", got.Cause, want.Cause)
		r.refusals = append(r.refusals, refusal{got, want})
		r.refusals = r.refusals[max(0, len(r.refusals)-4):]
	}
}

// compareEvents compares what both sides told, and that the breaker read the clock wherever time mattered.
func (r *rig) compareEvents() {
	want := r.model.Events
	for ; r.checked < min(len(r.events), len(want)); r.checked++ {
		r.fields("event", r.events[r.checked], want[r.checked])
	}
	if len(r.events) != len(want) {
		r.fault("events: got %d, want %d: %+v and %+v", len(r.events), len(want), r.events[r.checked:], want[r.checked:])
	}
	r.differ("failed callbacks", strings.Join(r.reports, " "), strings.Join(r.model.Reports, " "))
	for _, what := range r.model.Unread {
		r.fault("the clock was not read for %s", what)
	}
	for len(r.asked) >= 2 {
		r.fields("BreakDurationFunc", r.asked[0], r.asked[1])
		r.asked = r.asked[2:]
	}
	if len(r.asked) > 0 {
		r.fault("BreakDurationFunc was asked by one side only: %+v", r.asked[0])
	}
}

// answered is what a reader with two results says.
type answered struct {
	value any
	known bool
}

// compareReaders asks everything that reads, one after the other, for each may be the one that sees the time first.
func (r *rig) compareReaders() {
	var got breaker.Snapshot
	var state breaker.State
	var retryAfter, latency, rate, opened answered
	r.see(func() { state = r.breaker.State() })
	r.see(func() { retryAfter.value, retryAfter.known = r.breaker.RetryAfter() })
	r.see(func() { latency.value, latency.known = r.breaker.NormalLatency() })
	r.see(func() { rate.value, rate.known = r.breaker.NormalFailureRate() })
	r.see(func() { opened.value, opened.known = r.breaker.OpenedAt() })
	r.see(func() { got = r.breaker.Snapshot() })
	want := plain(r.model.Snapshot())
	r.close("Snapshot.Evidence", &got.Evidence, &want.Evidence)
	r.close("Snapshot.SlowEvidence", &got.SlowEvidence, &want.SlowEvidence)
	r.fields("Snapshot", plain(got), want)
	r.differ("State", state, want.State)
	r.differ("RetryAfter", retryAfter, answered{want.RetryAfter, want.State == breaker.Open})
	r.differ("NormalLatency", latency, answered{want.NormalLatency, want.NormalLatency > 0})
	r.differ("NormalFailureRate", rate, answered{want.Rate, want.Known})
	r.differ("OpenedAt", opened, answered{want.OpenedAt, want.State != breaker.Closed})
	for _, f := range r.refusals {
		r.see(func() { retryAfter.value, retryAfter.known = f.got.RetryAfter() })
		left, open := r.model.RetryAfterOf(f.want)
		r.differ("the RetryAfter of a refusal", retryAfter, answered{left, open})
	}
}

func (r *rig) see(f func()) { r.model.See(r.reading(f)) }

// flat is a snapshot that can be compared field by field.
type flat struct {
	breaker.Snapshot
	Rate  float64
	Known bool
	Slow  float64
	Told  bool
}

func plain(s breaker.Snapshot) flat {
	f := flat{Snapshot: s}
	if s.NormalFailureRate != nil {
		f.Rate, f.Known = *s.NormalFailureRate, true
		f.NormalFailureRate = nil
	}
	if s.NormalSlowRate != nil {
		f.Slow, f.Told = *s.NormalSlowRate, true
		f.NormalSlowRate = nil
	}
	return f
}

// fields compares two structs and names the fields that differ.
func (r *rig) fields(what string, got, want any) {
	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	for i := range g.NumField() {
		field := what + "." + g.Type().Field(i).Name
		a, b := g.Field(i).Interface(), w.Field(i).Interface()
		if g.Field(i).Kind() == reflect.Struct && g.Type().Field(i).Anonymous {
			r.fields(what, a, b)
			continue
		}
		r.differ(field, a, b)
	}
}
