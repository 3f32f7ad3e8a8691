package breaker

import (
	"context"
	"errors"
	"math"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// dictate is a BreakDurationFunc that always gives one answer.
func dictate(d time.Duration) func(context.Context, StateChange) (time.Duration, error) {
	return func(context.Context, StateChange) (time.Duration, error) { return d, nil }
}

func TestBreakDuration_StandsAsItIs(t *testing.T) {
	for _, test := range []struct {
		name   string
		answer time.Duration
	}{
		{"longer", 90 * time.Second},
		{"beyond the cap", time.Hour},
		{"shorter", time.Second},
		{"shortest", 1},
		{"longest", math.MaxInt64 / 4},
	} {
		t.Run(test.name, func(t *testing.T) {
			mock, heard := clock.NewMock(), new(watchLog)
			s := brittle(mock)
			s.BreakJitter, s.OnStateChange, s.BreakDurationFunc = JitterFull, heard.add, dictate(test.answer)
			b := MustNewClassic(s)
			trip(t, b)
			require.Len(t, heard.all(), 1)
			assert.Equal(t, test.answer, heard.all()[0].Break, "observers hear of the break that is served")
			wait, ok := b.RetryAfter()
			assert.True(t, ok)
			assert.Equal(t, test.answer, wait)
			err := b.Execute(t.Context(), func(context.Context) error { return nil })
			require.ErrorIs(t, err, ErrRejected)
			rejected, _ := errors.AsType[*RejectedError](err)
			wait, ok = rejected.RetryAfter()
			assert.True(t, ok)
			assert.Equal(t, test.answer, wait, "and so does whoever is refused")
		})
	}
}

func TestBreakDuration_Boundary(t *testing.T) {
	mock := clock.NewMock()
	s := brittle(mock)
	s.BreakDurationFunc = dictate(30 * time.Second)
	b := MustNewClassic(s)
	trip(t, b)
	mock.Add(30*time.Second - 1)
	_, err := b.TryAcquire(t.Context())
	assert.ErrorIs(t, err, ErrRejected)
	mock.Add(1)
	_, err = b.TryAcquire(t.Context())
	assert.NoError(t, err)
}

// Callers that the default clock lets be refused without the lock must hear of the new end as well.
func TestBreakDuration_RefusalWithoutTheLock(t *testing.T) {
	for _, answer := range []time.Duration{time.Second, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			s := brittle(nil)
			s.BreakDurationFunc = dictate(answer)
			b := MustNewClassic(s)
			trip(t, b)
			time.Sleep(answer - 1)
			_, err := b.TryAcquire(t.Context())
			assert.ErrorIs(t, err, ErrRejected)
			time.Sleep(time.Nanosecond)
			_, err = b.TryAcquire(t.Context())
			assert.NoError(t, err)
		})
	}
}

// The circuit guards the dependency while the function is asked: it is open already, for the break it would serve anyway.
func TestBreakDuration_CircuitIsOpenMeanwhile(t *testing.T) {
	mock, heard := clock.NewMock(), new(watchLog)
	var b *Breaker
	s := brittle(mock)
	s.OnStateChange = heard.add
	s.BreakDurationFunc = func(_ context.Context, c StateChange) (time.Duration, error) {
		assert.Empty(t, heard.all(), "asked before any observer")
		assert.Equal(t, StateChange{
			Name: "db", From: Closed, To: Open, Reason: ReasonConsecutiveFailures, At: mock.Now(), Break: 10 * time.Second,
			Opens: 1, Counts: Counts{Calls: 1, Failures: 1, ConsecutiveFailures: 1}, Err: errDown,
		}, c)
		assert.Equal(t, Open, b.State())
		wait, _ := b.RetryAfter()
		assert.Equal(t, 10*time.Second, wait)
		_, err := b.TryAcquire(t.Context())
		assert.ErrorIs(t, err, ErrRejected)
		mock.Add(4 * time.Second)
		return 6 * time.Second, nil
	}
	b = MustNewClassic(s)
	trip(t, b)
	wait, _ := b.RetryAfter()
	assert.Equal(t, 2*time.Second, wait, "the answer counts from the moment of opening")
	require.Len(t, heard.all(), 1)
	assert.Equal(t, 6*time.Second, heard.all()[0].Break)
}

