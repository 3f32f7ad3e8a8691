package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A short soak must find nothing wrong.
func TestRun(t *testing.T) {
	require.NoError(t, run(t.Context(), 500*time.Millisecond, 8))
}

func TestRun_Arguments(t *testing.T) {
	for _, test := range []struct {
		length  time.Duration
		callers int
	}{{0, 1}, {-time.Second, 1}, {longest + 1, 1}, {time.Second, 0}} {
		assert.Error(t, run(t.Context(), test.length, test.callers), test)
	}
}

// What a soak is there to find must be found.
func TestReport_Check(t *testing.T) {
	for name, spoil := range map[string]func(*report){
		"1 calls, 0 outcomes and 0 refusals":      func(r *report) { r.load.calls.Add(1) },
		"0 refusals, 1 callers saw one":           func(r *report) { r.load.refusals.Add(1) },
		"1 events do not continue the one before": func(r *report) { r.load.breaks++ },
		"1 goroutines are left of 0":              func(r *report) { r.after.goroutines++ },
		"the heap has grown by 4097 KiB":          func(r *report) { r.after.heap = 4<<20 + 1024 },
	} {
		t.Run(name, func(t *testing.T) {
			r := &report{load: newLoad("", 1)}
			require.NoError(t, r.check())
			spoil(r)
			assert.EqualError(t, r.check(), name)
		})
	}
}
