package breaker

import (
	"context"
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// entropy fills values from the bytes of a fuzzer. When it has run out it gives zeros.
type entropy []byte

func (e *entropy) byte() (b byte) {
	if len(*e) > 0 {
		b, *e = (*e)[0], (*e)[1:]
	}
	return b
}

func (e *entropy) uint64() (n uint64) {
	for range 8 {
		n = n<<8 | uint64(e.byte())
	}
	return n
}

// number gives any number, but mostly 0, a small one, a power of two or its neighbour: what settings are made of and where
// they go wrong.
func (e *entropy) number() int64 {
	switch kind := e.byte(); kind % 8 {
	case 0, 1, 2, 3:
		return 0
	case 4:
		return int64(int8(e.byte()))
	case 5, 6:
		n := e.byte()
		return int64(uint64(1)<<(n%64)) + int64(n>>6) - 1
	default:
		return int64(e.uint64())
	}
}

// float gives any floating-point number, but mostly one with few digits.
func (e *entropy) float() float64 {
	switch e.byte() % 8 {
	case 0, 1, 2, 3:
		return 0
	case 4:
		return float64(e.byte()) / 255
	case 5:
		return float64(int8(e.byte())) / 10
	case 6:
		return math.Ldexp(1, int(int8(e.byte())))
	default:
		return math.Float64frombits(e.uint64())
	}
}

// fill writes every field that is a number, a text or a time.
func (e *entropy) fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(e.number()>>30, 0).UTC()))
			return
		}
		for i := range v.NumField() {
			e.fill(v.Field(i))
		}
	case reflect.Pointer:
		if v.Type() == reflect.TypeFor[*float64]() && e.byte()%2 == 1 {
			v.Set(reflect.New(v.Type().Elem()))
			e.fill(v.Elem())
		}
	case reflect.String:
		n := min(int(e.byte()%8), len(*e))
		v.SetString(string((*e)[:n]))
		*e = (*e)[n:]
	case reflect.Bool:
		v.SetBool(e.byte()%8 == 7)
	case reflect.Uint8:
		v.SetUint(uint64(e.number() & 0xff))
	case reflect.Uint64:
		v.SetUint(uint64(e.number()))
	case reflect.Int, reflect.Int64:
		v.SetInt(e.number())
	case reflect.Float64:
		v.SetFloat(e.float())
	}
}

func filled[T any](input []byte) (v T) {
	(*entropy)(&input).fill(reflect.ValueOf(&v).Elem())
	return v
}

// FuzzRing compares a ring with the list of calls it has counted, at every step, now and later.
func FuzzRing(f *testing.F) {
	f.Add(int64(time.Second), []byte{0, 1, 5, 33, 6, 40, 4, 200, 3, 4, 5, 41, 0, 0, 1, 2, 3})
	f.Add(int64(time.Millisecond)+7, []byte{7, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 4, 100, 1})
	f.Fuzz(func(t *testing.T, window int64, input []byte) {
		r := newRing(time.Duration(max(int64(time.Millisecond), window)))
		model := ringModel{width: r.width}
		var now time.Duration
		for e := entropy(input); len(e) > 0 && len(model.calls) < 200; {
			now = clampTime(now, e.number()&math.MaxInt64)
			outcome := e.byte()
			r.at(now).add(outcome&1 != 0, outcome&2 != 0)
			model.add(now, outcome&1 != 0, outcome&2 != 0)
			later := clampTime(now, int64(outcome>>2)*int64(r.width)/3)
			written := r
			require.Equal(t, model.read(now), r.read(now))
			require.Equal(t, model.read(later), r.read(later), "%v later", later-now)
			for lag := range int64(4) {
				counts, covered := r.readLagged(later, lag)
				want, span := model.readLagged(later, lag)
				require.Equal(t, want, counts, "%v later, without %d buckets", later-now, lag)
				require.Equal(t, span, covered)
			}
			require.Equal(t, written, r, "a read wrote")
		}
	})
}

// clampTime moves a time on, as far as a machine's time goes.
func clampTime(now time.Duration, by int64) time.Duration {
	return now + min(time.Duration(by), endOfTime-now)
}

