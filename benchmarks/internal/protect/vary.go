package protect

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// variation is what one unseen variation of a scenario changes. All factors are 1 where nothing changes.
type variation struct {
	rate     float64 // of calls, or callers in a closed loop
	length   float64 // of each incident
	severity float64 // how many calls an incident makes slow or lets fail, and how slow; of errors in health
	latency  float64 // of all calls, budgets and time-outs with them
	shape    string  // of latency
}

// The shapes that a variation puts in place of a latency.
const (
	asDeclared  = "as declared"
	longerTail  = "one call in fifty 10 ×"
	secondHump  = "a third of the calls 5 ×"
	slowWeather = "swings by 2 × in half an hour"
)

// mostCalls bounds how long a variation runs: no rate is raised beyond it.
const mostCalls = 500_000

// vary returns n variations of a scenario. They depend on the seed and the scenario's key, so the same ones come again; a seed
// that no rule was tuned on gives unseen ones.
func (s Scenario) vary(n int, seed uint64) []Scenario {
	h := fnv.New64a()
	h.Write([]byte(s.Key))
	r := rand.New(rand.NewPCG(seed, h.Sum64()))
	varied := make([]Scenario, n)
	for i := range varied {
		v := s.drawVariation(r)
		varied[i] = v.of(s)
		varied[i].Key = fmt.Sprintf("%s~%d", s.Key, i+1)
		varied[i].Varied, varied[i].Timeline = true, false
		varied[i].About = "As " + s.Key + ", but " + v.String() + "."
	}
	return varied
}

// calls is how many a scenario offers, about.
func (s Scenario) calls() float64 {
	return s.Load.PerSecond * float64(max(1, s.Load.Processes)) * s.Length.Seconds()
}

func (s Scenario) drawVariation(r *rand.Rand) variation {
	pick := func(of ...float64) float64 { return of[r.IntN(len(of))] }
	v := variation{
		rate: pick(0.1, 0.5, 2, 5), length: pick(0.5, 1, 1.5), severity: pick(0.6, 1, 1.5), latency: pick(0.2, 1, 5),
		shape: []string{asDeclared, longerTail, secondHump, slowWeather}[r.IntN(4)],
	}
	if v.rate > 1 && s.calls()*v.rate > mostCalls {
		v.rate = 0.5
	}
	if s.Dependency.Capacity > 0 { // what it could serve follows from its latency
		v.latency, v.shape = 1, asDeclared
	}
	if len(s.Dependency.Incidents) == 0 {
		v.length = 1
	}
	if s.Load.Every > 0 { // what is healthy at one call a day may be an outage at more
		v.rate, v.length = 1, 1
	}
	return v
}

func (v variation) String() string {
	var parts []string
	for _, f := range []struct {
		name   string
		factor float64
	}{{"calls", v.rate}, {"length of incidents", v.length}, {"severity", v.severity}, {"latency", v.latency}} {
		if f.factor != 1 {
			parts = append(parts, fmt.Sprintf("%s × %g", f.name, f.factor))
		}
	}
	if v.shape != asDeclared {
		parts = append(parts, v.shape)
	}
	if len(parts) == 0 {
		return "nothing is changed"
	}
	return strings.Join(parts, ", ")
}

// of returns the variation of the scenario.
func (v variation) of(s Scenario) Scenario {
	s.Load = v.load(s.Load)
	d := &s.Dependency
	d.Capacity = int(float64(d.Capacity) * v.rate)
	d.FailureRate = min(0.3, d.FailureRate*v.severity)
	d.Latency = shaped(Slower(d.Latency, v.latency), v.shape)
	d.Incidents = slices.Clone(d.Incidents)
	longest := time.Duration(0)
	for i := range d.Incidents {
		before := d.Incidents[i].For
		d.Incidents[i] = v.incident(d.Incidents[i])
		longest = max(longest, d.Incidents[i].For-before)
	}
	s.Length += longest
	return s
}

func (v variation) load(l Load) Load {
	l.PerSecond *= v.rate
	l.Every = time.Duration(float64(l.Every) / v.rate)
	if l.Callers > 0 {
		l.Callers = max(1, int(float64(l.Callers)*min(2, v.rate)))
	}
	l.Budget = time.Duration(float64(l.Budget) * v.latency)
	l.Timeout = time.Duration(float64(l.Timeout) * max(1, v.latency))
	return l
}

func (v variation) incident(i Incident) Incident {
	i.For = time.Duration(float64(i.For) * v.length)
	if i.Failing < 1 {
		i.Failing *= v.severity
	}
	i.Share = min(1, i.Share*v.severity)
	if i.Slower > 0 {
		i.Slower = max(4, i.Slower*v.severity)
	}
	return i
}

func shaped(l Latency, shape string) Latency {
	switch shape {
	case longerTail:
		return Growing(l, Slower(l, 10), 0.02, 0.02, time.Hour)
	case secondHump:
		return Growing(l, Slower(l, 5), 1.0/3, 1.0/3, time.Hour)
	case slowWeather:
		return Swinging(l, 2, 30*time.Minute)
	default:
		return l
	}
}
