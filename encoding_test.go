package breaker_test

import (
	"context"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
)

// snakeCase returns the key of a field.
func snakeCase(name string) string {
	var key strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			key.WriteByte('_')
		}
		key.WriteRune(unicode.ToLower(r))
	}
	return key.String()
}

// fill writes a value of its own into every exported field of a struct, those of nested structs included. Pointers to numbers
// are filled; functions, interfaces and other pointers are not.
func fill(v reflect.Value, next *int) {
	*next++
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(int64(*next), 5).UTC()))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), next)
		}
	case reflect.Pointer:
		if v.Type().Elem().Kind() == reflect.Float64 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), next)
		}
	case reflect.String:
		v.SetString("orders")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint8:
		v.SetUint(1)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*next) * 1_000_000_001)
	case reflect.Uint64:
		v.SetUint(uint64(*next))
	case reflect.Float64:
		v.SetFloat(float64(*next) + 0.1)
	}
}

// keysOf returns the keys that a struct should have as JSON, as a tree.
func keysOf(of reflect.Type) map[string]any {
	keys := map[string]any{}
	for _, f := range reflect.VisibleFields(of) {
		kind := f.Type.Kind()
		switch {
		case kind == reflect.Func || kind == reflect.Interface || f.Type == reflect.TypeFor[*breaker.Monitor]():
		case kind == reflect.Struct && f.Type != reflect.TypeFor[time.Time]():
			keys[snakeCase(f.Name)] = keysOf(f.Type)
		default:
			keys[snakeCase(f.Name)] = nil
		}
	}
	return keys
}

// treeOf reduces decoded JSON to its keys.
func treeOf(decoded map[string]any) map[string]any {
	keys := map[string]any{}
	for k, v := range decoded {
		if inner, ok := v.(map[string]any); ok {
			keys[k] = treeOf(inner)
		} else {
			keys[k] = nil
		}
	}
	return keys
}

// requireEveryField encodes a struct with every field filled and decodes it: nothing may be missing or changed.
func requireEveryField[T any](t *testing.T) {
	t.Helper()
	var want, got T
	fill(reflect.ValueOf(&want).Elem(), new(int))
	encoded, err := json.Marshal(want)
	require.NoError(t, err)
	var decoded map[string]any
	require.NoError(t, json.Unmarshal(encoded, &decoded))
	assert.Equal(t, keysOf(reflect.TypeFor[T]()), treeOf(decoded))
	require.NoError(t, json.Unmarshal(encoded, &got))
	assert.Equal(t, want, got)
}

func TestSettingsToJSONAndBack(t *testing.T) { requireEveryField[settings](t) }

func TestSnapshotToJSONAndBack(t *testing.T) { requireEveryField[breaker.Snapshot](t) }

func TestSettingsAsJSON(t *testing.T) {
	encoded, err := json.Marshal(settings{
		Name: "orders", ConsecutiveFailures: breaker.Disabled, ProbeTimeout: breaker.Disabled, MaxWait: breaker.Disabled,
		Window: 1500 * time.Millisecond, BreakJitter: breaker.JitterFull, WhenOpen: breaker.Wait,
		SlowCalls: slowCalls{Quantile: 0.25, Off: true}, Recovery: ramping{Fraction: 0.5, Min: time.Minute},
		Clock: drive(t, settings{}).clock, Monitor: new(breaker.Monitor), Random: func() float64 { return 0 },
		OnStateChange: func(context.Context, breaker.StateChange) {},
	})
	require.NoError(t, err)
	assert.JSONEq(t, `{
		"name": "orders", "consecutive_failures": -1, "probe_timeout": "disabled", "max_wait": "disabled",
		"window": "1.5s", "break_jitter": "full", "when_open": "wait",
		"slow_calls": {"quantile": 0.25, "off": true}, "recovery": {"fraction": 0.5, "min": "1m0s"}
	}`, string(encoded))

	var disabled settings
	require.NoError(t, json.Unmarshal(encoded, &disabled))
	assert.EqualValues(t, breaker.Disabled, disabled.ProbeTimeout)
	assert.EqualValues(t, breaker.Disabled, disabled.MaxWait)

	encoded, err = json.Marshal(settings{})
	require.NoError(t, err)
	assert.JSONEq(t, `{}`, string(encoded), "what is not written is left out")
	encoded, err = json.Marshal(settings{}.WithDefaults())
	require.NoError(t, err)
	var got settings
	require.NoError(t, json.Unmarshal(encoded, &got))
	assert.Equal(t, settings{}.WithDefaults(), got)
}

