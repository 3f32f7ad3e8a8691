package breaker

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

var errDown = errors.New("down")

// watchLog is an observer that keeps what it hears.
type watchLog struct {
	mu      sync.Mutex
	changes []StateChange
}

func (l *watchLog) add(_ context.Context, c StateChange) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changes = append(l.changes, c)
}

func (l *watchLog) all() []StateChange {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]StateChange(nil), l.changes...)
}

// states returns where each change went.
func (l *watchLog) states() (to []State) {
	for _, c := range l.all() {
		to = append(to, c.To)
	}
	return to
}

// faultLog keeps what OnCallbackError hears.
type faultLog struct {
	mu     sync.Mutex
	faults []*CallbackError
}

func (l *faultLog) add(_ context.Context, e *CallbackError) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults = append(l.faults, e)
}

func (l *faultLog) all() []*CallbackError {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]*CallbackError(nil), l.faults...)
}

// brittle are settings that open on one failure for exactly ten seconds and close after one good probe.
func brittle(c Clock) Settings {
	return Settings{
		Name: "db", ConsecutiveFailures: 1, BreakDuration: 10 * time.Second, BreakJitter: JitterNone, ProbeSuccesses: 1, Clock: c,
	}
}

// trip makes a call fail, which opens a brittle breaker.
func trip(t testing.TB, b *Breaker) {
	t.Helper()
	require.ErrorIs(t, b.Execute(context.Background(), func(context.Context) error { return errDown }), errDown)
}

// pass makes a call succeed.
func pass(t testing.TB, b *Breaker) {
	t.Helper()
	require.NoError(t, b.Execute(context.Background(), func(context.Context) error { return nil }))
}

// admission is what a caller that waits on its own goroutine got in the end.
type admission struct {
	permit *Permit
	err    error
	after  time.Duration // since it came
	done   atomic.Bool
}

// acquireLater calls Acquire on a goroutine of the bubble and returns once it waits, or has its answer.
func acquireLater(ctx context.Context, b *Breaker) *admission {
	a, start := new(admission), time.Now()
	go func() {
		a.permit, a.err = b.Acquire(ctx)
		a.after = time.Since(start)
		a.done.Store(true)
	}()
	synctest.Wait()
	return a
}

// waiting reports whether the caller still waits.
func (a *admission) waiting() bool {
	synctest.Wait()
	return !a.done.Load()
}

// pastBreak sleeps in the bubble until the break of an open breaker has just ended, and whoever waited has been served.
func pastBreak(t testing.TB, b *Breaker) {
	t.Helper()
	wait, ok := b.RetryAfter()
	require.True(t, ok, "the breaker is %v", b.State())
	time.Sleep(wait)
	synctest.Wait()
}

// Classically returns settings with the rules of Classic where they leave the choice, and everything else as it is.
func Classically(s Settings) Settings {
	setDefault(&s.Failures.FalseAlarmEvery, Disabled)
	setDefault(&s.SlowCalls.FalseAlarmEvery, Disabled)
	s.SlowCalls.EndedOnly = true
	if s.BreakDuration == 0 {
		s.BreakDuration = 15 * time.Second
		if s.MaxBreakDuration > 0 {
			s.BreakDuration = min(s.BreakDuration, s.MaxBreakDuration)
		}
	}
	if s.ProbeTimeout == 0 {
		s.ProbeTimeout = s.WithDefaults().MaxBreakDuration
	}
	if s.Recovery == (Recovery{}) {
		s.Recovery.Off = true
	}
	return s
}

// MustNewClassic is MustNew of classic settings.
func MustNewClassic(s Settings) *Breaker { return MustNew(Classically(s)) }

// seeingOverdue is Classically, with calls in flight counted as well.
func seeingOverdue(s Settings) Settings {
	s = Classically(s)
	s.SlowCalls.EndedOnly = false
	return s
}

// requireFlying checks how many calls the flights hold.
func requireFlying(t testing.TB, f *flights, calls uint32) {
	t.Helper()
	for i := range f.begun {
		calls -= f.begun[i].Load() - f.ended[i]
	}
	require.Zero(t, calls, "calls in flight")
}
