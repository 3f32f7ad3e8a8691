package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
)

// direct hands requests to a handler, so that a whole scenario runs on the time of a synctest bubble.
type direct struct{ handler http.Handler }

func (d direct) RoundTrip(request *http.Request) (*http.Response, error) {
	answer := httptest.NewRecorder()
	d.handler.ServeHTTP(answer, request)
	if err := request.Context().Err(); err != nil {
		return nil, err
	}
	return answer.Result(), nil
}

// The story has to come out the same every time: the breaker opens on measured slowness alone, its server warms up, and the
// other one stays cold.
func TestStory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var changes []breaker.StateChange
		b := breaker.MustNew(settings(func(_ context.Context, c breaker.StateChange) { changes = append(changes, c) }))
		start := time.Now()
		with := newClient(direct{newDependency(story, start)}, "http://with", b.Execute, start)
		without := newClient(direct{newDependency(story, start)}, "http://without", unguarded, start)
		seconds := 0
		play(t.Context(), story, with, without, func() { seconds++ })

		assert.Equal(t, 38, seconds)
		assert.Less(t, time.Since(start), 45*time.Second)

		require.NotEmpty(t, changes)
		first, last := changes[0], changes[len(changes)-1]
		assert.Equal(t, breaker.ReasonOverdueCalls, first.Reason)
		assert.Zero(t, first.Counts.Failures)
		assert.Equal(t, brownout, story.at(first.At.Sub(start)))
		assert.Equal(t, breaker.ReasonRampCompleted, last.Reason)

		w, o := newReport(story, with.results), newReport(story, without.results)
		assert.Equal(t, 3800, w.requests)
		assert.Equal(t, 3800, o.requests)
		assert.True(t, w.recovered)
		assert.Equal(t, 500, w.lastServed)
		assert.Less(t, w.waited, 50)
		assert.False(t, o.recovered)
		assert.Less(t, o.lastServed, 100)
		assert.Greater(t, o.waited, 1000)
		assert.Greater(t, w.served, o.served)
	})
}

// brief is over in a second.
var brief = scenario{
	healthy: 700 * time.Millisecond, brownout: 100 * time.Millisecond,
	failing: 150 * time.Millisecond, restarted: 50 * time.Millisecond,
}

func TestRunOverLoopback(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(t.Context(), &out, brief))
	assert.Contains(t, out.String(), "A server is healthy for 700ms")
	assert.Contains(t, out.String(), "\n    1s  ")
	assert.Regexp(t, `\nrequests +[1-9]\d+ +[1-9]\d+\n`, out.String(), "a busy machine offers fewer than a hundred")
	assertNothingRuns(t)
}

func TestRunStopsWhenInterrupted(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	var out strings.Builder
	assert.EqualError(t, run(ctx, &out, story), "interrupted")
	assert.NotContains(t, out.String(), "The same scenario")
	assertNothingRuns(t)
}

// assertNothingRuns looks for goroutines in code of this program. That of the test itself is the first.
func assertNothingRuns(t *testing.T) {
	t.Helper()
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	_, others, _ := strings.Cut(string(stacks), "\n\n")
	for _, code := range []string{"main.(*", "main.newSide", "main.play", "quickstart.(*", "quickstart.newSide", "quickstart.play"} {
		assert.NotContains(t, others, code)
	}
}
