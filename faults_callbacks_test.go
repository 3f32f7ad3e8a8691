package breaker

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// userFunctions are the ways in which code of the user gets to run, each with how to hook it in. Those that only run on a fault
// come with one.
var userFunctions = map[string]func(s *Settings, hook func()){
	"Classify": func(s *Settings, hook func()) { s.Classify = func(error) Outcome { hook(); return Transient } },
	"Random": func(s *Settings, hook func()) {
		s.BreakJitter, s.Random = JitterEqual, func() float64 { hook(); return 0.5 }
	},
	"OnStateChange": func(s *Settings, hook func()) { s.OnStateChange = func(context.Context, StateChange) { hook() } },
	"Subscribe": func(s *Settings, hook func()) {
		s.Monitor = new(Monitor)
		s.Monitor.Subscribe(func(context.Context, StateChange) { hook() })
	},
	"BreakDurationFunc": func(s *Settings, hook func()) {
		s.BreakDurationFunc = func(context.Context, StateChange) (time.Duration, error) { hook(); return 10 * time.Second, nil }
	},
	"OnCallbackError": func(s *Settings, hook func()) {
		s.Classify = func(error) Outcome { panic("boom") }
		s.OnCallbackError = func(context.Context, *CallbackError) { hook() }
	},
}

// Code of the user that blocks holds up the call it runs in, and nobody else.
func TestUserFunctionThatBlocks(t *testing.T) {
	for name, install := range userFunctions {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan bool)
				var made, entered, returned atomic.Bool
				s := brittle(nil)
				install(&s, func() {
					if made.Load() && !entered.Swap(true) {
						<-release
					}
				})
				b := MustNewClassic(s) // which draws a number
				made.Store(true)
				go func() {
					trip(t, b)
					returned.Store(true)
				}()
				synctest.Wait()
				require.True(t, entered.Load())
				before := b.Snapshot().Totals
				p, err := b.TryAcquire(t.Context())
				require.True(t, err == nil || errors.Is(err, ErrRejected))
				p.Record(Success)
				b.Isolate()
				assert.Equal(t, Isolated, b.State())
				b.Reset()
				assert.Equal(t, Closed, b.State())
				assert.NotEqual(t, before, b.Snapshot().Totals)
				assert.False(t, returned.Load())
				close(release)
				synctest.Wait()
				assert.True(t, returned.Load())
			})
		})
	}
}

// Code of the user that calls the breaker it runs for finds no lock of ours held.
func TestUserFunctionThatCallsBack(t *testing.T) {
	for name, install := range userFunctions {
		t.Run(name, func(t *testing.T) {
			var b *Breaker
			called := false
			s := brittle(new(handClock))
			s.OnCallbackError = new(faultLog).add
			install(&s, func() {
				if b == nil || called {
					return // it is being made, or its own changes would call it for ever
				}
				called = true
				b.Snapshot()
				b.Isolate()
				b.Reset()
				_ = b.Execute(t.Context(), func(context.Context) error { return errDown })
				b.Reset()
			})
			b = MustNewClassic(s)
			trip(t, b)
			assert.True(t, called)
			requireWord(t, b)
			b.Reset()
			pass(t, b)
			assert.Equal(t, Closed, b.State())
			assert.False(t, b.events != nil && b.events.delivering)
		})
	}
}

// lockWatch is a clock that fails the test when it is read under a lock of its breaker.
type lockWatch struct {
	handClock
	free func()
}

func (c *lockWatch) Now() time.Time                       { c.free(); return c.handClock.Now() }
func (c *lockWatch) Since(t time.Time) time.Duration      { c.free(); return c.handClock.Since(t) }
func (c *lockWatch) After(time.Duration) <-chan time.Time { c.free(); return nil }

// assertFree reports a lock that is held.
func assertFree(t *testing.T, mu *sync.Mutex, what string) {
	t.Helper()
	if assert.True(t, mu.TryLock(), "%s is held", what) {
		mu.Unlock()
	}
}