func TestSettingsFromJSON(t *testing.T) {
	s := settings{Name: "orders", MinCalls: 7, Failures: failures{Floor: 0.1, MinSamples: 50}}
	require.NoError(t, json.Unmarshal([]byte(`{"window": "10s", "failures": {"floor": 0.2}, "probe_timeout": "5s"}`), &s))
	assert.Equal(t, settings{
		Name: "orders", MinCalls: 7, Window: 10 * time.Second, ProbeTimeout: 5 * time.Second,
		Failures: failures{Floor: 0.2, MinSamples: 50},
	}, s, "what is not mentioned stays as it was")
	require.NoError(t, json.Unmarshal([]byte(`null`), &s))
	assert.Equal(t, "orders", s.Name)
}

// A misspelt key that nobody notices is a breaker that nobody configured.
func TestSettingsFromWrongJSON(t *testing.T) {
	for text, says := range map[string]string{
		`{"windows": "10s"}`:               "windows",
		`{"failures": {"ceiling": 1}}`:     "ceiling",
		`{"window": "ten"}`:                "ten",
		`{"window": 10}`:                   "window",
		`{"window": "disabled"}`:           "disabled",
		`{"max_wait": "never"}`:            "never",
		`{"break_jitter": "half"}`:         "half",
		`{"min_calls": "twenty"}`:          "min_calls",
		`{"on_state_change": "log"}`:       "on_state_change",
		`{"recovery": {"fraction": "1/2"}`: "unexpected end",
	} {
		s := settings{Name: "orders"}
		require.ErrorContains(t, json.Unmarshal([]byte(text), &s), says)
		assert.Equal(t, settings{Name: "orders"}, s, "%s: they stay as they were", text)
	}
}

// An error named a misspelt key without the object that it is in, a duration that is none without its field, and nothing at all where
// a key came twice: the last one won.
func TestRegression_WrongSettingsAreNamedInFull(t *testing.T) {
	for text, says := range map[string]string{
		`{"failures": {"multipel": 3}}`:                  "breaker: unknown field settings.failures.multipel",
		`{"recovery": {"min": "1s", "": 1}}`:             "breaker: unknown field settings.recovery.",
		`{"Windows": null}`:                              "breaker: unknown field settings.Windows",
		`{"window": "1s", "min_calls": 1, "Window": ""}`: "breaker: field settings.Window comes twice",
		`{"slow_calls": {"off": true, "off": false}}`:    "breaker: field settings.slow_calls.off comes twice",
		`{"failures": {}, "failures": {}}`:               "breaker: field settings.failures comes twice",
		`{"failures": {"window": "ten"}}`:                `breaker: settings.failures.window: time: invalid duration "ten"`,
		`{"failures": 7}`:                                "breaker: settings.failures: must be an object",
		`[]`:                                             "breaker: settings: must be an object",
	} {
		s := settings{Name: "orders", Failures: failures{Floor: 0.2}}
		require.EqualError(t, json.Unmarshal([]byte(text), &s), says, text)
		assert.Equal(t, settings{Name: "orders", Failures: failures{Floor: 0.2}}, s, "%s: they stay as they were", text)
	}
	var s settings
	require.NoError(t, json.Unmarshal([]byte(`{"Failures": {"FLOOR": 0.2}, "window": null, "recovery": null}`), &s))
	assert.Equal(t, settings{Failures: failures{Floor: 0.2}}, s)
	require.Error(t, s.UnmarshalJSON([]byte(`{"min_calls": 7} {"windows": "1s"}`)), "what follows is not skipped either")
	assert.Zero(t, s.MinCalls)
}

// A dashboard outlives the version of the service that it reads.
func TestSnapshotOfANewerVersion(t *testing.T) {
	s := breaker.Snapshot{Name: "orders", Waiting: 2}
	require.NoError(t, json.Unmarshal([]byte(`{"state": "open", "mood": "grim", "counts": {"calls": 5, "lost": 1}}`), &s))
	assert.Equal(t, breaker.Snapshot{Name: "orders", State: breaker.Open, Waiting: 2, Counts: breaker.Counts{Calls: 5}}, s)
	require.Error(t, json.Unmarshal([]byte(`{"name": "stock", "state": "ajar"}`), &s))
	assert.Equal(t, "orders", s.Name, "after an error it is what it was")
}

func TestSettingsThatNoJSONCanHold(t *testing.T) {
	_, err := json.Marshal(settings{FailureRatio: math.NaN()})
	assert.Error(t, err)
}
