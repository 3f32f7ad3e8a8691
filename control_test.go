package breaker

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A control is one of the four ways to steer a breaker.
type control struct {
	name string
	do   func(*Breaker, context.Context) error
	want State
}

var contextControls = []control{
	{"IsolateContext", (*Breaker).IsolateContext, Isolated},
	{"ResetContext", (*Breaker).ResetContext, Closed},
	{"Monitor.IsolateContext", func(b *Breaker, ctx context.Context) error {
		return b.Settings().Monitor.IsolateContext(ctx)
	}, Isolated},
	{"Monitor.ResetContext", func(b *Breaker, ctx context.Context) error {
		return b.Settings().Monitor.ResetContext(ctx)
	}, Closed},
}

// held is a brittle breaker whose observer is held up on the change into Open, on a goroutine of the bubble.
type held struct {
	breaker *Breaker
	heard   *watchLog
	release chan struct{}
}

func holdUp(t *testing.T) *held {
	h := &held{heard: new(watchLog), release: make(chan struct{})}
	s := brittle(nil)
	s.Monitor = new(Monitor)
	s.OnStateChange = func(ctx context.Context, c StateChange) {
		if c.To == Open {
			<-h.release
		}
		h.heard.add(ctx, c)
	}
	h.breaker = MustNewClassic(s)
	go trip(t, h.breaker)
	synctest.Wait()
	return h
}

func TestControl_ReturnsOnceObserversHaveSeenIt(t *testing.T) {
	for _, c := range contextControls {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := holdUp(t)
				var err error
				var returned atomic.Bool
				go func() {
					err = c.do(h.breaker, t.Context())
					returned.Store(true)
					assert.Equal(t, []State{Open, c.want}, h.heard.states())
				}()
				synctest.Wait()
				assert.False(t, returned.Load(), "the observers have not seen it")
				assert.Equal(t, c.want, h.breaker.State(), "the change itself does not wait")
				close(h.release)
				synctest.Wait()
				assert.True(t, returned.Load())
				assert.NoError(t, err)
			})
		})
	}
}

func TestControl_ContextThatEndsFirst(t *testing.T) {
	for _, c := range contextControls {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := holdUp(t)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				start := time.Now()
				assert.ErrorIs(t, c.do(h.breaker, ctx), context.DeadlineExceeded)
				assert.Equal(t, time.Second, time.Since(start))
				assert.Equal(t, c.want, h.breaker.State())
				close(h.release)
				synctest.Wait()
				assert.Equal(t, []State{Open, c.want}, h.heard.states(), "the event is delivered all the same")
			})
		})
	}
}

func TestControl_ContextAlreadyDone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range contextControls {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := holdUp(t)
				assert.ErrorIs(t, c.do(h.breaker, ctx), context.Canceled, "not delivered yet")
				assert.Equal(t, c.want, h.breaker.State(), "applied all the same")
				close(h.release)
			})
		})
		t.Run(c.name+" with nobody delivering", func(t *testing.T) {
			heard := new(watchLog)
			s := brittle(clock.NewMock())
			s.Monitor, s.OnStateChange = new(Monitor), heard.add
			b := MustNewClassic(s)
			trip(t, b)
			assert.NoError(t, c.do(b, ctx), "delivered before it returned")
			assert.Equal(t, []State{Open, c.want}, heard.states())
		})
	}
}

// Where there is nothing left to change, it still waits for what observers are being told.
func TestControl_WaitsForADeliveryInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release, heard := make(chan struct{}), new(watchLog)
		s := brittle(nil)
		s.OnStateChange = func(ctx context.Context, c StateChange) {
			<-release
			heard.add(ctx, c)
		}
		b := MustNewClassic(s)
		go b.Isolate()
		synctest.Wait()
		returned := make(chan error, 1)
		go func() { returned <- b.IsolateContext(t.Context()) }()
		synctest.Wait()
		require.Empty(t, returned, "the observer has not seen the change")
		close(release)
		require.NoError(t, <-returned)
		require.Equal(t, []State{Isolated}, heard.states())
	})
}

