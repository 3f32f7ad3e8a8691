package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/brownout-go/breaker"
)

const help = `simulate runs a circuit breaker against a modelled dependency, prints the report and draws it.

	simulate [flags]

A scenario comes from flags, from a JSON file, or from both: a flag after -scenario replaces what the file says.

	simulate -duration 2m -incident 30s+20s,failing=1 -settings '{"recovery": {"fraction": 0.25}}'
	simulate -scenario brownout.json -seed 7

The file, with every key. All are optional; durations are text.

	{
	  "settings":   {"name": "default", "break_duration": "5s", "slow_calls": {"multiple": 3}},
	  "compare":    {"name": "ramped", "break_duration": "5s", "recovery": {"fraction": 0.25}},
	  "dependency": {
	    "p50": "10ms", "p99": "50ms", "failure_rate": 0.001, "capacity": 20, "warmup": "10s",
	    "incidents": [{"after": "30s", "for": "20s", "slower": 4, "failing": 0.3}]
	  },
	  "load":       {"per_second": 100},
	  "breakers":   1,
	  "timeout":    "1m",
	  "duration":   "2m",
	  "seed":       1
	}

The keys of settings and compare are the fields of breaker.Settings in snake_case, those within them
as well: "failures": {"false_alarm_every": "720h"}, "slow_calls": {"tail_quantile": 0.75, "ended_only": true}. With compare, a second
breaker runs through the same calls and the same dependency.

Flags:
`

// duration is a time.Duration that is written as text, in flags and in JSON.
type duration time.Duration

func (d duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

func (d *duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err == nil {
		*d = duration(v)
	}
	return err
}

// scenario is a simulation as its JSON file describes it.
type scenario struct {
	Settings   breaker.Settings  `json:"settings"`
	Compare    *breaker.Settings `json:"compare,omitempty"`
	Dependency dependency        `json:"dependency"`
	Load       load              `json:"load"`
	Breakers   int               `json:"breakers"`
	Timeout    duration          `json:"timeout"`
	Duration   duration          `json:"duration"`
	Seed       uint64            `json:"seed"`
}

type dependency struct {
	P50         duration   `json:"p50"`
	P99         duration   `json:"p99"`
	FailureRate float64    `json:"failure_rate"`
	Capacity    int        `json:"capacity"`
	Warmup      duration   `json:"warmup"`
	Incidents   []incident `json:"incidents"`
}

type incident struct {
	After   duration `json:"after"`
	For     duration `json:"for"`
	Slower  float64  `json:"slower"`
	Failing float64  `json:"failing"`
}

type load struct {
	PerSecond float64 `json:"per_second"`
}

// parse reads the arguments of the command: a scenario, and the path of the pictures without their endings.
func parse(args []string, stderr io.Writer) (s scenario, out string, err error) {
	f := flag.NewFlagSet("simulate", flag.ContinueOnError)
	f.SetOutput(io.Discard) // the whole help would bury what is wrong with one flag
	f.StringVar(&out, "out", "simulation", "write the pictures to `path`.svg and path.png")
	f.Func("scenario", "read the scenario from a JSON `file`", func(file string) error { return read(file, &s) })
	f.Func("settings", "settings of the breaker, as `JSON` or the name of a JSON file", func(text string) error {
		s.Settings = breaker.Settings{}
		return read(text, &s.Settings)
	})
	f.Func("compare", "settings of a second breaker, as `JSON` or the name of a JSON file", func(text string) error {
		s.Compare = new(breaker.Settings)
		return read(text, s.Compare)
	})
	s.flags(f)
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			f.SetOutput(stderr)
			fmt.Fprint(stderr, help)
			f.PrintDefaults()
		}
		return s, out, err
	}
	if f.NArg() > 0 {
		return s, out, fmt.Errorf("simulate: %q is no flag; see -help", f.Arg(0))
	}
	return s, out, nil
}

