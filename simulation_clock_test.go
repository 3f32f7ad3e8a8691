package breaker

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestVirtualClock(t *testing.T) {
	var c virtualClock
	start := c.Now()
	assert.Zero(t, c.Since(start))
	c.now = 90 * time.Minute
	assert.Equal(t, 90*time.Minute, c.Since(start))
	assert.Equal(t, start.Add(90*time.Minute), c.Now())
	assert.Nil(t, c.After(0), "it fires for nobody")
}

// The model of the agenda is a sorted list.
func TestAgendaPopsInOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var a agenda
	var model []simEvent
	for step := range 20_000 {
		if len(model) > 0 && r.IntN(100) < 48 {
			got := a.pop()
			require.Equal(t, model[0], got, "step %d", step)
			model = model[1:]
			continue
		}
		e := simEvent{at: time.Duration(r.IntN(20)), kind: eventKind(r.IntN(3))}
		e.number = a.pushed
		a.push(e)
		i, _ := slices.BinarySearchFunc(model, e, func(m, e simEvent) int {
			return cmp.Or(cmp.Compare(m.at, e.at), cmp.Compare(m.kind, e.kind), cmp.Compare(m.number, e.number))
		})
		model = slices.Insert(model, i, e)
	}
	require.Len(t, a.heap, len(model))
}

func TestAgendaOrdersEventsAtTheSameTime(t *testing.T) {
	var a agenda
	for _, kind := range []eventKind{callArrives, callEnds, secondEnds, callArrives} {
		a.push(simEvent{at: time.Second, kind: kind})
	}
	a.push(simEvent{at: time.Second - 1, kind: callArrives})
	var kinds []eventKind
	var numbers []uint64
	for len(a.heap) > 0 {
		e := a.pop()
		kinds = append(kinds, e.kind)
		numbers = append(numbers, e.number)
	}
	assert.Equal(t, []eventKind{callArrives, secondEnds, callEnds, callArrives, callArrives}, kinds)
	assert.Equal(t, []uint64{4, 2, 1, 0, 3}, numbers)
}

func TestSlidingSecond(t *testing.T) {
	t.Run("a second excludes its end", func(t *testing.T) {
		var s slidingSecond
		for i := range 5 {
			s.add(time.Duration(i) * time.Second)
		}
		assert.Equal(t, 1, s.peak)
		s.add(5*time.Second - 1)
		assert.Equal(t, 2, s.peak)
	})
	t.Run("is not bound to whole seconds", func(t *testing.T) {
		var s slidingSecond
		for _, at := range []time.Duration{0, 900, 950, 1100, 1899, 1900} {
			s.add(at * time.Millisecond)
		}
		assert.Equal(t, 4, s.peak, "900, 950, 1100 and 1899 ms")
	})
	t.Run("as counted one by one", func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 4))
		var s slidingSecond
		var all []time.Duration
		var at time.Duration
		peak := 0
		for range 2_000 {
			at += time.Duration(r.ExpFloat64() * float64(100*time.Millisecond))
			s.add(at)
			all = append(all, at)
			n := 0
			for _, past := range all {
				if at-past < time.Second {
					n++
				}
			}
			peak = max(peak, n)
			require.Equal(t, peak, s.peak)
			require.Len(t, s.times, n, "it keeps nothing older")
		}
	})
}
