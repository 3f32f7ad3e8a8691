package breaker

import (
	"bytes"
	"encoding/json"
	"reflect"
	"time"
)

// textDuration is a duration that encodes as text, such as "12.5s".
type textDuration time.Duration

func (d textDuration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

func (d *textDuration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	*d = textDuration(v)
	return err
}

// The types below are what the exported ones look like as JSON: the same field names, with keys, and with durations as text.
// assign copies between the two.

type settingsJSON struct {
	Name                string        `json:"name,omitzero"`
	ConsecutiveFailures int           `json:"consecutive_failures,omitzero"`
	FailureRatio        float64       `json:"failure_ratio,omitzero"`
	Failures            failuresJSON  `json:"failures,omitzero"`
	MinCalls            int           `json:"min_calls,omitzero"`
	Window              textDuration  `json:"window,omitzero"`
	SlowCallThreshold   textDuration  `json:"slow_call_threshold,omitzero"`
	SlowCalls           slowCallsJSON `json:"slow_calls,omitzero"`
	SlowCallRatio       float64       `json:"slow_call_ratio,omitzero"`
	BreakDuration       textDuration  `json:"break_duration,omitzero"`
	MaxBreakDuration    textDuration  `json:"max_break_duration,omitzero"`
	BreakJitter         Jitter        `json:"break_jitter,omitzero"`
	HalfOpenProbes      int           `json:"half_open_probes,omitzero"`
	ProbeSuccesses      int           `json:"probe_successes,omitzero"`
	ProbeCohort         int           `json:"probe_cohort,omitzero"`
	ProbeTimeout        disabledJSON  `json:"probe_timeout,omitzero"`
	Recovery            recoveryJSON  `json:"recovery,omitzero"`
	WhenOpen            WhenOpen      `json:"when_open,omitzero"`
	MaxWait             disabledJSON  `json:"max_wait,omitzero"`
	MaxWaiting          int           `json:"max_waiting,omitzero"`
	RejectionDelay      textDuration  `json:"rejection_delay,omitzero"`
	ObserveOnly         bool          `json:"observe_only,omitzero"`
}

type failuresJSON struct {
	Multiple        float64      `json:"multiple,omitzero"`
	Window          textDuration `json:"window,omitzero"`
	MinSamples      int          `json:"min_samples,omitzero"`
	Floor           float64      `json:"floor,omitzero"`
	FalseAlarmEvery textDuration `json:"false_alarm_every,omitzero"`
	Off             bool         `json:"off,omitzero"`
}

type slowCallsJSON struct {
	Multiple     float64      `json:"multiple,omitzero"`
	Quantile     float64      `json:"quantile,omitzero"`
	Window       textDuration `json:"window,omitzero"`
	MinSamples   int          `json:"min_samples,omitzero"`
	TailQuantile float64      `json:"tail_quantile,omitzero"`
	Overdue      bool         `json:"overdue,omitzero"`
	Off          bool         `json:"off,omitzero"`
}

type recoveryJSON struct {
	Fraction float64      `json:"fraction,omitzero"`
	Initial  float64      `json:"initial,omitzero"`
	Min      textDuration `json:"min,omitzero"`
	Max      textDuration `json:"max,omitzero"`
}

// disabledJSON is a duration that may be Disabled, which encodes as that word.
type disabledJSON time.Duration

func (d disabledJSON) MarshalText() ([]byte, error) {
	if d == Disabled {
		return []byte("disabled"), nil
	}
	return textDuration(d).MarshalText()
}

func (d *disabledJSON) UnmarshalText(text []byte) error {
	if string(text) == "disabled" {
		*d = Disabled
		return nil
	}
	return (*textDuration)(d).UnmarshalText(text)
}

type snapshotJSON struct {
	Name              string       `json:"name"`
	State             State        `json:"state"`
	Reason            Reason       `json:"reason,omitzero"`
	Since             time.Time    `json:"since,omitzero"`
	OpenedAt          time.Time    `json:"opened_at,omitzero"`
	RetryAfter        textDuration `json:"retry_after,omitzero"`
	Counts            countsJSON   `json:"counts,omitzero"`
	ProbesInFlight    int          `json:"probes_in_flight,omitzero"`
	ProbeSuccesses    int          `json:"probe_successes,omitzero"`
	Waiting           int          `json:"waiting,omitzero"`
	AdmittedFraction  float64      `json:"admitted_fraction"`
	NormalLatency     textDuration `json:"normal_latency,omitzero"`
	SlowThreshold     textDuration `json:"slow_threshold,omitzero"`
	NormalFailureRate *float64     `json:"normal_failure_rate,omitzero"`
	TripRatio         float64      `json:"trip_ratio,omitzero"`
	Evidence          float64      `json:"evidence,omitzero"`
	Totals            totalsJSON   `json:"totals"`
}

type countsJSON struct {
	Calls               int `json:"calls"`
	Failures            int `json:"failures"`
	Slow                int `json:"slow"`
	ConsecutiveFailures int `json:"consecutive_failures"`
}

type totalsJSON struct {
	Successes uint64 `json:"successes"`
	Transient uint64 `json:"transient"`
	Throttled uint64 `json:"throttled"`
	Permanent uint64 `json:"permanent"`
	Ignored   uint64 `json:"ignored"`
	Slow      uint64 `json:"slow"`
	Discarded uint64 `json:"discarded"`
	Rejected  uint64 `json:"rejected"`
	Opens     uint64 `json:"opens"`
}

// MarshalJSON writes the fields that are written, with snake_case keys, durations as text ("15s") and [Disabled] as -1, or as
// "disabled" where it is a duration. Functions, Monitor and Clock are left out.
func (s Settings) MarshalJSON() ([]byte, error) { return marshal[settingsJSON](s) }

// UnmarshalJSON reads what MarshalJSON writes and leaves what is not mentioned as it was. An unknown key is an error.
func (s *Settings) UnmarshalJSON(data []byte) error { return unmarshal[settingsJSON](data, s) }

// MarshalJSON writes snake_case keys and durations as text ("12.5s"); what is unknown or does not apply is left out.
func (s Snapshot) MarshalJSON() ([]byte, error) { return marshal[snapshotJSON](s) }

// UnmarshalJSON reads what MarshalJSON writes. An unknown key is an error.
func (s *Snapshot) UnmarshalJSON(data []byte) error { return unmarshal[snapshotJSON](data, s) }

func marshal[J, T any](v T) ([]byte, error) {
	var j J
	assign(reflect.ValueOf(&j).Elem(), reflect.ValueOf(v))
	return json.Marshal(j)
}

func unmarshal[J, T any](data []byte, v *T) error {
	var j J
	assign(reflect.ValueOf(&j).Elem(), reflect.ValueOf(v).Elem())
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&j); err != nil {
		return err
	}
	assign(reflect.ValueOf(v).Elem(), reflect.ValueOf(j))
	return nil
}

// assign copies the fields that two structs have in common by name. Types that differ only by name or tags convert.
func assign(to, from reflect.Value) {
	for i := range to.NumField() {
		source := from.FieldByName(to.Type().Field(i).Name)
		switch target := to.Field(i); {
		case !source.IsValid():
		case source.CanConvert(target.Type()):
			target.Set(source.Convert(target.Type()))
		default:
			assign(target, source)
		}
	}
}