// No code of the user runs under a lock, whatever a breaker does.
func TestUserCodeRunsUnderNoLock(t *testing.T) {
	for name, install := range userFunctions {
		t.Run(name, func(t *testing.T) {
			var b *Breaker
			runs := 0
			free := func() {
				if runs++; b == nil {
					return
				}
				assertFree(t, &b.mu, "the breaker's lock")
				if b.events != nil {
					assertFree(t, &b.events.mu, "the queue's lock")
				}
			}
			c := &lockWatch{free: free}
			s := brittle(c)
			s.OnCallbackError, s.WhenOpen = new(faultLog).add, Wait
			install(&s, free)
			b = MustNewClassic(s)
			for range 3 {
				trip(t, b)
				waitInVain(t, b)
				c.advance(time.Minute)
				pass(t, b)
				b.Isolate()
				b.Reset()
				b.RetryAfter()
				b.OpenedAt()
				b.NormalLatency()
				b.NormalFailureRate()
			}
			assert.Greater(t, runs, 30)
		})
	}
}

// The same where the clock was set back, and where a lost probe or a slow success opens the circuit: each draws a number or reads
// the clock with the lock in its hand, so to speak.
func TestUserCodeRunsUnderNoLockOnTheWay(t *testing.T) {
	var b *Breaker
	runs := 0
	free := func() {
		if runs++; b != nil {
			assertFree(t, &b.mu, "the breaker's lock")
		}
	}
	c := &lockWatch{free: free}
	s := brittle(c)
	s.BreakJitter, s.Random = JitterEqual, func() float64 { free(); return 0.5 }
	s.MinCalls, s.SlowCallThreshold, s.ProbeTimeout = 1, time.Second, time.Minute
	b = MustNewClassic(s)
	slow := func(context.Context) error { c.advance(2 * time.Second); return nil }
	draws := func(what string, f func()) {
		before := b.Snapshot().Totals.Opens
		f()
		require.Equal(t, before+1, b.Snapshot().Totals.Opens, what)
	}
	draws("a slow success", func() { require.NoError(t, b.Execute(t.Context(), slow)) })
	c.advance(time.Hour)
	draws("a lost probe", func() {
		_, err := b.TryAcquire(t.Context())
		require.NoError(t, err)
		c.advance(time.Hour)
		_, err = b.TryAcquire(t.Context())
		require.ErrorIs(t, err, ErrRejected)
	})
	c.advance(-time.Hour)
	require.Equal(t, Open, b.State())
	_, err := b.TryAcquire(t.Context())
	require.ErrorIs(t, err, ErrRejected)
	assert.Greater(t, runs, 10)
}

// A monitor that looks at its breakers reads their clocks, and holds no lock of its own meanwhile.
func TestMonitor_ReadsNoClockUnderItsLock(t *testing.T) {
	m, reads := new(Monitor), 0
	c := &lockWatch{free: func() { reads++; assertFree(t, &m.mu, "the monitor's lock") }}
	s := brittle(c)
	s.Monitor = m
	b := MustNewClassic(s)
	trip(t, b)
	before := reads
	_, err := m.State()
	require.NoError(t, err)
	for range m.Breakers() {
		b.RetryAfter()
	}
	require.NoError(t, m.Isolate())
	require.NoError(t, m.Reset())
	assert.Greater(t, reads, before+3)
}

// waitInVain makes a call that waits for admission and gives up.
func waitInVain(t *testing.T, b *Breaker) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		err := b.Execute(ctx, func(context.Context) error { return nil })
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

// A monitor may be shared: two groups that name it are watched and steered as one, and each takes out only its own.
func TestMonitorOfTwoGroups(t *testing.T) {
	m, heard, c := new(Monitor), new(watchLog), new(handClock)
	m.Subscribe(heard.add)
	groups := make([]*Group[int], 2)
	for i := range groups {
		g, err := NewGroup(func(int) Settings {
			s := brittle(c)
			s.Name, s.Monitor = []string{"left", "right"}[i], m
			return s
		}, GroupSettings{Capacity: 1, Clock: c})
		require.NoError(t, err)
		groups[i] = g
	}
	left, right := ask(t, groups[0], 1), ask(t, groups[1], 1)
	require.Equal(t, []*Breaker{left, right}, m.Breakers())
	trip(t, right)
	worst, err := m.State()
	require.NoError(t, err)
	assert.Equal(t, Open, worst)
	require.NoError(t, m.Isolate())
	assert.Equal(t, Isolated, left.State())
	assert.Equal(t, Isolated, right.State())
	require.NoError(t, m.Reset())
	assert.Len(t, heard.all(), 5)

	other := ask(t, groups[0], 2) // drops the first of its group
	assert.Equal(t, []*Breaker{right, other}, m.Breakers())
	groups[1].Delete(1)
	assert.Equal(t, []*Breaker{other}, m.Breakers())
	trip(t, right)
	assert.Len(t, heard.all(), 5, "one that has left is heard no more")
}
