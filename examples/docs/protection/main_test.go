package main

import (
	"encoding/xml"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
)

// The claims of docs/protection.md, on fewer runs and shorter times.

func TestSteady(t *testing.T) {
	var opens []int
	for _, c := range candidates()[:2] {
		opens = append(opens, newTraffic(c.settings, 1.33, 1).opens(24*time.Hour, always(0.01)))
	}
	assert.Greater(t, opens[0], 20)
	assert.Zero(t, opens[1])
}

// Below half, zero settings let callers have the calls that succeed; beyond, both open.
func TestChanges(t *testing.T) {
	classic, zero := candidates()[0].settings, candidates()[1].settings
	_, missed := detections(classic, 20, 0.01, 0.3, 21)
	assert.Zero(t, missed)
	_, missed = detections(zero, 20, 0.01, 0.3, 21)
	assert.Greater(t, missed, 0.5)
	_, missed = detections(zero, 20, 0.01, 0.6, 21)
	assert.Zero(t, missed)
}

func TestBursts(t *testing.T) {
	b := burst{10 * time.Minute, 10 * time.Second, 0.1}
	assert.Positive(t, newTraffic(candidates()[0].settings, 20, 1).opens(6*time.Hour, b.weather()))
	assert.Zero(t, newTraffic(candidates()[1].settings, 20, 1).opens(6*time.Hour, b.weather()))
	assert.Equal(t, "10s of 10 % every 10m0s", b.String())
}

// The share of the calls that a brownout makes slow must exceed SlowCallRatio.
func TestTails(t *testing.T) {
	settings := tailSettings()
	assert.Positive(t, healthyOpens(settings[0].settings, 0.5, time.Hour))
	for _, c := range settings[1:] {
		assert.Zero(t, healthyOpens(c.settings, 0.5, time.Hour), c.name)
	}
	_, missed := brownouts(settings[2].settings, 0.4, 5)
	assert.InDelta(t, 1, missed, 1e-9)
	times, missed := brownouts(settings[3].settings, 0.5, 5)
	assert.Zero(t, missed)
	assert.Less(t, times[4], 30*time.Second)
	times, missed = brownouts(settings[1].settings, 0.6, 5)
	assert.Zero(t, missed)
	assert.Less(t, times[4], 5*time.Second)
}

func TestHangs(t *testing.T) {
	after, stuck := hang(breaker.Classic(), 5)
	assert.GreaterOrEqual(t, after, time.Minute)
	assert.Greater(t, stuck, 290)
	after, stuck = hang(breaker.Settings{}, 5)
	assert.LessOrEqual(t, after, 2*time.Second)
	assert.Less(t, stuck, 10)
}

func TestPicture(t *testing.T) {
	p := panels()
	require.Len(t, p, 2)
	assert.NotEmpty(t, p[0].slow)
	assert.Contains(t, p[0].states[:falls/time.Second], breaker.Open)
	assert.NotContains(t, p[1].states[:falls/time.Second], breaker.Open)
	assert.Contains(t, p[1].states[falls/time.Second:], breaker.Open)
	require.NoError(t, xml.Unmarshal(draw(p), new(any)))
}
