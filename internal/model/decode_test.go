package model_test

import (
	"fmt"
	"time"

	"github.com/brownout-go/breaker"
)

// source turns bytes into choices. When it has run out it gives zeros, so that every prefix of an input is an input too.
type source struct{ bytes []byte }

func (s *source) next() int {
	if len(s.bytes) == 0 {
		return 0
	}
	b := s.bytes[0]
	s.bytes = s.bytes[1:]
	return int(b)
}

func pick[T any](s *source, choices ...T) T { return choices[s.next()%len(choices)] }

// settings chooses settings, most of which are valid.
func (s *source) settings() breaker.Settings {
	set := breaker.Settings{
		Name:                "model",
		ConsecutiveFailures: pick(s, 0, 0, breaker.Disabled, breaker.Disabled, 1, 2, 3, 10),
		FailureRatio:        pick(s, 0, 0, 0.5, 0.07, 0.25, 0.9, 1),
		MinCalls:            pick(s, 0, 1, 2, 4, 10),
		Window:              pick(s, 0, time.Millisecond, time.Second, 10*time.Second, 999_999_937, time.Minute),
		SlowCallThreshold:   pick(s, 0, 0, 0, 1, time.Microsecond, 10*time.Millisecond, time.Second),
		SlowCallRatio:       pick(s, 0, 0.25, 1, 0.1, 1e-12),
		BreakDuration:       pick(s, 0, 1, 100*time.Millisecond, time.Second, 5*time.Second, 1<<62),
		BreakJitter:         pick(s, breaker.JitterEqual, breaker.JitterNone, breaker.JitterFull),
		HalfOpenProbes:      pick(s, 0, 1, 2, 3),
		ProbeSuccesses:      pick(s, 0, 1, 2, 4),
		ProbeCohort:         pick(s, 0, 0, 0, 1, 2, 5),
		ProbeTimeout:        pick(s, 0, breaker.Disabled, 100*time.Millisecond, time.Second),
		ObserveOnly:         s.next()%8 == 7,
	}
	set.MaxBreakDuration = pick(s, 0, 0, max(set.BreakDuration, 3*time.Second), time.Hour, 1<<63-1)
	set.Recovery = s.recovery()
	set.Failures = s.failures(set.WithDefaults().Window)
	set.SlowCalls = s.slowCalls(set.WithDefaults())
	return set
}

func (s *source) recovery() breaker.Recovery {
	initial := pick(s, 0, 0.3, 0.5, 0.9, 1e-3)
	switch s.next() % 4 {
	case 0:
		return breaker.Recovery{}
	case 1:
		return breaker.Recovery{Initial: initial}
	case 2:
		return breaker.Recovery{Off: true}
	default:
		return breaker.Recovery{
			Fraction: pick(s, 0.25, 1, 10, 1e-9),
			Initial:  initial,
			Min:      pick(s, 0, 1, 2*time.Second),
			Max:      pick(s, 0, 3*time.Second, time.Hour),
		}
	}
}

// every chooses the time between two false alarms; half of the tests are off.
func (s *source) every() time.Duration {
	return pick(s, 0, breaker.Disabled, breaker.Disabled, time.Hour, 24*time.Hour, breaker.Disabled, 0, 1<<62)
}

func (s *source) failures(window time.Duration) breaker.Failures {
	if s.next()%4 == 3 {
		return breaker.Failures{Off: true}
	}
	f := breaker.Failures{
		Multiple:        pick(s, 0, 1.5, 1.2, 2, 10),
		MinSamples:      pick(s, 0, 1, 5, 10, 30),
		Floor:           pick(s, 0, 1e-6, 0.3, 1),
		FalseAlarmEvery: s.every(),
	}
	need := time.Duration(2 * float64(window))
	if f.Multiple > 0 && f.FalseAlarmEvery == breaker.Disabled {
		need = time.Duration(2 * f.Multiple * float64(window))
	}
	if f.Multiple > 0 {
		f.Window = pick(s, 0, need, need+need/3+7)
	}
	return f
}

