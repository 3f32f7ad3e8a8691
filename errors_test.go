package breaker_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
)

func TestCallbackError(t *testing.T) {
	returned := &breaker.CallbackError{Name: "orders", Callback: "BreakDurationFunc", Err: errDown}
	assert.Equal(t, `breaker: "orders": BreakDurationFunc: the dependency is down`, returned.Error())
	assert.ErrorIs(t, returned, errDown)

	panicked := &breaker.CallbackError{Name: "orders", Callback: "Subscribe", Panic: "no idea", Stack: []byte("goroutine 1")}
	assert.Equal(t, `breaker: "orders": Subscribe panicked: no idea`, panicked.Error())
	assert.NoError(t, errors.Unwrap(panicked))
}

func TestSettingsError(t *testing.T) {
	err := breaker.Settings{MinCalls: -3}.Validate()
	require.EqualError(t, err, "breaker: Settings.MinCalls is -3: must not be negative")

	err = breaker.Settings{MinCalls: -3, MaxWaiting: -4}.Validate()
	require.EqualError(t, err, "breaker: 2 problems in the settings"+
		"\n\tSettings.MinCalls is -3: must not be negative"+
		"\n\tSettings.MaxWaiting is -4: must not be negative")
	var all *breaker.SettingsError
	require.ErrorAs(t, err, &all)
	require.Len(t, all.Problems, 2)
	for _, p := range all.Problems {
		assert.ErrorIs(t, err, p, "each problem is found in the whole")
	}
	var one breaker.Problem
	require.ErrorAs(t, err, &one)
	assert.Equal(t, breaker.Problem{Field: "Settings.MinCalls", Value: -3, Message: "must not be negative"}, one)
}
