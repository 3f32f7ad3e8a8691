package breaker

import (
	"context"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/benbjohnson/clock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// monitored returns so many brittle breakers named by their number, bound to m.
func monitored(m *Monitor, n int, change func(*Settings)) []*Breaker {
	breakers := make([]*Breaker, n)
	for i := range breakers {
		s := brittle(clock.NewMock())
		s.Name, s.Monitor = strconv.Itoa(i), m
		if change != nil {
			change(&s)
		}
		breakers[i] = MustNewClassic(s)
	}
	return breakers
}

func TestMonitor_Unbound(t *testing.T) {
	m := new(Monitor)
	_, err := m.State()
	assert.ErrorIs(t, err, ErrUnbound)
	assert.ErrorIs(t, m.Isolate(), ErrUnbound)
	assert.ErrorIs(t, m.Reset(), ErrUnbound)
	assert.ErrorIs(t, m.IsolateContext(t.Context()), ErrUnbound)
	assert.ErrorIs(t, m.ResetContext(t.Context()), ErrUnbound)
	assert.Empty(t, m.Breakers())
	m.Subscribe(explode)()

	_, err = New(Settings{Monitor: m, FailureRatio: 2})
	require.Error(t, err)
	assert.Empty(t, m.Breakers(), "what New refuses is not bound")
}

func TestMonitor_BreakersInOrderOfBinding(t *testing.T) {
	m := new(Monitor)
	breakers := monitored(m, 20, nil)
	assert.Equal(t, breakers, m.Breakers())
	breakers[3].unbind()
	breakers[3].unbind()
	assert.Equal(t, append(append([]*Breaker(nil), breakers[:3]...), breakers[4:]...), m.Breakers())
}

func TestMonitor_WorstState(t *testing.T) {
	m := new(Monitor)
	b := monitored(m, 4, func(s *Settings) { s.Recovery = Recovery{Fraction: 1} })
	mock := func(i int) *clock.Mock { return b[i].Settings().Clock.(*clock.Mock) }
	for i, step := range []struct {
		do   func()
		want State
	}{
		{func() {}, Closed},
		{func() {
			trip(t, b[0])
			mock(0).Add(10 * time.Second)
			pass(t, b[0])
		}, Recovering},
		{func() {
			trip(t, b[1])
			mock(1).Add(10 * time.Second) // reads half-open
		}, HalfOpen},
		{func() { trip(t, b[2]) }, Open},
		{b[3].Isolate, Isolated},
		{b[3].Reset, Open},
		{b[2].Reset, HalfOpen},
		{b[1].Reset, Recovering},
		{func() { mock(0).Add(10 * time.Second) }, Closed},
	} {
		step.do()
		state, err := m.State()
		require.NoError(t, err, "step %d", i)
		assert.Equal(t, step.want, state, "step %d", i)
	}
}

// All breakers are moved before any observer hears of the first.
func TestMonitor_ControlMovesAllThenTells(t *testing.T) {
	for _, test := range []struct {
		name  string
		do    func(*Monitor) error
		start func(*Breaker)
		want  State
	}{
		{"Isolate", (*Monitor).Isolate, func(*Breaker) {}, Isolated},
		{"Reset", (*Monitor).Reset, (*Breaker).Isolate, Closed},
		{"IsolateContext", func(m *Monitor) error { return m.IsolateContext(t.Context()) }, func(*Breaker) {}, Isolated},
		{"ResetContext", func(m *Monitor) error { return m.ResetContext(t.Context()) }, (*Breaker).Isolate, Closed},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := new(Monitor)
			breakers := monitored(m, 5, nil)
			for _, b := range breakers {
				test.start(b)
			}
			var order []string
			m.Subscribe(func(_ context.Context, c StateChange) {
				order = append(order, c.Name)
				for _, b := range breakers {
					assert.Equal(t, test.want, b.State())
				}
			})
			require.NoError(t, test.do(m))
			assert.Equal(t, []string{"0", "1", "2", "3", "4"}, order)
		})
	}
}

func TestMonitor_BreakersBoundLater(t *testing.T) {
	m, heard := new(Monitor), new(watchLog)
	m.Subscribe(heard.add)
	kept := monitored(m, 1, nil)
	require.NoError(t, m.Isolate())
	later := monitored(m, 1, nil)[0]
	assert.Equal(t, Closed, later.State(), "bound after the control")
	trip(t, later)
	assert.Equal(t, []State{Isolated, Open}, heard.states(), "the subscriber hears of it all the same")
	runtime.KeepAlive(kept)
}

func TestMonitor_Cancel(t *testing.T) {
	m, first, second := new(Monitor), new(watchLog), new(watchLog)
	cancel := m.Subscribe(first.add)
	m.Subscribe(second.add)
	again := m.Subscribe(first.add)
	b := monitored(m, 1, nil)[0]
	b.Isolate()
	assert.Len(t, first.all(), 2, "subscribed twice")
	cancel()
	cancel()
	b.Reset()
	assert.Len(t, first.all(), 3, "each subscription has its own cancel")
	again()
	b.Isolate()
	assert.Len(t, first.all(), 3)
	assert.Len(t, second.all(), 3)
}

// A subscriber may cancel itself and others from inside its call. Those of the same event that have not started do not start.
func TestMonitor_CancelInsideACall(t *testing.T) {
	m, heard, calls := new(Monitor), new(watchLog), 0
	var cancels []func()
	m.Subscribe(func(context.Context, StateChange) {
		calls++
		for _, cancel := range cancels {
			cancel()
		}
	})
	cancels = append(cancels, m.Subscribe(heard.add), m.Subscribe(heard.add))
	b := monitored(m, 1, nil)[0]
	b.Isolate()
	b.Reset()
	assert.Equal(t, 2, calls)
	assert.Empty(t, heard.all())
}

