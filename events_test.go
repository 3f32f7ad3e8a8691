package breaker

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEvents_TellOfEachChange(t *testing.T) {
	mock, heard := clock.NewMock(), new(watchLog)
	start := mock.Now()
	s := brittle(mock)
	s.ConsecutiveFailures, s.ProbeSuccesses, s.OnStateChange = 2, 2, heard.add
	s.Recovery = Recovery{Fraction: 0.5}
	b := MustNewClassic(s)

	pass(t, b)
	trip(t, b)
	trip(t, b)
	mock.Add(10 * time.Second)
	trip(t, b)
	mock.Add(20 * time.Second)
	pass(t, b)
	pass(t, b)
	mock.Add(10 * time.Second)
	pass(t, b)
	b.Isolate()
	b.Reset()

	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	want := []StateChange{
		{Name: "db", From: Closed, To: Open, Reason: ReasonConsecutiveFailures, At: at(0), Break: 10 * time.Second, Opens: 1,
			Counts: Counts{Calls: 3, Failures: 2, ConsecutiveFailures: 2}, Err: errDown},
		{Name: "db", From: Open, To: HalfOpen, Reason: ReasonBreakElapsed, At: at(10)},
		{Name: "db", From: HalfOpen, To: Open, Reason: ReasonProbeFailed, At: at(10), Break: 20 * time.Second, Opens: 2,
			Counts: Counts{Calls: 1, Failures: 1, ConsecutiveFailures: 1}, Err: errDown},
		{Name: "db", From: Open, To: HalfOpen, Reason: ReasonBreakElapsed, At: at(30)},
		{Name: "db", From: HalfOpen, To: Recovering, Reason: ReasonProbesSucceeded, At: at(30), Counts: Counts{Calls: 2}},
		{Name: "db", From: Recovering, To: Closed, Reason: ReasonRampCompleted, At: at(40)},
		{Name: "db", From: Closed, To: Isolated, Reason: ReasonIsolated, At: at(40), Counts: Counts{Calls: 1}},
		{Name: "db", From: Isolated, To: Closed, Reason: ReasonReset, At: at(40)},
	}
	require.Equal(t, want, heard.all())
}

func TestEvents_NoneWithoutAChange(t *testing.T) {
	mock, heard := clock.NewMock(), new(watchLog)
	s := brittle(mock)
	s.ConsecutiveFailures, s.OnStateChange = 2, heard.add
	b := MustNewClassic(s)

	trip(t, b)
	b.Reset()
	assert.Empty(t, heard.all(), "a reset of a closed breaker is no change")
	assert.Zero(t, b.Snapshot().Counts, "yet it clears the window and the streak")
	trip(t, b)
	assert.Equal(t, Closed, b.State(), "the streak began again")

	b.Isolate()
	b.Isolate()
	require.NoError(t, b.IsolateContext(t.Context()))
	assert.Equal(t, []State{Isolated}, heard.states())
}

func TestEvents_DeliveredBeforeTheCallReturns(t *testing.T) {
	mock, heard := clock.NewMock(), new(watchLog)
	s := brittle(mock)
	s.OnStateChange = heard.add
	b := MustNewClassic(s)
	steps := []struct {
		name string
		do   func()
		want State
	}{
		{"Execute that fails", func() { trip(t, b) }, Open},
		{"admission of a probe", func() {
			mock.Add(10 * time.Second)
			_, err := b.TryAcquire(t.Context())
			require.NoError(t, err)
		}, HalfOpen},
		{"Isolate", b.Isolate, Isolated},
		{"Reset", b.Reset, Closed},
		{"Permit.Record", func() {
			p, err := b.TryAcquire(t.Context())
			require.NoError(t, err)
			p.Record(Transient)
		}, Open},
	}
	for i, step := range steps {
		step.do()
		assert.Len(t, heard.all(), i+1, step.name)
		assert.Equal(t, step.want, heard.all()[i].To, step.name)
	}
}

