package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The claims of docs/adaptive.md.

func TestHoldsOut(t *testing.T) {
	earliest, latest := holdsOut(0.5, 5*time.Minute)
	assert.InDelta(t, 150, earliest.Seconds(), 300/4, "at most a quarter of the window before its half")
	assert.InDelta(t, 150, latest.Seconds(), 300/4)
	assert.Less(t, earliest, latest)
}

func TestProbesToClose(t *testing.T) {
	assert.Equal(t, 2.0, probesToClose(0))
	assert.InDelta(t, 20, probesToClose(0.9), 1)
}

func TestShifts(t *testing.T) {
	want := []int{0, 3, 3, 3}
	for n, c := range shifts() {
		opened, _, err := c.opened(t.Context(), 3)
		require.NoError(t, err)
		assert.Equal(t, want[n], opened, "%s to %v", c.name, c.to)
	}
}

func TestFalseOpens(t *testing.T) {
	var opens []int
	for _, c := range healthyDays()[:3] {
		n, err := c.falseOpens(t.Context())
		require.NoError(t, err)
		opens = append(opens, n)
	}
	assert.Greater(t, opens[0], 4*opens[1])
	assert.Zero(t, opens[2])
}

func TestDerivationsAreValid(t *testing.T) {
	for _, d := range derivations() {
		assert.NoError(t, d.settings.Validate(), d.name)
	}
}
