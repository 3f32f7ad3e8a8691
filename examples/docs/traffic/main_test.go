package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
)

func TestSettingsAreValid(t *testing.T) {
	for name, settings := range map[string]breaker.Settings{
		"one a minute": perMinute(), "ten a second": tenPerSecond(), "ten thousand a second": tenThousandPerSecond(),
		"a fleet": fleet(), "flaky": flaky(), "bimodal": bimodal(),
	} {
		assert.NoError(t, settings.Validate(), name)
	}
}

// The baselines of one call a minute must not turn themselves off, or be too short to hold their samples.
func TestPerMinuteIsArmed(t *testing.T) {
	d := perMinute().WithDefaults()
	assert.True(t, d.Failures.Off, "its baseline would need 2.5 h")
	assert.False(t, d.SlowCalls.Off)
	assert.Greater(t, d.SlowCalls.Window, time.Duration(d.SlowCalls.MinSamples)*time.Minute)
}

// The claims of docs/settings.md.
func TestRows(t *testing.T) {
	for _, s := range situations() {
		claim, ok := claims[s.kind+": "+s.day]
		if !ok {
			continue
		}
		t.Run(s.kind+": "+s.day, func(t *testing.T) {
			s.seeds = 1
			results := make(map[string]tally)
			for _, c := range s.candidates() {
				var err error
				results[c.name], err = s.run(t.Context(), c.settings)
				require.NoError(t, err)
			}
			claim(t, results)
		})
	}
}

var claims = map[string]func(*testing.T, map[string]tally){
	"one a minute: 10 times slower for 1 h": func(t *testing.T, r map[string]tally) {
		assert.Zero(t, r["classic"].opens)
		assert.NotZero(t, r["row"].opens)
	},
	"ten thousand a second: an outage of 10 s": func(t *testing.T, r map[string]tally) {
		assert.Empty(t, r["ramp"].timeToRecover)
		assert.NotEmpty(t, r["row"].timeToRecover)
		assert.Greater(t, r["row"].served(), r["ramp"].served()+0.2)
	},
	"a fleet of 50: an outage of 30 s": func(t *testing.T, r map[string]tally) {
		assert.Empty(t, r["classic"].timeToRecover)
		assert.NotEmpty(t, r["row"].timeToRecover)
	},
	"a flaky dependency: 30 % fail": func(t *testing.T, r map[string]tally) {
		assert.NotZero(t, r["classic"].falseOpens)
		assert.Zero(t, r["row"].opens)
		assert.Less(t, r["ramp"].served(), r["classic"].served())
	},
}

func TestBimodal(t *testing.T) {
	for _, test := range []struct {
		day            string
		byDefault, row bool // opens
	}{
		{"60 % from the cache", false, false},
		{"40 % from the cache", true, false},
		{"disk 20 times slower", true, true},
	} {
		var day twoHumped
		for _, d := range twoHumpedDays() {
			if d.name == test.day {
				day = d
			}
		}
		assert.Equal(t, test.byDefault, day.firstOpen(breaker.Classic()) != "never", test.day)
		assert.Equal(t, test.row, day.firstOpen(bimodal()) != "never", test.day)
	}
}
