package main

import (
	"encoding/xml"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The figures of docs/recovery.md.
func TestServed(t *testing.T) {
	want := map[string]int{"ramp": 8250, "no ramp": 3002, "the clock alone": 6722, "the evidence alone": 326}
	for _, c := range candidates() {
		assert.Equal(t, want[c.name], served(run(c.settings)), c.name)
	}
}

func TestPicture(t *testing.T) {
	c := candidates()[0]
	picture := draw([]panel{{c.name, run(c.settings)}})
	require.NoError(t, xml.Unmarshal(picture, new(any)))
	assert.Contains(t, string(picture), "ramp: 8250 served")
}

func TestAtLeast(t *testing.T) {
	assert.InDelta(t, 1, atLeast(0, 5, 0.5), 1e-12)
	assert.InDelta(t, 0.5, atLeast(1, 1, 0.5), 1e-12)
	assert.InDelta(t, 1.0/32, atLeast(5, 5, 0.5), 1e-12)
}