func (s *source) slowCalls(d breaker.Settings) breaker.SlowCalls {
	ended := s.next()%4 == 3
	if s.next()%4 == 3 {
		return breaker.SlowCalls{Off: true, EndedOnly: ended}
	}
	c := breaker.SlowCalls{
		EndedOnly:       ended,
		FalseAlarmEvery: s.every(),
		Multiple:        pick(s, 0, 1.5, 1.0001, 10),
		Quantile:        pick(s, 0, 0.5, 0.1, 0.3),
		MinSamples:      pick(s, 0, 1, 2, 5, 8),
		Floor:           pick(s, 0, breaker.Disabled, time.Millisecond, 1, 20*time.Millisecond),
	}
	if s.next()%4 == 3 {
		c.TailQuantile = max(0.6, 1-d.SlowCallRatio/pick(s, 2.0, 3, 10))
	}
	if c.Quantile > 0 {
		share := min(c.Quantile, 1-c.TailQuantile)
		need := time.Duration(2*d.SlowCallRatio*float64(d.Window)/share) + 1
		c.Window = pick(s, 0, need, need+need/3+7)
	}
	return c
}

type kind uint8

const (
	admit    kind = iota
	call          // admitted and reported at once
	burst         // of calls, with no look at the breaker between them
	series        // of calls, and a step of the clock after each
	hang          // of calls that do not return, and a step of the clock after each
	end           // the report of a permit in flight
	endTwice      // a second report of one that has ended
	forget        // a permit that nobody will end
	step          // of the clock
	isolate
	reset
	read
	answer // what BreakDurationFunc says from now on
	random // what Random gives from now on
	admitCancelled
	react // what OnStateChange does at the next change
)

// how a permit is ended.
type how uint8

const (
	record how = iota
	recordLatency
	done
	doneCancelled
	release
)

// op is one thing that happens to breaker and model.
type op struct {
	kind    kind
	choice  int // of the permit
	how     how
	outcome breaker.Outcome
	latency time.Duration
	// nearThreshold counts the latency from the slow threshold in force.
	nearThreshold bool
	unit          unit
	times         time.Duration
	delta         time.Duration
	number        float64
	fails         bool
	reaction      kind
	early         bool
}

// unit is what a clock step is measured in.
type unit uint8

const (
	fixed unit = iota // the step is delta
	tripBucket
	tripWindow
	latencyQuarter
	failureBucket
	slice
	breakLeft
	rampLength
	probeTimeout
	firstBreak
	slowThreshold
	units
)

const (
	maxOps    = 400
	maxBursts = 2 // the model takes time with the square of the calls
)

// ops chooses what happens.
func (s *source) ops() []op {
	var ops []op
	bursts := 0
	for len(s.bytes) > 0 && len(ops) < maxOps {
		switch k := s.next() % 32; {
		case k < 4:
			ops = append(ops, op{kind: admit})
		case k < 5:
			ops = append(ops, s.repeated())
		case k < 12:
			o := s.report(call)
			for range pick(s, 1, 1, 1, 2, 5, 20) {
				ops = append(ops, o)
			}
		case k < 20:
			ops = append(ops, s.report(end))
		case k < 21:
			ops = append(ops, s.report(endTwice))
		case k < 22:
			ops = append(ops, op{kind: forget, choice: s.next()})
		case k < 28:
			ops = append(ops, s.step())
		default:
			o := s.rare(k)
			if o.kind == burst {
				bursts++
			}
			if o.kind != burst || bursts <= maxBursts {
				ops = append(ops, o)
			}
		}
	}
	return ops[:min(len(ops), maxOps)]
}

// repeated chooses a series of calls, or of calls that hang, some time apart.
func (s *source) repeated() op {
	o := s.report(series)
	switch s.next() % 4 {
	case 0:
	case 1:
		o.how, o.outcome = recordLatency, breaker.Transient
	case 2: // slow
		o.how, o.outcome, o.nearThreshold, o.latency = recordLatency, breaker.Success, true, 1
	default:
		o.kind = hang
	}
	o.times = pick(s, time.Duration(4), 8, 12, 16, 24)
	o.delta = pick(s, 250*time.Millisecond, 100*time.Millisecond, 10*time.Millisecond, 249_999_999, time.Second, 10*time.Second)
	return o
}

