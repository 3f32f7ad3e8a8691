package breaker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// hangs holds calls in flight at 100 a second, each until the client gives up on it after a minute, until the circuit opens.
type hangs struct {
	b     *Breaker
	clock *virtualClock
	calls []heldCall // oldest first
}

type heldCall struct {
	permit *Permit
	begun  time.Duration
}

// healthy makes calls of 10 ms for so long.
func (h *hangs) healthy(t *testing.T, length time.Duration) {
	for end := h.clock.now + length; h.clock.now < end; {
		p, err := h.b.TryAcquire(t.Context())
		require.NoError(t, err)
		h.clock.now += 10 * time.Millisecond
		p.Record(Success)
	}
}

// step is 10 ms: a call that is given up, and one that comes.
func (h *hangs) step(t *testing.T) error {
	if len(h.calls) > 0 && h.clock.now-h.calls[0].begun >= time.Minute {
		h.calls[0].permit.Record(Transient)
		h.calls = h.calls[1:]
	}
	p, err := h.b.TryAcquire(t.Context())
	if err == nil {
		h.calls = append(h.calls, heldCall{p, h.clock.now})
	}
	h.clock.now += 10 * time.Millisecond
	return err
}

// reallySlow returns the ratio of slow and overdue calls, worked out from every call.
func (h *hangs) reallySlow() float64 {
	s := h.b.Snapshot()
	overdue := 0
	for _, c := range h.calls {
		if h.clock.now-c.begun > s.SlowThreshold {
			overdue++
		}
	}
	return ratio(s.Counts.Slow+overdue, s.Counts.Calls+overdue)
}

// untilOpen returns how long the hang lasted until the circuit opened.
func (h *hangs) untilOpen(t *testing.T) time.Duration {
	for began := h.clock.now; ; {
		slow, last := h.reallySlow(), h.clock.now
		err := h.step(t)
		if err == nil {
			continue
		}
		var rejected *RejectedError
		require.ErrorAs(t, err, &rejected)
		if rejected.Reason == ReasonOverdueCalls {
			require.GreaterOrEqual(t, slow, 0.5, "never early")
		}
		return last - began
	}
}

func newHangs(t *testing.T, overdue bool, phase time.Duration) *hangs {
	h := &hangs{clock: new(virtualClock)}
	h.b = MustNew(Settings{SlowCalls: SlowCalls{Overdue: overdue}, Clock: h.clock})
	h.clock.now += phase
	h.healthy(t, time.Minute)
	return h
}

// A hang at 100 calls/s with a client time-out of a minute. Wherever in a bucket it begins, the circuit opens before a call
// returns: after SlowCallRatio × Window, and 4 s at the most.
func TestOverdueSeesAHang(t *testing.T) {
	for phase := time.Duration(0); phase < 3*time.Second; phase += 290 * time.Millisecond {
		h := newHangs(t, true, phase)
		after := h.untilOpen(t)
		assert.LessOrEqual(t, after, 19*time.Second, "begun %v into a bucket", phase)
		assert.GreaterOrEqual(t, after, 15*time.Second, "begun %v into a bucket", phase)
		assert.LessOrEqual(t, len(h.calls), 1900, "calls stuck")
	}
	h := newHangs(t, false, 0)
	assert.GreaterOrEqual(t, h.untilOpen(t), time.Minute, "without")
	assert.GreaterOrEqual(t, len(h.calls), 5990, "calls stuck without")
}
