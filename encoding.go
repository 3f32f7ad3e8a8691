package breaker

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
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
	FalseAlarmEvery disabledJSON `json:"false_alarm_every,omitzero"`
	Off             bool         `json:"off,omitzero"`
}

type slowCallsJSON struct {
	Multiple        float64      `json:"multiple,omitzero"`
	Quantile        float64      `json:"quantile,omitzero"`
	Window          textDuration `json:"window,omitzero"`
	MinSamples      int          `json:"min_samples,omitzero"`
	TailQuantile    float64      `json:"tail_quantile,omitzero"`
	Floor           disabledJSON `json:"floor,omitzero"`
	FalseAlarmEvery disabledJSON `json:"false_alarm_every,omitzero"`
	EndedOnly       bool         `json:"ended_only,omitzero"`
	Off             bool         `json:"off,omitzero"`
}

type recoveryJSON struct {
	Fraction float64      `json:"fraction,omitzero"`
	Initial  float64      `json:"initial,omitzero"`
	Min      textDuration `json:"min,omitzero"`
	Max      textDuration `json:"max,omitzero"`
	Off      bool         `json:"off,omitzero"`
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
	SlowEvidence      float64      `json:"slow_evidence,omitzero"`
	NormalSlowRate    *float64     `json:"normal_slow_rate,omitzero"`
	Break             textDuration `json:"break,omitzero"`
	BreakBasis        BreakBasis   `json:"break_basis,omitzero"`
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

// UnmarshalJSON reads what MarshalJSON writes and leaves what is not mentioned as it was. A key that is unknown or comes twice is
// an error, as is a value of the wrong kind, and the error names the field, such as failures.multiple. After an error the settings
// are what they were. Case does not matter in keys, as everywhere in [encoding/json].
func (s *Settings) UnmarshalJSON(data []byte) error {
	if err := json.Unmarshal(data, new(json.RawMessage)); err != nil {
		return err
	}
	var j settingsJSON
	assign(reflect.ValueOf(&j).Elem(), reflect.ValueOf(s).Elem())
	if err := decodeFields(reflect.ValueOf(&j).Elem(), "settings", data); err != nil {
		return fmt.Errorf("breaker: %w", err)
	}
	assign(reflect.ValueOf(s).Elem(), reflect.ValueOf(j))
	return nil
}

// MarshalJSON writes snake_case keys and durations as text ("12.5s"); what is unknown or does not apply is left out.
func (s Snapshot) MarshalJSON() ([]byte, error) { return marshal[snapshotJSON](s) }

// UnmarshalJSON reads what MarshalJSON writes and leaves what is not mentioned as it was. It skips unknown keys: nobody writes a
// snapshot by hand, and that of a newer version may say more.
func (s *Snapshot) UnmarshalJSON(data []byte) error {
	var j snapshotJSON
	assign(reflect.ValueOf(&j).Elem(), reflect.ValueOf(s).Elem())
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	assign(reflect.ValueOf(s).Elem(), reflect.ValueOf(j))
	return nil
}

func marshal[J, T any](v T) ([]byte, error) {
	var j J
	assign(reflect.ValueOf(&j).Elem(), reflect.ValueOf(v))
	return json.Marshal(j)
}

// decodeFields reads valid JSON, an object or null, into a struct. It stands in for the decoder of encoding/json, which names
// an unknown key without the object that it is in, no field whose text is wrong, and lets the last of equal keys win.
func decodeFields(to reflect.Value, path string, data []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	start, err := decoder.Token()
	if start == nil || err != nil {
		return err
	}
	if start != json.Delim('{') {
		return fmt.Errorf("%s: must be an object", path)
	}
	seen := map[int]bool{}
	for decoder.More() {
		var value json.RawMessage
		key, _ := decoder.Token()
		if err := decoder.Decode(&value); err != nil {
			return err
		}
		name := path + "." + key.(string)
		field := fieldOf(to.Type(), key.(string))
		if field < 0 {
			return fmt.Errorf("unknown field %s", name)
		}
		if seen[field] {
			return fmt.Errorf("field %s comes twice", name)
		}
		seen[field] = true
		if err := decodeField(to.Field(field), name, value); err != nil {
			return err
		}
	}
	return nil
}

func decodeField(to reflect.Value, name string, value []byte) error {
	if to.Kind() == reflect.Struct {
		return decodeFields(to, name, value)
	}
	if err := json.Unmarshal(value, to.Addr().Interface()); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// fieldOf returns the number of the field with a key, -1 if there is none.
func fieldOf(of reflect.Type, key string) int {
	for i := range of.NumField() {
		tag, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		if strings.EqualFold(tag, key) {
			return i
		}
	}
	return -1
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
