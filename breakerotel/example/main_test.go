package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestExample(t *testing.T) {
	var printed strings.Builder
	ms := time.Millisecond
	require.NoError(t, run(t.Context(), &printed, schedule{fails: 100 * ms, works: 900 * ms, ends: 1500 * ms, call: 5 * ms}))
	for _, want := range []string{
		"span stock breaker.name=inventory",
		"event breaker.state_change",
		"breaker.to=open",
		"breaker.refusals ",
		"breaker.opens ",
	} {
		assert.Contains(t, printed.String(), want)
	}
}