// Waiting inside a callback would be waiting for oneself, or in a circle for each other.
func TestControl_FromInsideACallback(t *testing.T) {
	for _, c := range contextControls {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := holdUp(t)
				s := brittle(nil)
				s.OnStateChange = func(ctx context.Context, change StateChange) {
					start := time.Now()
					assert.NoError(t, c.do(h.breaker, ctx), "of another breaker, which is delivering")
					assert.Zero(t, time.Since(start))
				}
				trip(t, MustNewClassic(s))
				assert.Empty(t, h.heard.all())
				assert.Equal(t, c.want, h.breaker.State())
				close(h.release)
				synctest.Wait()
				assert.Equal(t, []State{Open, c.want}, h.heard.states())
			})
		})
	}
}

// Two breakers whose observers steer each other must not wait for each other.
func TestControl_ObserversThatSteerEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a, b *Breaker
		steer := func(other **Breaker) func(context.Context, StateChange) {
			return func(ctx context.Context, c StateChange) {
				time.Sleep(time.Second)
				if c.To == Open {
					assert.NoError(t, (*other).IsolateContext(ctx))
				}
			}
		}
		s := brittle(nil)
		s.OnStateChange = steer(&b)
		a = MustNewClassic(s)
		s.OnStateChange = steer(&a)
		b = MustNewClassic(s)
		go trip(t, a)
		go trip(t, b)
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, Isolated, a.State())
		assert.Equal(t, Isolated, b.State())
	})
}

func TestControl_WithoutObservers(t *testing.T) {
	mock := clock.NewMock()
	b := MustNewClassic(brittle(mock))
	require.NoError(t, b.IsolateContext(t.Context()))
	assert.Equal(t, Isolated, b.State())
	require.NoError(t, b.ResetContext(t.Context()))
	assert.Equal(t, Closed, b.State())
}

func TestControl_Isolated(t *testing.T) {
	mock := clock.NewMock()
	b := MustNewClassic(brittle(mock))
	trip(t, b)
	mock.Add(3 * time.Second)
	b.Isolate()

	opened, ok := b.OpenedAt()
	assert.True(t, ok)
	assert.Equal(t, mock.Now(), opened, "the time of the isolation")
	_, err := b.TryAcquire(t.Context())
	rejected, _ := errors.AsType[*RejectedError](err)
	require.NotNil(t, rejected)
	assert.Equal(t, Isolated, rejected.State)
	assert.Equal(t, ReasonIsolated, rejected.Reason)
	assert.NoError(t, rejected.Cause, "the failure that opened it before is not why")
	_, ok = rejected.RetryAfter()
	assert.False(t, ok)
	assert.Equal(t, uint64(1), b.Snapshot().Totals.Opens, "isolation is no open")
	mock.Add(1000 * time.Hour)
	assert.Equal(t, Isolated, b.State(), "only Reset leaves it")
}

func TestControl_ResetEndsTheGrowth(t *testing.T) {
	mock := clock.NewMock()
	b := MustNewClassic(brittle(mock))
	trip(t, b)
	mock.Add(10 * time.Second)
	trip(t, b)
	b.Isolate()
	b.Reset()
	trip(t, b)
	wait, _ := b.RetryAfter()
	assert.Equal(t, 10*time.Second, wait)
}

func TestControl_ResetHasNoRampAndKeepsTheBaselines(t *testing.T) {
	mock := clock.NewMock()
	s := brittle(mock)
	s.Recovery = Recovery{Fraction: 1}
	b := MustNewClassic(s)
	for range 20 {
		p, err := b.TryAcquire(t.Context())
		require.NoError(t, err)
		p.RecordLatency(Success, 10*time.Millisecond)
	}
	trip(t, b)
	b.Reset()
	assert.Equal(t, Closed, b.State())
	normal, ok := b.NormalLatency()
	assert.True(t, ok)
	assert.InDelta(t, 10*time.Millisecond, normal, float64(time.Millisecond))
}