// flags registers the flags of the model and writes their defaults to s.
func (s *scenario) flags(f *flag.FlagSet) {
	d := &s.Dependency
	f.TextVar(&d.P50, "p50", duration(10*time.Millisecond), "median healthy latency")
	f.TextVar(&d.P99, "p99", duration(50*time.Millisecond), "99th percentile of healthy latency; 0s: all take p50")
	f.Float64Var(&d.FailureRate, "failure-rate", 0.001, "`fraction` of healthy calls that fail")
	f.IntVar(&d.Capacity, "capacity", 0, "concurrent `calls` served at full speed; 0: unlimited")
	f.TextVar(&d.Warmup, "warmup", duration(0), "time from cold to full capacity after an outage; 0s: none")
	const shape = "`after+for[,slower=x][,failing=y]`, such as 30s+20s,slower=4,failing=0.3; may be repeated"
	f.Func("incident", shape, func(text string) error {
		i, err := parseIncident(text)
		d.Incidents = append(d.Incidents, i)
		return err
	})
	f.Float64Var(&s.Load.PerSecond, "per-second", 100, "`calls` offered to each breaker a second")
	f.IntVar(&s.Breakers, "breakers", 1, "`size` of the fleet")
	f.TextVar(&s.Timeout, "timeout", duration(time.Minute), "when callers give up")
	f.TextVar(&s.Duration, "duration", duration(2*time.Minute), "how long calls are offered")
	f.Uint64Var(&s.Seed, "seed", 1, "`number` that gives every random number")
}

// read decodes JSON, or the file of that name, into v. An unknown key is a typing error.
func read(text string, v any) error {
	data := []byte(text)
	if !strings.HasPrefix(strings.TrimSpace(text), "{") {
		var err error
		if data, err = os.ReadFile(text); err != nil {
			return err
		}
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("more follows the JSON value")
	}
	return nil
}

// parseIncident reads after+for[,slower=x][,failing=y].
func parseIncident(text string) (i incident, err error) {
	when, what, _ := strings.Cut(text, ",")
	after, length, ok := strings.Cut(when, "+")
	if !ok {
		return i, errors.New("want after+for, such as 30s+20s")
	}
	if err := errors.Join(i.After.UnmarshalText([]byte(after)), i.For.UnmarshalText([]byte(length))); err != nil {
		return i, err
	}
	if what == "" {
		return i, nil
	}
	for part := range strings.SplitSeq(what, ",") {
		key, value, _ := strings.Cut(part, "=")
		field, ok := map[string]*float64{"slower": &i.Slower, "failing": &i.Failing}[key]
		if !ok {
			return i, fmt.Errorf("unknown %q, want slower or failing", key)
		}
		if *field, err = strconv.ParseFloat(value, 64); err != nil {
			return i, err
		}
	}
	return i, nil
}

// settings returns the one or two settings to run.
func (s *scenario) settings() []breaker.Settings {
	if s.Compare == nil {
		return []breaker.Settings{s.Settings}
	}
	return []breaker.Settings{s.Settings, *s.Compare}
}

func (s *scenario) simulation(settings breaker.Settings) breaker.Simulation {
	d := s.Dependency
	incidents := make([]breaker.Incident, len(d.Incidents))
	for n, i := range d.Incidents {
		incidents[n] = breaker.Incident{
			After: time.Duration(i.After), For: time.Duration(i.For), Slower: i.Slower, Failing: i.Failing,
		}
	}
	return breaker.Simulation{
		Settings: settings,
		Dependency: breaker.Dependency{
			P50: time.Duration(d.P50), P99: time.Duration(d.P99), FailureRate: d.FailureRate,
			Capacity: d.Capacity, Warmup: time.Duration(d.Warmup), Incidents: incidents,
		},
		Load:     breaker.Load{PerSecond: s.Load.PerSecond},
		Breakers: s.Breakers,
		Timeout:  time.Duration(s.Timeout),
		Duration: time.Duration(s.Duration),
		Seed:     s.Seed,
	}
}