// Cancel does not wait for a call that runs, and no call starts once it has returned.
func TestMonitor_CancelDuringACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, release, calls := new(Monitor), make(chan bool), 0
		cancel := m.Subscribe(func(context.Context, StateChange) {
			calls++
			<-release
		})
		s := brittle(nil)
		s.Monitor = m
		b := MustNewClassic(s)
		go func() {
			b.Isolate()
			b.Reset()
		}()
		synctest.Wait()
		cancel()
		close(release)
		synctest.Wait()
		assert.Equal(t, 1, calls)
		assert.Equal(t, Closed, b.State())
	})
}

// One breaker's event does not wait for another's.
func TestMonitor_TwoBreakersAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, meet := new(Monitor), make(chan bool)
		m.Subscribe(func(_ context.Context, c StateChange) {
			if c.Name == "0" {
				meet <- true
			} else {
				<-meet
			}
		})
		breakers := monitored(m, 2, nil)
		go breakers[0].Isolate()
		breakers[1].Isolate()
		synctest.Wait()
	})
}

// collect runs the garbage collector until the object is gone.
func collect[T any](t *testing.T, p weak.Pointer[T]) {
	t.Helper()
	for range 10 {
		runtime.GC()
		if p.Value() == nil {
			return
		}
	}
	require.Fail(t, "something keeps it alive")
}

func TestMonitor_HoldsWeakly(t *testing.T) {
	m := new(Monitor)
	kept := monitored(m, 2, nil)
	gone := func() weak.Pointer[Breaker] {
		b := monitored(m, 1, nil)[0]
		b.Isolate()
		b.Reset()
		b.Isolate()
		return weak.Make(b)
	}()
	collect(t, gone)
	assert.Equal(t, kept, m.Breakers())
	state, err := m.State()
	require.NoError(t, err)
	assert.Equal(t, Closed, state, "the isolated one is gone")
	runtime.KeepAlive(kept)
	kept = nil
	runtime.GC()
	runtime.GC()
	_, err = m.State()
	assert.ErrorIs(t, err, ErrUnbound)
}

// The places of breakers that are gone are used again: a monitor of short-lived breakers does not grow.
func TestMonitor_ForgetsTheDead(t *testing.T) {
	m := new(Monitor)
	for range 100 {
		monitored(m, 100, nil)
		runtime.GC()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	assert.Less(t, m.bound.Len(), 1000)
	assert.Equal(t, m.bound.Len(), len(m.places))
}

// A breaker keeps its monitor, not the other way round; a subscriber is kept by the monitor alone.
func TestMonitor_BreakerKeepsItsMonitor(t *testing.T) {
	heard := new(watchLog)
	b := func() *Breaker {
		m := new(Monitor)
		m.Subscribe(heard.add)
		return monitored(m, 1, nil)[0]
	}()
	runtime.GC()
	trip(t, b)
	assert.Equal(t, []State{Open}, heard.states())
}

// Everything at once, for the race detector.
func TestMonitor_Concurrent(t *testing.T) {
	m := new(Monitor)
	breakers := monitored(m, 4, func(s *Settings) { s.Clock = nil })
	var all sync.WaitGroup
	for _, b := range breakers {
		all.Go(func() {
			for range 50 {
				_ = b.Execute(t.Context(), func(context.Context) error { return errDown })
				_ = m.ResetContext(t.Context())
			}
		})
	}
	all.Go(func() {
		for range 50 {
			cancel := m.Subscribe(new(watchLog).add)
			monitored(m, 1, nil)
			_, _ = m.State()
			_ = m.Isolate()
			cancel()
		}
	})
	all.Wait()
	require.NoError(t, m.Reset())
	for _, b := range breakers {
		assert.Equal(t, Closed, b.State())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	assert.Empty(t, m.subscribers)
}

func BenchmarkMonitor(b *testing.B) {
	m := new(Monitor)
	breakers := monitored(m, 1000, func(s *Settings) { s.Clock = nil })
	b.Run("State of 1000", func(b *testing.B) {
		for b.Loop() {
			_, _ = m.State()
		}
	})
	b.Run("Isolate and Reset of 1000", func(b *testing.B) {
		for b.Loop() {
			_ = m.Isolate()
			_ = m.Reset()
		}
	})
	m.Subscribe(func(context.Context, StateChange) {})
	b.Run("Isolate and Reset of 1000 with a subscriber", func(b *testing.B) {
		for b.Loop() {
			_ = m.Isolate()
			_ = m.Reset()
		}
	})
	runtime.KeepAlive(breakers)
}

// Names are labels: two breakers of one name are two, each of them watched, shown and steered.
func TestMonitor_KeepsBreakersOfOneName(t *testing.T) {
	m, heard := new(Monitor), new(watchLog)
	m.Subscribe(heard.add)
	s := brittle(nil)
	s.Monitor = m
	left, right := MustNewClassic(s), MustNewClassic(s)
	assert.Equal(t, []*Breaker{left, right}, m.Breakers())
	trip(t, right)
	worst, err := m.State()
	require.NoError(t, err)
	assert.Equal(t, Open, worst)
	require.NoError(t, m.Isolate())
	assert.Equal(t, Isolated, left.State())
	assert.Equal(t, Isolated, right.State())
	assert.Len(t, heard.all(), 3)
}