func TestBreakDuration_AnswerThatHasElapsedAlready(t *testing.T) {
	mock := clock.NewMock()
	s := brittle(mock)
	s.BreakDurationFunc = func(context.Context, StateChange) (time.Duration, error) {
		mock.Add(5 * time.Second)
		return 3 * time.Second, nil
	}
	b := MustNewClassic(s)
	trip(t, b)
	assert.Equal(t, HalfOpen, b.State())
	assert.Equal(t, mock.Now().Add(-2*time.Second), b.Snapshot().Since)
}

func TestBreakDuration_OncePerOpenAndGrowthGoesOn(t *testing.T) {
	mock := clock.NewMock()
	var asked []StateChange
	s := brittle(mock)
	s.BreakDurationFunc = func(_ context.Context, c StateChange) (time.Duration, error) {
		asked = append(asked, c)
		return time.Minute, nil
	}
	b := MustNewClassic(s)
	trip(t, b)
	mock.Add(time.Minute)
	trip(t, b)
	mock.Add(time.Minute)
	trip(t, b)
	mock.Add(time.Minute)
	pass(t, b)
	b.Isolate()
	b.Reset()
	trip(t, b)
	var breaks []time.Duration
	var opens []int
	for _, c := range asked {
		breaks, opens = append(breaks, c.Break), append(opens, c.Opens)
	}
	assert.Equal(t, []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, 10 * time.Second}, breaks)
	assert.Equal(t, []int{1, 2, 3, 1}, opens)
}

func TestBreakDuration_RampLengthFollowsTheBreakServed(t *testing.T) {
	mock := clock.NewMock()
	s := brittle(mock)
	s.Recovery, s.BreakDurationFunc = Recovery{Fraction: 0.5}, dictate(40*time.Second)
	b := MustNewClassic(s)
	trip(t, b)
	mock.Add(40 * time.Second)
	pass(t, b)
	mock.Add(20*time.Second - 1)
	assert.Equal(t, Recovering, b.State())
	mock.Add(1)
	assert.Equal(t, Closed, b.State())
}

func TestBreakDuration_TooLate(t *testing.T) {
	for _, test := range []struct {
		name string
		meet func(b *Breaker, mock *clock.Mock)
		want State
	}{
		{"reset", func(b *Breaker, _ *clock.Mock) { b.Reset() }, Closed},
		{"isolated", func(b *Breaker, _ *clock.Mock) { b.Isolate() }, Isolated},
		{"break over", func(_ *Breaker, mock *clock.Mock) { mock.Add(10 * time.Second) }, HalfOpen},
		{"probe admitted", func(b *Breaker, mock *clock.Mock) {
			mock.Add(10 * time.Second)
			_, _ = b.TryAcquire(context.Background())
		}, HalfOpen},
	} {
		t.Run(test.name, func(t *testing.T) {
			mock, heard, faults := clock.NewMock(), new(watchLog), new(faultLog)
			var b *Breaker
			s := brittle(mock)
			s.OnStateChange, s.OnCallbackError = heard.add, faults.add
			s.BreakDurationFunc = func(context.Context, StateChange) (time.Duration, error) {
				test.meet(b, mock)
				return time.Hour, nil
			}
			b = MustNewClassic(s)
			trip(t, b)
			assert.Equal(t, test.want, b.State())
			assert.Equal(t, 10*time.Second, heard.all()[0].Break, "the computed break stands in the event")
			assert.Empty(t, faults.all())
		})
	}
}

// The answer for one open must not land in the next one, though that has begun while the function ran.
func TestBreakDuration_AnswerOfAnEarlierOpen(t *testing.T) {
	mock, heard := clock.NewMock(), new(watchLog)
	var b *Breaker
	s := brittle(mock)
	s.OnStateChange = heard.add
	s.BreakDurationFunc = func(_ context.Context, c StateChange) (time.Duration, error) {
		if c.Opens == 1 {
			mock.Add(10 * time.Second)
			trip(t, b)
			return time.Hour, nil
		}
		return 33 * time.Second, nil
	}
	b = MustNewClassic(s)
	trip(t, b)
	wait, _ := b.RetryAfter()
	assert.Equal(t, 33*time.Second, wait)
	require.Equal(t, []State{Open, HalfOpen, Open}, heard.states())
	assert.Equal(t, 10*time.Second, heard.all()[0].Break)
	assert.Equal(t, 33*time.Second, heard.all()[2].Break)
}

