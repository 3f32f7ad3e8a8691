package protect

import (
	"slices"
	"time"
)

// Scenario is a load, a dependency and what happens to it, and what is measured of it.
type Scenario struct {
	Key        string // in commands
	Title      string
	About      string // one or two sentences for the page
	Length     time.Duration
	Healthy    bool // so that every open is false
	Runs       int  // with one seed each; a figure is the median of them
	Load       Load
	Dependency Dependency
	Columns    []Column
	Oracle     bool // an oracle that knows the dependency's room runs as well
	Timeline   bool // the page draws it second by second
	Varied     bool // it is an unseen variation of one that is declared
}

// incident is the first one; scenarios that ask for it have one.
func (s Scenario) incident() Incident { return s.Dependency.Incidents[0] }

// pace is how long the scenarios are, and how often they run.
type pace struct {
	day, hour   time.Duration
	settle      time.Duration // of health before an incident, for whoever measures what is normal
	least, most int           // runs of a scenario
	processes   int
}

var paces = map[Pace]pace{
	Full:  {day: 24 * time.Hour, hour: time.Hour, settle: 10 * time.Minute, least: 5, most: 51, processes: 100},
	Quick: {day: 4 * time.Hour, hour: time.Hour, settle: 10 * time.Minute, least: 5, most: 21, processes: 100},
	Short: {day: 20 * time.Minute, hour: 5 * time.Minute, settle: 2 * time.Minute, least: 1, most: 1, processes: 20},
}

// scenarios returns all of them.
func (p pace) scenarios() []Scenario {
	return slices.Concat(p.healthy(), p.interrupted(), p.mixed(), p.failing(), p.slow(), p.recovering())
}

// usual is how most dependencies here answer: a median of 10 ms, and one call in a hundred over 30 ms.
func usual() Latency { return LogNormal(10*time.Millisecond, 30*time.Millisecond) }

// sluggish is a dependency whose calls pass a second when it browns out.
func sluggish() Latency { return LogNormal(150*time.Millisecond, 300*time.Millisecond) }

// healthy are times without an incident, in which every open is false.
func (p pace) healthy() []Scenario {
	well := func(key, title string, length time.Duration, perSecond, failures float64, l Latency) Scenario {
		return Scenario{
			Key: key, Title: title, Healthy: true, Length: length, Load: Load{PerSecond: perSecond},
			Dependency: Dependency{Latency: l, FailureRate: failures},
			Columns:    []Column{falseOpens(), refusedForNothing()},
		}
	}
	all := []Scenario{
		well("healthy-1.3", "Healthy day, 1.3 calls/s, 1 % errors", p.day, 1.3, 0.01, usual()),
		well("healthy-20", "Healthy day, 20 calls/s, 5 % errors", p.day, 20, 0.05, usual()),
		well("healthy-0.05", "Healthy day, 0.05 calls/s, 1 % errors", p.day, 0.05, 0.01, usual()),
		well("two-humped", "Healthy hour, half the calls 1 ms, half 25 ms", p.hour, 20, 0,
			TwoHumped(time.Millisecond, 25*time.Millisecond)),
		well("long-tail", "Healthy hour, p99 = 10 × p50", p.hour, 20, 0, LogNormal(10*time.Millisecond, 100*time.Millisecond)),
		well("daily-swing", "Healthy day, latency swings by 3 ×", p.day, 5, 0, Swinging(usual(), 3, p.day)),
		well("cancelling-callers", "Healthy hour, 20 % of callers cancel", p.hour, 20, 0, usual()),
	}
	for i, about := range []string{
		"One call in a hundred fails, by chance.",
		"One call in twenty fails, by chance.",
		"One call in 20 s; one in a hundred fails, by chance.",
		"20 calls/s without errors; half of them are answered from a cache.",
		"20 calls/s without errors; log-normal latency, 10 ms at the median and 100 ms at the 99th percentile.",
		"5 calls/s without errors; latency rises to three times its night value and falls back.",
		"20 calls/s without errors; one caller in five gives up at a random moment of its call.",
	} {
		all[i].About = about
	}
	all[len(all)-1].Load.Cancelled = 0.2
	return all
}

func (p pace) failing() []Scenario {
	incident := func(key, title, about string, runs int, perSecond, baseline float64, i Incident, columns ...Column) Scenario {
		i.After = p.settle
		return Scenario{
			Key: key, Title: title, About: about, Length: i.End() + p.settle, Runs: runs, Load: Load{PerSecond: perSecond},
			Dependency: Dependency{Latency: usual(), FailureRate: baseline, Incidents: []Incident{i}}, Columns: columns,
		}
	}
	outage := func(key, title string, runs int, perSecond float64) Scenario {
		return incident(key, title, "Every call fails at once for 60 s. It has recovered when the last call has been refused.", runs,
			perSecond, 0, Incident{For: time.Minute, Failing: 1}, timeToOpen(), sentInto(), timeToRecover("time to recover"))
	}
	partial := func(key, title string, baseline float64) Scenario {
		return incident(key, title, "30 % of calls fail for 5 min, at 20 calls/s. Good calls are those that would not have failed.", 11,
			20, baseline, Incident{For: 5 * time.Minute, Failing: 0.3}, timeToOpen(), goodRefused())
	}
	return []Scenario{
		outage("outage-100", "Outage, 60 s, 100 calls/s", 5, 100),
		outage("outage-1", "Outage, 60 s, 1 call/s", 21, 1),
		outage("outage-0.1", "Outage, 60 s, 0.1 calls/s", 51, 0.1),
		partial("partial-1", "Partial failure: 30 % from a 1 % baseline", 0.01),
		partial("partial-20", "Partial failure: 30 % from a 20 % baseline", 0.2),
	}
}

