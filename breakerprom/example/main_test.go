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
	require.NoError(t, run(&printed, schedule{fails: 100 * ms, works: 900 * ms, ends: 1500 * ms, call: 5 * ms, scrape: 100 * ms}))
	for _, want := range []string{
		`breaker_calls_total{name="inventory",outcome="success"} `,
		`breaker_calls_total{name="inventory",outcome="transient"} `,
		`breaker_refusals_total{name="inventory"} `,
		`breaker_opens_total{name="inventory"} `,
		`breaker_transitions_total{from="closed",name="inventory",`,
	} {
		assert.Contains(t, printed.String(), want)
	}
}
