package breaker

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// queued lists a queue from the front, and checks its links and its length on the way.
func queued(t *testing.T, q *waitQueue) (all []*waiter) {
	t.Helper()
	var last *waiter
	for w := q.head; w != nil; last, w = w, w.next {
		if !w.queued || w.prev != last {
			require.Fail(t, "broken link")
		}
		all = append(all, w)
	}
	require.Same(t, last, q.tail)
	require.Equal(t, len(all), q.len)
	return all
}

// takeTurn takes the token of a waiter, if it has one.
func takeTurn(w *waiter) bool {
	select {
	case <-w.turn:
		return true
	default:
		return false
	}
}

func TestWaitQueue_OnlyTheFirstIsWoken(t *testing.T) {
	q := new(waitQueue)
	q.wake()
	a, b, c := q.push(), q.push(), q.push()
	require.False(t, takeTurn(a))
	q.wake()
	q.wake()
	require.True(t, takeTurn(a))
	require.False(t, takeTurn(a), "told twice, but it asks once")
	require.False(t, takeTurn(b))

	q.remove(b)
	require.True(t, takeTurn(a), "the turn may have been that of the one that left")
	q.wake()
	q.remove(a) // gives up with the turn in its hands
	require.True(t, takeTurn(c), "the turn was handed on")
	q.remove(a)
	require.False(t, takeTurn(c), "it had left")
	q.remove(c)
	q.wake()
	require.Empty(t, queued(t, q))
}

// A caller that comes back takes its old place, and is told to ask if that is the first.
func TestWaitQueue_ComeBack(t *testing.T) {
	q := new(waitQueue)
	a, b, c := q.push(), q.push(), q.push()
	for _, w := range []*waiter{a, b, c} {
		q.remove(w)
		for _, other := range []*waiter{a, b, c} {
			takeTurn(other)
		}
		q.restore(w)
		require.True(t, slices.Equal([]*waiter{a, b, c}, queued(t, q)))
		require.True(t, takeTurn(a))
	}
	for _, w := range []*waiter{a, b, c} {
		q.remove(w)
	}
	q.restore(b)
	require.True(t, slices.Equal([]*waiter{b}, queued(t, q)))
}

// The queue behaves as a slice does that is kept in order of arrival.
func TestWaitQueue_Model(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	q := new(waitQueue)
	var model, away []*waiter
	for range 2000 {
		switch n := random.IntN(7); {
		case n < 3:
			model = append(model, q.push())
		case n < 5 && len(model) > 0:
			i := random.IntN(len(model))
			q.remove(model[i])
			away = append(away, model[i])
			model = slices.Delete(model, i, i+1)
		case n == 5 && len(away) > 0:
			w := away[random.IntN(len(away))]
			away = slices.DeleteFunc(away, func(o *waiter) bool { return o == w })
			i, _ := slices.BinarySearchFunc(model, w.number, func(o *waiter, n uint64) int { return int(o.number) - int(n) })
			model = slices.Insert(model, i, w)
			q.restore(w)
		case n == 6 && len(away) > 0:
			q.remove(away[0])
		}
		require.True(t, slices.Equal(model, queued(t, q)))
	}
}