func TestControl_Misuse(t *testing.T) {
	var none context.Context
	b := MustNewClassic(brittle(nil))
	bound := new(Monitor)
	s := brittle(nil)
	s.Monitor = bound
	kept := MustNewClassic(s)
	for name, test := range map[string]struct {
		call    func()
		message string
	}{
		"nil context":           {func() { _ = b.IsolateContext(none) }, "breaker: nil context"},
		"nil context, reset":    {func() { _ = b.ResetContext(none) }, "breaker: nil context"},
		"nil context, monitor":  {func() { _ = bound.IsolateContext(none) }, "breaker: nil context"},
		"nil context, unbound":  {func() { _ = new(Monitor).ResetContext(none) }, "breaker: nil context"},
		"nil breaker":           {func() { (*Breaker)(nil).Isolate() }, "breaker: nil *Breaker"},
		"nil breaker, with ctx": {func() { _ = (*Breaker)(nil).ResetContext(t.Context()) }, "breaker: nil *Breaker"},
		"zero breaker":          {new(Breaker).Reset, "breaker: zero Breaker: make it with breaker.New"},
		"nil subscriber":        {func() { bound.Subscribe(nil) }, "breaker: Subscribe of a nil function"},
		"nil function of a group": {func() { _, _ = NewGroup[string](nil, GroupSettings{}) },
			"breaker: NewGroup with a nil settings function"},
	} {
		assert.PanicsWithValue(t, test.message, test.call, name)
	}
	assert.Equal(t, Closed, b.State())
	assert.Equal(t, Closed, kept.State())
}

// Control in a callback waited for ever for itself unless it was given the context of the callback. It returns at once whatever context
// it is given, in every function that the breaker calls on a goroutine of its own, and however deep in it.
func TestRegression_ControlInACallbackWithAnotherContext(t *testing.T) {
	for _, c := range contextControls {
		for name, set := range map[string]func(s *Settings, do func()){
			"OnStateChange": func(s *Settings, do func()) { s.OnStateChange = func(context.Context, StateChange) { do() } },
			"Subscribe":     func(s *Settings, do func()) { s.Monitor.Subscribe(func(context.Context, StateChange) { do() }) },
			"BreakDurationFunc": func(s *Settings, do func()) {
				s.BreakDurationFunc = func(context.Context, StateChange) (time.Duration, error) { do(); return time.Second, nil }
			},
			"Random": func(s *Settings, do func()) { s.BreakJitter, s.Random = JitterFull, func() float64 { do(); return 0 } },
			"OnCallbackError": func(s *Settings, do func()) {
				s.OnStateChange = func(context.Context, StateChange) { panic("boom") }
				s.OnCallbackError = func(context.Context, *CallbackError) { do() }
			},
			"below": func(s *Settings, do func()) { s.OnStateChange = func(context.Context, StateChange) { below(300, do) } },
		} {
			t.Run(c.name+" in "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
					defer cancel()
					var b *Breaker
					done := false
					s := brittle(nil)
					s.Monitor = new(Monitor)
					set(&s, func() {
						if b == nil || done {
							return
						}
						done = true
						assert.NoError(t, c.do(b, ctx))
					})
					b = MustNewClassic(s)
					trip(t, b)
					assert.True(t, done)
					assert.NoError(t, ctx.Err())
					assert.Equal(t, c.want, b.State())
				})
			})
		}
	}
}

// below calls f so many frames further down.
func below(frames int, f func()) {
	if frames == 0 {
		f()
		return
	}
	below(frames-1, f)
}

// A goroutine that a callback starts and waits for is none of ours: it says by the context of the callback that it belongs to it.
func TestControl_OnAGoroutineOfACallback(t *testing.T) {
	for _, c := range contextControls {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var b *Breaker
				s := brittle(nil)
				s.Monitor = new(Monitor)
				s.OnStateChange = func(ctx context.Context, change StateChange) {
					if change.To == Open {
						ctx, cancel := context.WithTimeout(ctx, time.Hour)
						defer cancel()
						aside(func() { assert.NoError(t, c.do(b, ctx)) })
						assert.NoError(t, ctx.Err())
					}
				}
				b = MustNewClassic(s)
				trip(t, b)
				assert.Equal(t, c.want, b.State())
			})
		})
	}
}