// readLagged counts what is older than the newest buckets, and measures the time from the start of the oldest bucket that is
// left, or of the ring, to the end of the newest, or to now.
func (m *ringModel) readLagged(now time.Duration, lag int64) (c Counts, covered time.Duration) {
	current := now / m.width
	newest := current - time.Duration(lag)
	for _, call := range m.calls {
		if at := call.at / m.width; current-buckets < at && at <= newest {
			c.add(call.failed, call.slow)
		}
	}
	c.ConsecutiveFailures = 0
	return c, min(now, (newest+1)*m.width) - max(0, current-buckets+1)*m.width
}

// FuzzHistogram compares measured quantiles with exact ones: never below, and at most an eighth or a microsecond above.
func FuzzHistogram(f *testing.F) {
	f.Add(0.5, 0.75, []byte{5, 10, 5, 20, 5, 21, 5, 22, 5, 30, 4, 3, 7, 1, 2, 3, 4, 5, 6, 7, 8})
	f.Add(1.0/3, 1-1.0/3, []byte{5, 12, 5, 14, 5, 16})
	f.Add(0.5, 0.75, []byte{7, 127, 255, 255, 255, 255, 255, 255, 255, 7, 0, 32, 0, 0, 0, 0, 0, 0})
	f.Add(0.5, 0.99, []byte{7, 0, 0, 0, 62, 128, 0, 0, 0, 7, 0, 0, 0, 62, 127, 255, 255, 255}) // 2^28 µs and 1 ns less
	f.Fuzz(func(t *testing.T, quantile, tail float64, input []byte) {
		if !(quantile > 0 && quantile < tail && tail < 1) {
			t.Skip("no quantiles")
		}
		var samples []time.Duration
		for e := entropy(input); len(e) > 0; {
			samples = append(samples, time.Duration(e.number()))
		}
		if len(samples) == 0 {
			t.Skip("no samples")
		}
		l := newLatencies(quantile, time.Minute, len(samples))
		l.tail = tail
		for _, latency := range samples {
			require.Zero(t, l.read(0).normal, "before there are enough samples")
			addLatency(l, 0, latency)
		}
		slices.Sort(samples)
		requireBound(t, l.read(0).normal, samples, quantile)
		requireBound(t, l.read(0).tail, samples, tail)
	})
}

// requireBound checks a measured quantile of sorted samples. Its rank is the smallest whose share of the samples reaches it.
func requireBound(t *testing.T, got time.Duration, sorted []time.Duration, quantile float64) {
	t.Helper()
	rank := 1
	for float64(rank)/float64(len(sorted)) < quantile {
		rank++
	}
	exact := max(0, sorted[rank-1])
	if got < math.MaxInt64 {
		require.Greater(t, got, exact)
	}
	if exact < 8*time.Microsecond {
		require.LessOrEqual(t, got, exact+time.Microsecond)
	} else {
		require.LessOrEqual(t, got, later(exact, exact/8), "of %v", exact)
	}
}

// The product of a quantile and a number can be rounded down to a whole one as well as up: two thirds and a little of three
// samples fell on the second, below the true quantile.
func TestRegression_QuantileOfARoundedProductIsNotBelow(t *testing.T) {
	third := 1.0 / 3
	require.Greater(t, 1-third, 2.0/3)
	assert.EqualValues(t, 3, rankOf(1-third, 3))
}

// FuzzSimulation runs small simulations twice: impossible input is an error, and everything else a report that adds up, the
// same for the same seed.
func FuzzSimulation(f *testing.F) {
	f.Add(uint64(1), 20.0, 0.01, int64(10*time.Second), []byte{})
	f.Add(uint64(2), 50.0, 0.5, int64(5*time.Second), []byte{5, 25, 5, 30, 5, 4, 5, 30, 5, 2, 0, 0, 5, 30, 5, 32, 4, 255, 4, 255})
	f.Fuzz(func(t *testing.T, seed uint64, perSecond, failing float64, duration int64, input []byte) {
		e := entropy(input)
		s := Simulation{Seed: seed, Load: Load{perSecond}, Duration: time.Duration(duration)}
		s.Dependency = Dependency{
			P50: time.Duration(e.number()), P99: time.Duration(e.number()), FailureRate: failing,
			Capacity: int(e.number()), Warmup: time.Duration(e.number()),
			Incidents: make([]Incident, e.byte()%3),
		}
		setDefault(&s.Dependency.P50, 10*time.Millisecond)
		for i := range s.Dependency.Incidents {
			e.fill(reflect.ValueOf(&s.Dependency.Incidents[i]).Elem())
		}
		s.Breakers, s.Timeout = int(e.number()), time.Duration(e.number())
		e.fill(reflect.ValueOf(&s.Settings).Elem())
		requireReport(t, s)
	})
}

