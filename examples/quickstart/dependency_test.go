package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestScenarioPhases(t *testing.T) {
	s := scenario{healthy: 4 * time.Second, brownout: 3 * time.Second, failing: 2 * time.Second, restarted: time.Second}
	for _, c := range []struct {
		at   time.Duration
		want phase
	}{
		{0, healthy},
		{4*time.Second - 1, healthy},
		{4 * time.Second, brownout},
		{7*time.Second - 1, brownout},
		{7 * time.Second, failing},
		{9*time.Second - 1, failing},
		{9 * time.Second, restarted},
		{time.Hour, restarted},
	} {
		assert.Equal(t, c.want, s.at(c.at), "at %v", c.at)
	}
	assert.Equal(t, 10*time.Second, s.length())
}

// ask sends one request to a dependency and returns the status and how long the answer took.
func ask(ctx context.Context, d *dependency) (int, time.Duration) {
	start := time.Now()
	answer := httptest.NewRecorder()
	d.ServeHTTP(answer, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
	return answer.Code, time.Since(start)
}

// cold returns how long a request takes that a cold dependency works on alone.
func cold(d time.Duration) time.Duration { return time.Duration(float64(d) / coldCapacity) }

func TestDependencyAnswersByPhase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDependency(scenario{healthy: time.Second, brownout: time.Second, failing: time.Second}, time.Now())
		for _, c := range []struct {
			status      int
			least, most time.Duration
		}{
			{http.StatusOK, fastest, slowest},
			{http.StatusOK, slowdown * fastest, slowdown * slowest},
			{http.StatusServiceUnavailable, 0, 0},
			{http.StatusOK, cold(fastest), cold(slowest)},
		} {
			status, took := ask(t.Context(), d)
			assert.Equal(t, c.status, status)
			assert.InDelta(t, (c.least+c.most).Seconds()/2, took.Seconds(), ((c.most-c.least)/2 + time.Microsecond).Seconds())
			time.Sleep(time.Second - took)
		}
	})
}

func TestDependencySharesItsWorkers(t *testing.T) {
	for _, c := range []struct {
		requests int
		want     time.Duration
	}{
		{1, 10 * time.Millisecond},
		{fullCapacity, 10 * time.Millisecond},
		{2 * fullCapacity, 20 * time.Millisecond},
		{10 * fullCapacity, 100 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := newDependency(story, time.Now())
			start := time.Now()
			var requests sync.WaitGroup
			for range c.requests {
				requests.Go(func() { assert.NoError(t, d.work(t.Context(), 10*time.Millisecond)) })
			}
			requests.Wait()
			assert.InDelta(t, c.want.Seconds(), time.Since(start).Seconds(), 1e-5, "%d requests", c.requests)
		})
	}
}

func TestDependencyDropsItsWorkWhenItFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDependency(scenario{healthy: 50 * time.Millisecond, failing: time.Second}, time.Now())
		assert.ErrorIs(t, d.work(t.Context(), time.Second), errFailing)
		assert.Less(t, time.Since(d.start), 50*time.Millisecond+glance)
		assert.Equal(t, coldCapacity, d.capacity)
	})
}

func TestDependencyLosesWorkForClientsThatGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDependency(story, time.Now())
		d.cool()
		ctx, cancel := context.WithTimeout(t.Context(), 40*time.Millisecond)
		defer cancel()
		assert.ErrorIs(t, d.work(ctx, 10*time.Millisecond), context.DeadlineExceeded, "it needs 67 ms")
		assert.Equal(t, coldCapacity, d.capacity)
		assert.Zero(t, d.requests)

		assert.NoError(t, d.work(t.Context(), 10*time.Millisecond))
		assert.InDelta(t, coldCapacity+warmth, d.capacity, 1e-9)
		for range 1000 {
			d.warm()
		}
		assert.Equal(t, fullCapacity, d.capacity)
	})
}