func (s *source) rare(k int) op {
	switch k {
	case 28:
		if s.next()%4 == 3 {
			return op{kind: react, early: true, reaction: pick(s, reset, isolate)}
		}
		return op{kind: react, reaction: pick(s, isolate, reset, admit, read), delta: pick(s, 0, 1, time.Second, time.Minute)}
	case 29:
		return op{kind: pick(s, isolate, reset, read, reset, admitCancelled)}
	case 30:
		return op{kind: random, number: pick(s, 0, 0.5, 0.999, 1, -1, 1e-12, 1.0/3)}
	default:
		if s.next()%8 == 7 {
			o := s.report(burst)
			o.times = pick(s, time.Duration(100), 499, 500, 501)
			return o
		}
		return op{kind: answer, delta: pick(s, 0, -1, 1, time.Second, time.Minute, 1<<63-1), fails: s.next()%4 == 3}
	}
}

func (s *source) report(k kind) op {
	o := op{
		kind: k,
		how:  pick(s, recordLatency, recordLatency, recordLatency, recordLatency, record, done, done, release, doneCancelled),
		outcome: pick(s, breaker.Success, breaker.Success, breaker.Success, breaker.Success, breaker.Success,
			breaker.Transient, breaker.Transient, breaker.Transient, breaker.Transient,
			breaker.Throttled, breaker.Permanent, breaker.Ignored, breaker.Outcome(7)),
		latency: pick(s, time.Millisecond, 0, -time.Millisecond, 999, time.Microsecond, 7999, 8*time.Microsecond,
			10*time.Millisecond, 10_240_000, 10_239_999, 15*time.Millisecond, 100*time.Millisecond, time.Second,
			300*time.Second, 1<<63-1),
	}
	if k != call && k != burst && k != series {
		o.choice = s.next()
	}
	if s.next()%4 == 3 {
		o.nearThreshold = true
		o.latency = pick(s, time.Duration(0), 1, -1, time.Microsecond)
	}
	return o
}

func (s *source) step() op {
	o := op{kind: step, unit: unit(s.next() % int(units)), times: pick(s, time.Duration(1), 1, 1, 2, 3, 9, -1, -2)}
	if o.unit == fixed {
		o.delta = pick(s, 1, time.Millisecond, 100*time.Millisecond, 400*time.Millisecond, time.Second, time.Second+1,
			10*time.Second, time.Hour, 30*24*time.Hour)
		return o
	}
	o.delta = pick(s, time.Duration(0), -1, 1)
	return o
}

func (o op) String() string {
	report := fmt.Sprintf("%v by %s", o.outcome,
		[...]string{"Record", "RecordLatency", "Done", "Done after cancellation", "Release"}[o.how])
	switch o.kind {
	case admit:
		return "admit"
	case call:
		return "admit and report " + report
	case burst:
		return fmt.Sprintf("%d times admit and report %s", o.times, report)
	case series, hang:
		what := "report " + report
		if o.kind == hang {
			what = "forget"
		}
		return fmt.Sprintf("%d times admit, %s and step %v", o.times, what, o.delta)
	case end:
		return "report " + report
	case endTwice:
		return "report again " + report
	case forget:
		return "forget a permit"
	case step:
		return "step the clock"
	case answer:
		return fmt.Sprintf("BreakDurationFunc says %v, fails %v", o.delta, o.fails)
	case random:
		return fmt.Sprintf("Random gives %v", o.number)
	case react:
		if o.early {
			return fmt.Sprintf("BreakDurationFunc does %v next time", op{kind: o.reaction})
		}
		return fmt.Sprintf("OnStateChange takes %v and does %v next time", o.delta, op{kind: o.reaction})
	default:
		return [...]string{admitCancelled: "admit after cancellation", isolate: "isolate", reset: "reset", read: "read"}[o.kind]
	}
}