func requireReport(t *testing.T, s Simulation) {
	if s.validate() == nil && s.expectedEvents() > 3000 {
		t.Skip("too long")
	}
	r, err := s.Run(context.Background())
	again, errAgain := s.Run(context.Background())
	require.Equal(t, fmt.Sprint(err), fmt.Sprint(errAgain), "as text, for NaN does not equal itself")
	require.Equal(t, r, again)
	require.Equal(t, s.validate() == nil, err == nil)
	require.Equal(t, r.Calls, r.Admitted+r.Rejected)
	require.Equal(t, r.Admitted, r.Succeeded+r.Failed)
	require.LessOrEqual(t, r.Slow, r.Admitted)
	require.LessOrEqual(t, r.FalseOpens, r.Opens)
	require.True(t, r.TimeToOpen >= 0 && r.TimeToRecover >= 0)
	require.LessOrEqual(t, r.Latency(0.5), r.Latency(1))
}

// enumerated is a type with a text for each of its values.
type enumerated interface {
	~uint8
	encoding.TextMarshaler
	String() string
}

// FuzzText checks texts and values of every enumerated type: what one direction takes, the other returns.
func FuzzText(f *testing.F) {
	for i, text := range []string{"half-open", "throttled", "probe-timeout", "equal", "wait", "", "Closed", "none"} {
		f.Add(text, byte(i))
	}
	f.Fuzz(func(t *testing.T, text string, value byte) {
		requireText[State](t, text, value)
		requireText[Outcome](t, text, value)
		requireText[Reason](t, text, value)
		requireText[Jitter](t, text, value)
		requireText[WhenOpen](t, text, value)
	})
}

func requireText[E enumerated](t *testing.T, text string, value byte) {
	v, read := E(value), E(value)
	if any(&read).(encoding.TextUnmarshaler).UnmarshalText([]byte(text)) != nil {
		require.Equal(t, v, read, "unknown text changes nothing")
	} else {
		require.Equal(t, text, read.String())
	}
	written, err := v.MarshalText()
	if err != nil {
		require.Nil(t, written)
		require.Contains(t, v.String(), "(", "an unknown value has no text of its own")
		return
	}
	require.Equal(t, v.String(), string(written))
	require.NoError(t, any(&read).(encoding.TextUnmarshaler).UnmarshalText(written))
	require.Equal(t, v, read)
}

// FuzzJSON checks Settings and Snapshot both ways: what a text is read as writes a text that reads the same, and what any value
// writes, if it can be written, reads as that value.
func FuzzJSON(f *testing.F) {
	f.Add([]byte(`{"name": "a", "window": "1.5s", "max_wait": "disabled", "failures": {"off": true}}`))
	f.Add([]byte(`{"state": "open", "since": "2026-01-02T03:04:05+02:00", "normal_failure_rate": 0, "totals": {"slow": 3}}`))
	f.Add([]byte{2, 97, 98, 5, 9, 4, 3, 5, 40, 6, 200, 4, 20, 7, 1, 2, 3, 4, 5, 6, 7, 8})
	f.Fuzz(func(t *testing.T, input []byte) {
		requireJSON[Settings](t, input)
		requireJSON[Snapshot](t, input)
	})
}

func requireJSON[T any](t *testing.T, input []byte) {
	var read T
	if json.Unmarshal(input, &read) == nil {
		written := requireWritten(t, read)
		var again T
		require.NoError(t, json.Unmarshal(written, &again), "%s", written)
		require.Equal(t, string(written), string(requireWritten(t, again)))
	}
	value := filled[T](input)
	written, err := json.Marshal(value)
	if err != nil || !utf8.ValidString(reflect.ValueOf(value).FieldByName("Name").String()) {
		return
	}
	var again T
	require.NoError(t, json.Unmarshal(written, &again), "%s", written)
	require.Equal(t, value, again, "%s", written)
}

func requireWritten(t *testing.T, v any) []byte {
	t.Helper()
	written, err := json.Marshal(v)
	require.NoError(t, err, "%+v", v)
	return written
}
