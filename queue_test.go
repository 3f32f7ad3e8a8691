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
	a, b, c := q.push(false), q.push(false), q.push(false)
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

// A caller whose question the first in the line has to tell an observer of goes before it.
func TestWaitQueue_TheUrgentGoFirst(t *testing.T) {
	q := new(waitQueue)
	lone := q.push(true)
	last, front := q.push(false), q.push(true)
	require.True(t, slices.Equal([]*waiter{front, lone, last}, queued(t, q)))
	q.wake()
	require.True(t, takeTurn(front))
}

// The queue behaves as a slice does.
func TestWaitQueue_Model(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	q := new(waitQueue)
	var model, gone []*waiter
	for range 2000 {
		switch n := random.IntN(8); {
		case n < 3:
			model = append(model, q.push(false))
		case n == 3:
			model = slices.Insert(model, 0, q.push(true))
		case n < 7 && len(model) > 0:
			i := random.IntN(len(model))
			q.remove(model[i])
			gone = append(gone, model[i])
			model = slices.Delete(model, i, i+1)
		case n == 7 && len(gone) > 0:
			q.remove(gone[random.IntN(len(gone))])
		}
		require.True(t, slices.Equal(model, queued(t, q)))
	}
}