func (p pace) slow() []Scenario {
	brownout := func(key, title, about string, i Incident) Scenario {
		i.After, i.For = p.settle/2, time.Minute
		return Scenario{
			Key: key, Title: title, Length: i.End() + 2*time.Minute, Runs: 3, Timeline: true,
			About: "64 callers make one call after the other, 100 ms apart, also after a refusal; the median is 150 ms. " + about,
			Load:  Load{Callers: 64, Think: 100 * time.Millisecond}, Dependency: Dependency{Latency: sluggish(), Incidents: []Incident{i}},
			Columns: []Column{timeToOpen(), lateCalls(), throughput("throughput during", true), throughput("throughput after", false)},
		}
	}
	hang := func(key, title, about string, timeout time.Duration) Scenario {
		return Scenario{
			Key: key, Title: title, Length: p.settle + 4*time.Minute, Runs: 5, Load: Load{PerSecond: 20, Timeout: timeout},
			About:      "No call returns for 60 s, at 20 calls/s; " + about,
			Dependency: Dependency{Latency: usual(), Incidents: []Incident{{After: p.settle, For: time.Minute, Hang: true}}},
			Columns:    []Column{timeToOpen(), stuck()},
		}
	}
	return []Scenario{
		brownout("brownout", "Brownout 8 ×, 60 s, 64 callers", "All calls take eight times as long for 60 s, and succeed.",
			Incident{Slower: 8}),
		brownout("tail-brownout", "Tail brownout, 30 % of calls 20 ×", "30 % of calls take 20 times as long for 60 s, and succeed.",
			Incident{Slower: 20, Share: 0.3}),
		brownout("majority-tail", "Majority tail, 60 % of calls 20 ×", "60 % of calls take 20 times as long for 60 s, and succeed.",
			Incident{Slower: 20, Share: 0.6}),
		hang("hang-5", "Hang, client time-out 5 s", "the client gives up on a call after 5 s.", 5*time.Second),
		hang("hang-60", "Hang, client time-out 60 s", "the client gives up on a call after 60 s.", time.Minute),
	}
}

func (p pace) recovering() []Scenario {
	const after = 45 * time.Second
	outage := Incident{After: p.settle, For: 5 * time.Second, Failing: 1}
	collapse := Scenario{
		Key: "collapse", Title: "Capacity collapse, 10 s warm-up", Runs: 5, Oracle: true, Timeline: true,
		About: "An outage of 5 s leaves the dependency a twentieth of its capacity of 20 calls at once, which warms up in 10 s " +
			"unless it is overrun. 160 calls/s are offered, of 200 that it could serve. The oracle knows its capacity at each moment.",
		Length: outage.End() + after, Load: Load{PerSecond: 160},
		Dependency: Dependency{Latency: LogNormal(100*time.Millisecond, 101*time.Millisecond), Capacity: 20,
			Warmup: 10 * time.Second, Incidents: []Incident{outage}},
		Columns: []Column{servedAfter("served in the 45 s after", after)},
	}
	flapping := Scenario{
		Key: "flapping", Title: "Flapping: 5 s up, 5 s down, 10 min", Runs: 5, About: "20 calls/s.",
		Length: p.settle + 10*time.Minute, Load: Load{PerSecond: 20}, Dependency: Dependency{Latency: usual()},
		Columns: []Column{servedOfServable(), sentIntoDowns()},
	}
	for down := p.settle; down < flapping.Length; down += 10 * time.Second {
		i := Incident{After: down, For: 5 * time.Second, Failing: 1}
		flapping.Dependency.Incidents = append(flapping.Dependency.Incidents, i)
	}
	fleet := Scenario{
		Key: "fleet", Title: "100 processes, outage of 10 s", Runs: 3,
		About: "Each process makes 10 calls/s and has a breaker of its own. A probe is a call admitted by a breaker that is open or " +
			"half-open; all are closed when the last call has been refused.",
		Length: 4 * time.Minute, Load: Load{PerSecond: 10, Processes: p.processes},
		Dependency: Dependency{Latency: usual(), Incidents: []Incident{{After: time.Minute, For: 10 * time.Second, Failing: 1}}},
		Columns:    []Column{peakProbes(), timeToRecover("time until all are closed")},
	}
	return []Scenario{collapse, flapping, fleet}
}
