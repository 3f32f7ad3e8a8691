package breaker

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every number of Classic is written, but for those of which 0 is off; so no later default changes what it means.
func TestClassicWritesEveryNumber(t *testing.T) {
	off := map[string]bool{
		"FailureRatio": true, "SlowCallThreshold": true, "ProbeCohort": true, "MaxWaiting": true, "RejectionDelay": true,
		"SlowCalls.TailQuantile": true, "Recovery.Fraction": true, "Recovery.Initial": true, "Recovery.Min": true, "Recovery.Max": true,
	}
	numbersOf(reflect.ValueOf(Classic()), "", func(name string, zero bool) {
		assert.Equal(t, off[name], zero, name)
	})
	s := Classic()
	require.NoError(t, s.Validate())
	assert.Equal(t, s, s.WithDefaults())
}

// numbersOf calls f with every number in a struct, also in those that it holds.
func numbersOf(v reflect.Value, prefix string, f func(name string, zero bool)) {
	for i := range v.NumField() {
		name, field := prefix+v.Type().Field(i).Name, v.Field(i)
		switch {
		case field.Kind() == reflect.Struct:
			numbersOf(field, name+".", f)
		case field.CanInt() || field.CanFloat():
			f(name, field.IsZero())
		}
	}
}

// Five failures in a row open for 15 s; a failed probe opens for 30 s; two good probes close it with the whole load.
func TestClassicDoesAsItAlwaysDid(t *testing.T) {
	x := onStage(t, Classic())
	fail := func(n int) {
		for range n {
			require.True(t, x.call(0, Transient))
			x.until(x.now())
		}
	}
	fail(4)
	require.Equal(t, Closed, x.b.State())
	fail(1)
	require.Equal(t, Open, x.b.State())
	x.until(15*time.Second - 1)
	require.False(t, x.call(0, Success))
	x.until(15 * time.Second)
	fail(1)
	require.False(t, x.call(0, Success))
	x.until(45*time.Second - 1)
	require.False(t, x.call(0, Success))
	x.until(45 * time.Second)
	for range 2 {
		require.True(t, x.call(0, Success))
		x.until(x.now())
	}
	require.Equal(t, Closed, x.b.State())
	var breaks []time.Duration
	for _, c := range x.log.all() {
		if c.To == Open {
			breaks = append(breaks, c.Break)
		}
	}
	assert.Equal(t, []time.Duration{15 * time.Second, 30 * time.Second}, breaks)
}

// Half of twenty calls three times slower than normal open it, at once; a slow probe re-opens; hangs are not seen.
func TestClassicSlowCalls(t *testing.T) {
	x := onStage(t, Classic())
	for range 100 {
		require.True(t, x.call(usual, Success))
		x.until(x.now() + usual)
	}
	x.until(time.Minute)
	for n := range 20 {
		require.Equal(t, Closed, x.b.State(), "call %d", n)
		require.True(t, x.call(4*usual, Success))
		x.until(x.now() + 4*usual)
	}
	c, _ := x.opened()
	require.Equal(t, ReasonSlowCalls, c.Reason)
	x.until(x.now() + c.Break)
	require.True(t, x.call(4*usual, Success))
	x.until(x.now() + 4*usual)
	assert.Equal(t, ReasonProbeSlow, x.b.Snapshot().Reason)
	hung := onStage(t, Classic())
	hung.calls(10, time.Minute, usual, Success)
	hung.calls(10, 3*time.Minute, -1, Ignored)
	assert.Empty(t, hung.log.all())
}

// Calls that are all given up by their callers, from the first on, when they are above the threshold left nothing behind: the counts
// were made with the first outcome.
func TestRegression_FirstCallsThatAreGivenUpSlowCount(t *testing.T) {
	s := Classic()
	s.SlowCallThreshold = time.Second
	x := onStage(t, s)
	x.calls(10, 20*time.Second, 8*time.Second, givenUp)
	c, _ := x.opened()
	assert.Equal(t, ReasonSlowCalls, c.Reason)
}
