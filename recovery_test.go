package breaker

import (
	"context"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/stretchr/testify/require"
)

// experiment is the reference experiment of a dependency that comes back cold: it has little capacity at first, regains it
// while it is used gently, and loses it again when it is overrun.
type experiment struct {
	breaker  *Breaker
	clock    *clock.Mock
	capacity float64
}

// run returns the successes from the moment the dependency comes back.
func (e *experiment) run(t *testing.T) (successes int) {
	const stepLength = 100 * time.Millisecond
	for range 30 {
		for range 2 {
			e.record(t, Success, 10*time.Millisecond)
		}
		e.clock.Add(stepLength)
	}
	e.capacity = 20
	for step := range 600 {
		down := step >= 100 && step < 150
		switch {
		case down:
			e.capacity = 0
		case step == 150:
			e.capacity = 1
		}
		n := e.step(t)
		if step >= 150 {
			successes += n
		}
		if down {
			e.capacity = 0
		}
		e.clock.Add(stepLength)
	}
	return successes
}

// step offers 20 calls at once and returns how many succeed.
func (e *experiment) step(t *testing.T) (successes int) {
	limit := max(e.capacity, 1)
	admitted := 0
	for range 20 {
		p, err := e.breaker.TryAcquire(t.Context())
		if err != nil {
			require.ErrorIs(t, err, ErrRejected)
			continue
		}
		admitted++
		latency := time.Duration(float64(10*time.Millisecond) * 20 / limit)
		switch k := float64(admitted); {
		case k > 3*limit:
			p.RecordLatency(Transient, 10*time.Millisecond)
			continue
		case k > limit:
			latency = time.Duration(float64(latency) * k / limit)
		}
		p.RecordLatency(Success, latency)
		successes++
	}
	switch {
	case admitted > 2*max(int(e.capacity), 1):
		e.capacity = max(1, e.capacity-1)
	case admitted == 0:
		e.capacity = min(20, e.capacity+0.05)
	default:
		e.capacity = min(20, e.capacity+0.2)
	}
	return successes
}

func (e *experiment) record(t *testing.T, o Outcome, latency time.Duration) {
	p, err := e.breaker.TryAcquire(t.Context())
	require.NoError(t, err)
	p.RecordLatency(o, latency)
}

func TestReferenceExperiment(t *testing.T) {
	for _, test := range []struct {
		name     string
		recovery Recovery
		want     int
	}{
		{"ramp", Recovery{Fraction: 0.25}, 8250},
		{"cliff", Recovery{}, 3002},
	} {
		t.Run(test.name, func(t *testing.T) {
			mock := clock.NewMock()
			b := MustNew(Settings{BreakDuration: 5 * time.Second, BreakJitter: JitterNone, Recovery: test.recovery, Clock: mock})
			e := experiment{breaker: b, clock: mock}
			require.Equal(t, test.want, e.run(t))
		})
	}
}

var _ = context.Background