// An open can be over before its event is delivered. Asking for it then would give its break to another open, or to none.
func TestBreakDuration_NotAskedForAnOpenThatIsOver(t *testing.T) {
	for name, test := range map[string]struct {
		meanwhile func(*testing.T, *Breaker, *clock.Mock) // after a first open, whose event is not delivered yet
		asked     int
		heard     []State
	}{
		"closed": {func(_ *testing.T, b *Breaker, _ *clock.Mock) { b.Reset() }, 0, []State{Isolated, Closed, Open, Closed}},
		"elapsed": {func(_ *testing.T, _ *Breaker, c *clock.Mock) { c.Add(10 * time.Second) }, 0,
			[]State{Isolated, Closed, Open}},
		"open anew": {func(t *testing.T, b *Breaker, _ *clock.Mock) { b.Reset(); trip(t, b) }, 1,
			[]State{Isolated, Closed, Open, Closed, Open}},
	} {
		t.Run(name, func(t *testing.T) {
			heard, asked := new(watchLog), 0
			var b *Breaker
			c := clock.NewMock()
			s := brittle(c)
			s.OnStateChange = func(ctx context.Context, change StateChange) {
				if heard.add(ctx, change); change.To == Isolated {
					b.Reset()
					trip(t, b)
					test.meanwhile(t, b, c)
				}
			}
			s.BreakDurationFunc = func(context.Context, StateChange) (time.Duration, error) {
				asked++
				return time.Minute, nil
			}
			b = MustNewClassic(s)
			b.Isolate()
			assert.Equal(t, test.heard, heard.states())
			assert.Equal(t, test.asked, asked)
		})
	}
}

func TestBreakDuration_Fails(t *testing.T) {
	failed := errors.New("no hint")
	for _, test := range []struct {
		name    string
		f       func() (time.Duration, error)
		message string
		err     error
		value   any
	}{
		{"error", func() (time.Duration, error) { return time.Hour, failed }, ": no hint", failed, nil},
		{"panic", func() (time.Duration, error) { panic("boom") }, " panicked: boom", nil, "boom"},
		{"Goexit", func() (time.Duration, error) { runtime.Goexit(); return 0, nil }, ": called runtime.Goexit", errGoexit, nil},
		{"zero", func() (time.Duration, error) { return 0, nil }, ": returned a break of 0s: must be positive", nil, nil},
		{"negative", func() (time.Duration, error) { return -time.Second, nil }, ": returned a break of -1s: must be positive",
			nil, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			heard, faults := new(watchLog), new(faultLog)
			s := brittle(clock.NewMock())
			s.OnStateChange, s.OnCallbackError = heard.add, faults.add
			s.BreakDurationFunc = func(context.Context, StateChange) (time.Duration, error) { return test.f() }
			b := MustNewClassic(s)
			trip(t, b)
			wait, _ := b.RetryAfter()
			assert.Equal(t, 10*time.Second, wait, "the computed break stands")
			assert.Equal(t, []State{Open}, heard.states())
			assert.Equal(t, 10*time.Second, heard.all()[0].Break)
			require.Len(t, faults.all(), 1)
			fault := faults.all()[0]
			assert.Equal(t, `breaker: "db": BreakDurationFunc`+test.message, fault.Error())
			assert.Equal(t, test.value, fault.Panic)
			assert.Equal(t, test.value != nil, fault.Stack != nil)
			if test.err != nil {
				assert.ErrorIs(t, fault, test.err)
			}
		})
	}
}

func TestBreakDuration_Context(t *testing.T) {
	type key struct{}
	var got any
	var ended error
	s := brittle(clock.NewMock())
	s.BreakDurationFunc = func(ctx context.Context, _ StateChange) (time.Duration, error) {
		got, ended = ctx.Value(key{}), ctx.Err()
		return time.Second, nil
	}
	b := MustNewClassic(s)
	p, err := b.TryAcquire(t.Context())
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), key{}, "the call"), -1)
	defer cancel()
	p.Done(ctx, errDown)
	assert.Equal(t, "the call", got)
	assert.NoError(t, ended)
}
