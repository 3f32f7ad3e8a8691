package protect

import "time"

// well is a scenario in which every open is false.
func well(key, title, about string, length time.Duration, load Load, d Dependency) Scenario {
	return Scenario{
		Key: key, Title: title, About: about, Healthy: true, Length: length, Load: load, Dependency: d,
		Columns: []Column{falseOpens(), refusedForNothing()},
	}
}

// each repeats an incident n times: the first after a while, the others every so often.
func each(i Incident, n int, first, every time.Duration) []Incident {
	all := make([]Incident, n)
	for k := range all {
		all[k] = i
		all[k].After = first + time.Duration(k)*every
	}
	return all
}

// interrupted are healthy dependencies whose calls in flight end badly or late together. What does that is over before a
// breaker could be of use, so every open is false.
func (p pace) interrupted() []Scenario {
	const ms = time.Millisecond
	minutes := int(p.hour / 3 / time.Minute)
	return []Scenario{
		well("hiccup", "Hiccup: a stall of 300 ms once a minute",
			"100 calls/s. Once a minute the dependency stands still for 300 ms, as a collector of garbage makes it, then goes on.",
			p.hour/3, Load{PerSecond: 100},
			Dependency{Latency: usual(), Incidents: each(Incident{For: 300 * ms, Stall: true}, minutes, 30*time.Second, time.Minute)}),
		well("own-freeze", "The callers' own process freezes for 5 s",
			"200 calls/s of 150 ms. Three times the process stands still for 5 s: it makes no call, and those in flight end at once after it.",
			p.settle+6*time.Minute, Load{PerSecond: 200},
			Dependency{Latency: sluggish(), Incidents: each(Incident{For: 5 * time.Second, Freeze: true}, 3, p.settle, 2*time.Minute)}),
		well("rolling-restart", "Rolling restart: 200 ms of refused connections, ten times",
			"100 calls/s. Ten times, 10 s apart, all connections are refused for 200 ms.",
			p.settle+4*time.Minute, Load{PerSecond: 100},
			Dependency{Latency: usual(), Incidents: each(Incident{For: 200 * ms, Failing: 1, Refusing: true}, 10, p.settle, 10*time.Second)}),
		well("reset", "A connection with 100 calls is reset",
			"100 calls/s of 1 s. Three times, 2 min apart, all calls in flight fail at one moment.",
			p.settle+6*time.Minute, Load{PerSecond: 100},
			Dependency{Latency: LogNormal(time.Second, 2*time.Second), Incidents: each(Incident{Reset: true}, 3, p.settle, 2*time.Minute)}),
	}
}

// mixed are healthy dependencies and callers of several kinds.
func (p pace) mixed() []Scenario {
	const day = 24 * time.Hour
	streams := LogNormal(2*time.Minute, 5*time.Minute)
	return []Scenario{
		well("streams", "Streams of minutes grow from 5 to 60 % of the calls",
			"2 calls/s. Some take 10 ms, the others are streams of two minutes; their share grows over the time.",
			2*p.hour, Load{PerSecond: 2}, Dependency{Latency: Growing(usual(), streams, 0.05, 0.6, 2*p.hour)}),
		well("majority-always", "60 % of calls always take 20 ×",
			"20 calls/s. Most calls take 200 ms, the others 10 ms; it has never been otherwise.",
			p.hour, Load{PerSecond: 20}, Dependency{Latency: Growing(usual(), Slower(usual(), 20), 0.6, 0.6, p.hour)}),
		well("tiny-deadlines", "40 % of callers have a deadline below 10 ms",
			"20 calls/s, 10 ms at the median. Two callers in five have a budget of their own of up to 10 ms, and most of those run out.",
			p.hour, Load{PerSecond: 20, Hurried: 0.4, Budget: 10 * time.Millisecond}, Dependency{Latency: usual()}),
		well("day-apart", "Five failures, a day apart",
			"One call a day. After one that succeeds five fail, each a day after the last.",
			8*day, Load{Every: day}, Dependency{Latency: usual(), Incidents: []Incident{{After: day + day/2, For: 5 * day, Failing: 1}}}),
	}
}