func TestEvents_OnStateChangeThenSubscribersInOrder(t *testing.T) {
	var order []string
	note := func(who string) func(context.Context, StateChange) {
		return func(context.Context, StateChange) { order = append(order, who) }
	}
	m := new(Monitor)
	s := brittle(clock.NewMock())
	s.Monitor, s.OnStateChange = m, note("setting")
	b := MustNewClassic(s)
	m.Subscribe(note("first"))
	m.Subscribe(note("second"))
	trip(t, b)
	b.Reset()
	assert.Equal(t, []string{"setting", "first", "second", "setting", "first", "second"}, order)
}

// The goroutine that is delivering delivers the change of another one next; the other does not wait for it.
func TestEvents_OneDelivererAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heard, entered, release := new(watchLog), make(chan bool), make(chan bool)
		s := brittle(nil)
		s.OnStateChange = func(ctx context.Context, c StateChange) {
			if c.To == Open {
				close(entered)
				<-release
			}
			heard.add(ctx, c)
		}
		b := MustNewClassic(s)
		var returned atomic.Bool
		go func() {
			trip(t, b)
			returned.Store(true)
		}()
		<-entered
		b.Isolate()
		b.Reset()
		synctest.Wait()
		assert.Empty(t, heard.all(), "an event overtook the one being delivered")
		assert.False(t, returned.Load())
		close(release)
		synctest.Wait()
		assert.Equal(t, []State{Open, Isolated, Closed}, heard.states())
		assert.True(t, returned.Load())
	})
}

// reentrantCalls are what the first callback of a breaker that opens calls on it, and the states that observers then hear of.
var reentrantCalls = []struct {
	name string
	call func(context.Context, *Breaker)
	want []State
}{
	{"reads", func(_ context.Context, b *Breaker) {
		b.State()
		b.Snapshot()
		b.RetryAfter()
		b.OpenedAt()
	}, []State{Open}},
	{"Execute", func(ctx context.Context, b *Breaker) {
		_ = b.Execute(ctx, func(context.Context) error { return nil })
	}, []State{Open}},
	{"Reset", func(_ context.Context, b *Breaker) { b.Reset() }, []State{Open, Closed}},
	{"Reset and Execute", func(ctx context.Context, b *Breaker) {
		b.Reset()
		_ = b.Execute(ctx, func(context.Context) error { return errDown })
	}, []State{Open, Closed, Open}},
	{"Isolate", func(_ context.Context, b *Breaker) { b.Isolate() }, []State{Open, Isolated}},
	{"IsolateContext and ResetContext", func(ctx context.Context, b *Breaker) {
		_ = b.IsolateContext(ctx)
		_ = b.ResetContext(ctx)
	}, []State{Open, Isolated, Closed}},
	{"control of the monitor", func(ctx context.Context, b *Breaker) {
		_ = b.Settings().Monitor.IsolateContext(ctx)
	}, []State{Open, Isolated}},
}

func TestEvents_CallbackMayCallAnything(t *testing.T) {
	for _, test := range reentrantCalls {
		t.Run(test.name, func(t *testing.T) {
			var b *Breaker
			heard, m, calls := new(watchLog), new(Monitor), 0
			s := brittle(clock.NewMock())
			s.Monitor = m
			s.OnStateChange = func(ctx context.Context, c StateChange) {
				if calls++; calls == 1 {
					before := len(heard.all())
					test.call(ctx, b)
					assert.Len(t, heard.all(), before, "the new change must wait for the end of this one")
				}
			}
			m.Subscribe(heard.add)
			b = MustNewClassic(s)
			trip(t, b)
			assert.Equal(t, test.want, heard.states())
			assert.Equal(t, len(test.want), calls)
		})
	}
}

