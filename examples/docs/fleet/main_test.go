package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
)

// The claims of docs/recovery.md.

func TestJitterSpreadsProbes(t *testing.T) {
	none, err := pulse(breaker.JitterNone).Run(t.Context())
	require.NoError(t, err)
	equal, err := pulse(breaker.JitterEqual).Run(t.Context())
	require.NoError(t, err)
	assert.Greater(t, none.PeakProbesPerSecond, 200, "one at a time in each process, all processes at once")
	assert.Less(t, equal.PeakProbesPerSecond, none.PeakProbesPerSecond/5)
}

func TestRampMustOutlastTheWarmup(t *testing.T) {
	for _, test := range []struct {
		ramp     time.Duration
		recovers bool
	}{{0, false}, {15 * time.Second, false}, {time.Minute, true}} {
		s := cold(time.Minute, test.ramp)
		s.Duration = 5 * time.Minute
		r, err := s.Run(t.Context())
		require.NoError(t, err)
		assert.Equal(t, test.recovers, r.Recovered, "%v", test.ramp)
	}
}
