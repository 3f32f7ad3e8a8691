package breaker

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func execute(ctx context.Context, b *Breaker) error {
	return b.Execute(ctx, func(context.Context) error { return nil })
}

func executeValue(ctx context.Context, b *Breaker) error {
	_, err := Execute(ctx, b, func(context.Context) (int, error) { return 1, nil })
	return err
}

func acquire(ctx context.Context, b *Breaker) error {
	_, err := b.Acquire(ctx)
	return err
}

func tryAcquire(ctx context.Context, b *Breaker) error {
	_, err := b.TryAcquire(ctx)
	return err
}

func TestRejectionDelay(t *testing.T) {
	for _, test := range []struct {
		name     string
		whenOpen WhenOpen
		refuse   func(*Breaker)
		do       func(context.Context, *Breaker) error
		want     time.Duration
	}{
		{"Breaker.Execute", Reject, func(b *Breaker) { trip(t, b) }, execute, 2 * time.Second},
		{"Breaker.Execute, isolated", Reject, (*Breaker).Isolate, execute, 2 * time.Second},
		{"Execute", Reject, func(b *Breaker) { trip(t, b) }, executeValue, 2 * time.Second},
		{"TryAcquire", Reject, func(b *Breaker) { trip(t, b) }, tryAcquire, 0},
		{"TryAcquire, isolated", Wait, (*Breaker).Isolate, tryAcquire, 0},
		{"after a wait", Wait, func(b *Breaker) { trip(t, b) }, execute, 3 * time.Second},
		{"Acquire", Reject, func(b *Breaker) { trip(t, b) }, acquire, 3 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := brittle(nil)
				s.RejectionDelay, s.WhenOpen, s.MaxWait = 2*time.Second, test.whenOpen, 3*time.Second
				b := MustNewClassic(s)
				start := time.Now()
				pass(t, b)
				test.refuse(b)
				assert.Zero(t, time.Since(start), "only a refusal is delayed")
				err := test.do(t.Context(), b)
				assert.ErrorIs(t, err, ErrRejected)
				assert.Equal(t, test.want, time.Since(start))
				assert.Equal(t, uint64(1), b.Snapshot().Totals.Rejected)
			})
		})
	}
}

func TestRejectionDelay_EndedByTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := brittle(nil)
		s.RejectionDelay = time.Hour
		b := MustNewClassic(s)
		trip(t, b)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		err := b.Execute(ctx, func(context.Context) error { return nil })
		assert.Equal(t, time.Second, time.Since(start))
		assert.ErrorIs(t, err, ErrRejected, "the refusal is still what is returned")
		assert.NotErrorIs(t, err, context.DeadlineExceeded)
	})
}

// A dry run admits every call in every state, at once, and goes through all its states.
func TestObserveOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heard := new(watchLog)
		s := brittle(nil)
		s.ObserveOnly, s.WhenOpen, s.RejectionDelay, s.OnStateChange = true, Wait, time.Hour, heard.add
		b := MustNewClassic(s)
		start := time.Now()
		calls := func() {
			t.Helper()
			ran := false
			require.NoError(t, b.Execute(t.Context(), func(context.Context) error { ran = true; return nil }))
			assert.True(t, ran)
			p, err := b.TryAcquire(t.Context())
			require.NoError(t, err)
			assert.False(t, p.IsProbe())
			assert.False(t, p.Record(Transient), "its outcome is not sampled")
			p, err = b.Acquire(t.Context())
			require.NoError(t, err)
			assert.False(t, p.Record(Success))
		}
		trip(t, b)
		calls()
		assert.Equal(t, Totals{Transient: 1, Opens: 1, Rejected: 3}, b.Snapshot().Totals)
		assert.Equal(t, Open, b.State())
		b.Isolate()
		calls()
		assert.Equal(t, Totals{Transient: 1, Opens: 1, Rejected: 6}, b.Snapshot().Totals)
		assert.Zero(t, time.Since(start), "nobody waits and nobody is delayed")

		b.Reset()
		trip(t, b)
		time.Sleep(10 * time.Second)
		probe, err := b.TryAcquire(t.Context())
		require.NoError(t, err)
		assert.True(t, probe.IsProbe())
		calls() // beside the probe, whose slot is taken
		assert.True(t, probe.Record(Success))
		assert.Equal(t, Closed, b.State())
		assert.Equal(t, []State{Open, Isolated, Closed, Open, HalfOpen, Closed}, heard.states())
		assert.Equal(t, Totals{Successes: 1, Transient: 2, Opens: 2, Rejected: 9}, b.Snapshot().Totals)
	})
}

func TestObserveOnly_RampAdmitsAll(t *testing.T) {
	mock := clock.NewMock()
	s := brittle(mock)
	s.ObserveOnly, s.Recovery = true, Recovery{Fraction: 1, Initial: 0.25}
	b := MustNewClassic(s)
	trip(t, b)
	mock.Add(10 * time.Second)
	pass(t, b)
	require.Equal(t, Recovering, b.State())
	counted := 0
	for range 8 {
		p, err := b.TryAcquire(t.Context())
		require.NoError(t, err)
		if p.Record(Success) {
			counted++
		}
	}
	assert.Equal(t, 2, counted, "those that a real breaker would have admitted")
	assert.Equal(t, uint64(6), b.Snapshot().Totals.Rejected)
}