func TestEvents_ContextHasValuesAndNoCancellation(t *testing.T) {
	type key struct{}
	var got []any
	var errs []error
	mock := clock.NewMock()
	s := brittle(mock)
	s.OnStateChange = func(ctx context.Context, _ StateChange) {
		got = append(got, ctx.Value(key{}))
		errs = append(errs, ctx.Err())
	}
	b := MustNewClassic(s)
	with := func(v string) context.Context { return context.WithValue(context.Background(), key{}, v) }
	ctx, cancel := context.WithDeadlineCause(with("the call"), time.Now().Add(-time.Hour), errors.New("late"))
	defer cancel()

	p, err := b.TryAcquire(with("the admission"))
	require.NoError(t, err)
	p.Done(ctx, errDown)
	mock.Add(10 * time.Second)
	_, err = b.TryAcquire(with("the probe"))
	require.NoError(t, err)
	b.Isolate()
	require.NoError(t, b.ResetContext(with("the operator")))
	p, err = b.TryAcquire(with("nobody"))
	require.NoError(t, err)
	p.Record(Transient)
	assert.Equal(t, []any{"the call", "the probe", nil, "the operator", nil}, got)
	assert.Equal(t, make([]error, 5), errs)
}

// Eight goroutines change the state as fast as they can. Every event must arrive once, in one chain, one at a time.
func TestEvents_ManyGoroutines(t *testing.T) {
	transitions := int64(10_000)
	if testing.Short() {
		transitions = 1_000
	}
	var delivered, inside, overlaps atomic.Int64
	heard, m := new(watchLog), new(Monitor)
	observe := func(ctx context.Context, c StateChange) {
		if inside.Add(1) > 1 {
			overlaps.Add(1)
		}
		heard.add(ctx, c)
		delivered.Add(1)
		inside.Add(-1)
	}
	s := brittle(nil)
	s.Monitor = m
	m.Subscribe(observe)
	b := MustNewClassic(s)

	var workers sync.WaitGroup
	for worker := range 8 {
		workers.Go(func() {
			for i := worker; delivered.Load() < transitions; i++ {
				switch i % 3 {
				case 0:
					b.Isolate()
				case 1:
					b.Reset()
				default:
					_ = b.Execute(t.Context(), func(context.Context) error { return errDown })
				}
			}
		})
	}
	workers.Wait()

	assert.GreaterOrEqual(t, delivered.Load(), transitions)
	assert.Zero(t, overlaps.Load(), "two callbacks at once")
	requireChain(t, b, heard.all())
}

// requireChain requires that the changes lead from Closed to the state of the breaker without a gap or a repetition.
func requireChain(t *testing.T, b *Breaker, changes []StateChange) {
	from, opens := Closed, uint64(0)
	for i, c := range changes {
		require.Equal(t, from, c.From, "event %d does not continue event %d", i, i-1)
		require.NotEqual(t, c.From, c.To, "event %d", i)
		from = c.To
		if c.To == Open {
			opens++
		}
	}
	require.Equal(t, b.State(), from, "the last event is the state")
	require.Equal(t, b.Snapshot().Totals.Opens, opens, "each open told once")
}

func TestEvents_LogValue(t *testing.T) {
	var out bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 {
				return slog.Attr{}
			}
			return a
		},
	}))
	logger.Info("changed", "change", StateChange{
		Name: "db", From: Closed, To: Open, Reason: ReasonFailureRatio, At: time.Unix(0, 0).UTC(), Break: 15 * time.Second,
		Opens: 2, Counts: Counts{Calls: 20, Failures: 10, Slow: 1, ConsecutiveFailures: 3}, Err: errDown,
	})
	logger.Info("changed", "change", StateChange{
		Name: "db", From: Open, To: HalfOpen, Reason: ReasonBreakElapsed, At: time.Unix(15, 0).UTC(),
	})
	assert.Equal(t, "change.name=db change.from=closed change.to=open change.reason=failure-ratio "+
		"change.at=1970-01-01T00:00:00.000Z change.break=15s change.opens=2 change.counts.calls=20 change.counts.failures=10 "+
		"change.counts.slow=1 change.counts.consecutive_failures=3 change.err=down\n"+
		"change.name=db change.from=open change.to=half-open change.reason=break-elapsed "+
		"change.at=1970-01-01T00:00:15.000Z\n", out.String())
}
