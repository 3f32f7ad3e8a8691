package breaker_test

import (
	"encoding"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
)

// enumerated is what State, Outcome, Reason, Jitter and WhenOpen have in common.
type enumerated interface {
	~uint8
	fmt.Stringer
	encoding.TextMarshaler
}

type unmarshaler[E enumerated] interface {
	*E
	encoding.TextUnmarshaler
}

func TestTexts(t *testing.T) {
	testTexts[breaker.State](t, "closed", "recovering", "half-open", "open", "isolated")
	testTexts[breaker.Outcome](t, "success", "transient", "throttled", "permanent", "ignored")
	testTexts[breaker.Jitter](t, "equal", "full", "none")
	testTexts[breaker.WhenOpen](t, "reject", "wait")
	testTexts[breaker.Reason](t, "none", "consecutive-failures", "failure-ratio", "relative-failures", "slow-calls", "break-elapsed",
		"probe-failed", "probe-slow", "probe-timeout", "probes-succeeded", "ramp-failed", "ramp-completed", "isolated", "reset",
		"overdue-calls")
}

// testTexts checks that the values from 0 on have these texts, that they make the round trip, and that there are no others.
func testTexts[E enumerated, P unmarshaler[E]](t *testing.T, texts ...string) {
	t.Run(fmt.Sprintf("%T", E(0)), func(t *testing.T) {
		for i, text := range texts {
			value := E(i)
			assert.Equal(t, text, value.String())
			encoded, err := value.MarshalText()
			require.NoError(t, err)
			assert.Equal(t, text, string(encoded))
			got := E(255)
			require.NoError(t, P(&got).UnmarshalText(encoded))
			assert.Equal(t, value, got)
		}
		for _, i := range []int{len(texts), 255} {
			_, err := E(i).MarshalText()
			assert.ErrorContains(t, err, fmt.Sprint(i))
			assert.Contains(t, E(i).String(), fmt.Sprintf("(%d)", i), "it still prints as something")
		}
		for _, text := range []string{"", "unknown", " " + texts[0], texts[0] + "x"} {
			got := E(1)
			assert.ErrorContains(t, P(&got).UnmarshalText([]byte(text)), fmt.Sprintf("%q", text))
			assert.Equal(t, E(1), got, "it stays as it was")
		}
	})
}

func TestTextsInJSON(t *testing.T) {
	type wire struct {
		State  breaker.State
		Reason breaker.Reason
		ByText map[breaker.State]int
	}
	want := wire{breaker.HalfOpen, breaker.ReasonProbeSlow, map[breaker.State]int{breaker.Open: 2}}
	encoded, err := json.Marshal(want)
	require.NoError(t, err)
	assert.JSONEq(t, `{"State":"half-open","Reason":"probe-slow","ByText":{"open":2}}`, string(encoded))
	var got wire
	require.NoError(t, json.Unmarshal(encoded, &got))
	assert.Equal(t, want, got)
}

// The larger of two states is the worse one.
func TestStatesAreOrderedBySeverity(t *testing.T) {
	assert.Equal(t, breaker.Closed, breaker.State(0))
	order := []breaker.State{breaker.Closed, breaker.Recovering, breaker.HalfOpen, breaker.Open, breaker.Isolated}
	for i, s := range order[1:] {
		assert.Equal(t, s, max(s, order[i]))
	}
}

func TestZeroValues(t *testing.T) {
	assert.Equal(t, breaker.Success, breaker.Outcome(0))
	assert.Equal(t, breaker.JitterEqual, breaker.Jitter(0))
	assert.Equal(t, breaker.Reject, breaker.WhenOpen(0))
	assert.Equal(t, "none", breaker.Reason(0).String())
}

func TestCountsRatios(t *testing.T) {
	assert.Zero(t, breaker.Counts{}.FailureRatio())
	assert.Zero(t, breaker.Counts{}.SlowRatio())
	c := breaker.Counts{Calls: 100, Failures: 7, Slow: 29}
	assert.Equal(t, 0.07, c.FailureRatio())
	assert.Equal(t, 0.29, c.SlowRatio())
}
