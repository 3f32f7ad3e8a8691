package breaker

import (
	"fmt"
	"strings"
	"time"
)

// Report is what a [Simulation] found. Two reports of the same simulation are deeply equal.
type Report struct {
	// Settings with defaults, as they ran, without functions.
	Settings Settings
	// Calls were offered over the whole fleet; each was either admitted or rejected, and each admitted one succeeded or failed.
	// Slow counts the calls that the breakers judged slow.
	Calls, Admitted, Rejected, Succeeded, Failed, Slow int
	// Opens counts how often a circuit of the fleet opened, re-opening included. FalseOpens counts those from Closed that
	// nothing in the dependency explains: no incident was in progress or had ended within Settings.Window + Timeout, and in
	// that time the capacity was full and not exceeded.
	Opens, FalseOpens int
	// TimeToOpen runs from the start of the first incident to the first open at or after it.
	TimeToOpen time.Duration
	// Opened is whether there was such an open.
	Opened bool
	// TimeToRecover runs from the end of the last incident to the start of the first whole second at or after it with at least
	// one call, in which none was refused and none failed for another reason than Dependency.FailureRate.
	TimeToRecover time.Duration
	// Recovered is whether there was such a second.
	Recovered bool
	// PeakProbesPerSecond is how many calls the fleet sent from half-open circuits in the worst sliding second.
	PeakProbesPerSecond int
	// Timeline holds one sample a second. The last one is shorter if Duration is no whole number of seconds.
	Timeline []Sample

	latencies callerLatencies
}

// Sample is one second of a [Report].
type Sample struct {
	// At is the start of the second.
	At time.Duration
	// The calls offered in that second, and what became of them, also if later.
	Offered, Admitted, Rejected, Succeeded, Failed int
	// State is the worst in the fleet at the end of the second.
	State State
	// AdmittedFraction is the mean over the fleet at the end of the second.
	AdmittedFraction float64
	// Evidence and SlowEvidence are the most that one breaker of the fleet had in that second, as [Snapshot] has them. 1:
	// what came in is abnormal, and the circuit opens if refusing is worth it.
	Evidence, SlowEvidence float64
	// Capacity of the dependency at the end of the second, in whole calls. 0: unlimited.
	Capacity int
}

// callerLatencies counts latencies in constant memory.
type callerLatencies struct {
	histogram [allCounters]uint32
	calls     uint64
	longest   time.Duration
}

func (l *callerLatencies) add(latency time.Duration) {
	l.histogram[counterOf(latency)]++
	l.calls++
	l.longest = max(l.longest, latency)
}

// Availability returns the fraction of the offered calls that succeeded, 0 if there were none.
func (r Report) Availability() float64 { return ratio(r.Succeeded, r.Calls) }

// LoadFraction returns the fraction of the offered calls that reached the dependency, 0 if there were none.
func (r Report) LoadFraction() float64 { return ratio(r.Admitted, r.Calls) }

// Latency returns the quantile q, in [0, 1], of how long admitted calls took as their callers saw it: succeeded, failed or
// timed out. It is at most 12.5 % above the true one, or 1 µs below 8 µs, and never below it. It is 0 if there were none.
func (r Report) Latency(q float64) time.Duration {
	l := &r.latencies
	if l.calls == 0 || !(q <= 1) {
		return l.longest
	}
	rank := rankOf(max(q, 0), l.calls)
	var seen uint64
	for i, n := range l.histogram {
		if seen += uint64(n); seen >= rank {
			return min(upperBound(i), l.longest)
		}
	}
	return l.longest
}

// String returns the report without its timeline, one figure a line, in aligned columns.
func (r Report) String() string {
	var b strings.Builder
	row := func(label string, value any, note string) {
		b.WriteString(strings.TrimRight(fmt.Sprintf("%-22s %12v  %s", label, value, note), " ") + "\n")
	}
	share := func(n, of int) string { return fmt.Sprintf("%6.2f %%", 100*ratio(n, of)) }
	row("calls", r.Calls, "")
	row("admitted", r.Admitted, share(r.Admitted, r.Calls))
	row("rejected", r.Rejected, share(r.Rejected, r.Calls))
	row("succeeded", r.Succeeded, share(r.Succeeded, r.Calls))
	row("failed", r.Failed, share(r.Failed, r.Calls))
	row("slow", r.Slow, share(r.Slow, r.Calls))
	row("opens", r.Opens, "")
	row("false opens", r.FalseOpens, "")
	row("time to open", orNever(r.TimeToOpen, r.Opened), "")
	row("time to recover", orNever(r.TimeToRecover, r.Recovered), "")
	row("peak probes a second", r.PeakProbesPerSecond, "")
	for _, q := range []float64{0.5, 0.9, 0.99, 0.999} {
		row(fmt.Sprintf("latency p%v", 100*q), r.Latency(q).Round(10*time.Microsecond), "")
	}
	return b.String()
}

// orNever returns the text of a time that may not have come.
func orNever(d time.Duration, came bool) string {
	if !came {
		return "never"
	}
	return d.Round(time.Millisecond).String()
}

// report completes the result of a run.
func (m *simulator) report() Report {
	r := &m.result
	for _, s := range r.Timeline {
		r.Calls += s.Offered
		r.Admitted += s.Admitted
		r.Rejected += s.Rejected
		r.Succeeded += s.Succeeded
		r.Failed += s.Failed
	}
	for i := range m.clients {
		r.Slow += int(m.clients[i].breaker.Snapshot().Totals.Slow)
	}
	r.PeakProbesPerSecond = m.probes.peak
	r.TimeToRecover, r.Recovered = m.recovery()
	return *r
}

// firstIncident returns the start of the first incident.
func (m *simulator) firstIncident() (start time.Duration, ok bool) {
	for _, i := range m.Dependency.Incidents {
		if !ok || i.After < start {
			start, ok = i.After, true
		}
	}
	return start, ok
}

// recovery returns how long after the last incident the first undisturbed second began.
func (m *simulator) recovery() (after time.Duration, ok bool) {
	var end time.Duration
	for _, i := range m.Dependency.Incidents {
		end = max(end, i.end())
	}
	if end == 0 {
		return 0, false
	}
	for i, s := range m.result.Timeline {
		whole := s.At+time.Second <= m.Duration
		if s.At >= end && whole && s.Offered > 0 && !m.disturbed[i] {
			return s.At - end, true
		}
	}
	return 0, false
}
