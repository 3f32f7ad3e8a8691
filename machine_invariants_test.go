package breaker

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// lockstep drives two machines through the same random history. The first is asked more than the second: whatever must change
// nothing is done to the first alone, and the two must stay equal to the last counter.
type lockstep struct {
	t             *testing.T
	random        *rand.Rand
	machine, twin machine
	now           time.Duration
	flying        []ticket // admitted and not settled
	forgotten     []ticket // admitted, never to be settled
	window        ringModel
	baseline      ringModel
	to            State // of the last transition
	changes       int
}

func newLockstep(t *testing.T, s Settings, seed uint64) *lockstep {
	require.NoError(t, s.Validate())
	s = Classically(s).WithDefaults()
	l := &lockstep{t: t, random: rand.New(rand.NewPCG(seed, 0)), machine: newMachine(&s), twin: newMachine(&s)}
	if s.judgesRatios() {
		l.window.width = newRing(s.Window).width
	}
	if s.keepsBaseline() {
		l.baseline.width = newRing(s.baselineWindow()).width
	}
	return l
}

// step does one thing to the machine and checks what holds after every operation.
func (l *lockstep) step() {
	before := l.machine
	var change, same *transition
	switch pick(l.random, 40, 40, 16, 2, 1, 1) {
	case 0:
		change, same = l.admit()
	case 1:
		change, same = l.settle()
	case 2:
		l.now += l.gap()
	case 3:
		l.read()
	case 4:
		change, same = l.machine.isolate(l.now), l.twin.isolate(l.now)
	case 5:
		change, same = l.machine.reset(l.now), l.twin.reset(l.now)
		l.window.calls = nil
	}
	require.Equal(l.t, same, change, "the same history gives the same transitions")
	l.checkChange(&before, change)
	l.checkSlots()
	l.checkRings()
}

func (l *lockstep) gap() time.Duration {
	unit := []time.Duration{time.Millisecond, time.Second, 15 * time.Second, time.Minute}[pick(l.random, 60, 30, 8, 2)]
	return time.Duration(l.random.ExpFloat64() * float64(unit))
}

func (l *lockstep) admit() (change, same *transition) {
	now := l.now
	l.restock()
	who := []caller{passing, arriving, first, behind}[pick(l.random, 85, 5, 5, 5)]
	t, ok, change := l.machine.admit(now, who)
	_, twinOK, same := l.twin.admit(now, who)
	require.Equal(l.t, ok, twinOK)
	switch {
	case !ok:
	case l.random.IntN(40) == 0:
		l.forgotten = append(l.forgotten, t)
	default:
		l.flying = append(l.flying, t)
	}
	return change, same
}

// restock gives both machines a new number for the next break.
func (l *lockstep) restock() {
	r := l.random.Float64()
	l.machine.random, l.twin.random = r, r
}

func (l *lockstep) settle() (change, same *transition) {
	if len(l.flying) == 0 {
		return nil, nil
	}
	i := l.random.IntN(len(l.flying))
	t := l.flying[i]
	l.flying = slices.Delete(l.flying, i, i+1)
	o := []Outcome{Success, Transient, Throttled, Permanent, Ignored, givenUp}[pick(l.random, 70, 20, 3, 3, 3, 3)]
	latency := time.Duration(l.random.ExpFloat64() * float64(10*time.Millisecond))
	now := l.now
	l.restock()
	if t.epoch != l.machine.epoch {
		l.settleLate(now, t, o, latency)
		return nil, nil
	}
	wasClosed, slow := l.machine.state == Closed, l.machine.totals.Slow
	counted, change := l.machine.settle(now, &t, o, latency)
	_, same = l.twin.settle(now, &t, o, latency)
	require.True(l.t, counted)
	l.record(wasClosed, o, l.machine.totals.Slow > slow)
	return change, same
}

// settleLate settles a call of an earlier epoch: it changes nothing but one counter.
func (l *lockstep) settleLate(now time.Duration, t ticket, o Outcome, latency time.Duration) {
	counted, change := l.machine.settle(now, &t, o, latency)
	require.False(l.t, counted)
	require.Nil(l.t, change)
	l.twin.totals.Discarded++
	require.Equal(l.t, l.twin, l.machine)
}

// read reads everything, now and in the future: nothing changes.
func (l *lockstep) read() {
	for _, at := range []time.Duration{l.now, l.now + time.Second, l.now + time.Hour} {
		l.machine.snapshot(at)
		l.machine.sinceAt(at)
		l.machine.nextAsk(at)
	}
	require.Equal(l.t, l.twin, l.machine)
}

// record keeps what the rings should hold.
func (l *lockstep) record(wasClosed bool, o Outcome, slow bool) {
	if o == givenUp && slow && wasClosed {
		l.window.add(l.now, false, true)
	}
	if !o.isCall() {
		return
	}
	l.baseline.add(l.now, o == Transient, slow)
	if wasClosed {
		l.window.add(l.now, o == Transient, slow)
	}
}

// checkChange checks what a transition must be, or that there was none.
func (l *lockstep) checkChange(before *machine, change *transition) {
	m := &l.machine
	if change == nil {
		require.Equal(l.t, before.state, m.state)
		require.Equal(l.t, before.epoch, m.epoch)
		require.Equal(l.t, before.since, m.since)
		require.Equal(l.t, before.reason, m.reason)
		return
	}
	l.changes++
	require.Equal(l.t, l.to, change.from, "each From is the To before it")
	require.Equal(l.t, change.to, m.state)
	require.Equal(l.t, before.state, change.from)
	require.Equal(l.t, change.reason, m.reason)
	require.Equal(l.t, []time.Duration{l.now, l.now}, []time.Duration{change.at, m.since})
	if change.to == Open {
		nominal := grown(m.rules.BreakDuration, m.rules.MaxBreakDuration, change.opens)
		require.LessOrEqual(l.t, change.breakFor, nominal)
		require.GreaterOrEqual(l.t, change.breakFor, m.rules.BreakJitter.spread(nominal, 0), "a number was not drawn")
	}
	begins := change.to == Open || change.to == Isolated
	require.Equal(l.t, begins, m.epoch == before.epoch+1, "the epoch grows exactly on entering Open or Isolated")
	require.Equal(l.t, !begins, m.epoch == before.epoch)
	if change.from == Closed && l.window.width > 0 && change.reason != ReasonReset {
		require.Equal(l.t, l.window.read(l.now), withoutStreak(change.counts), "the counts at the decision")
	}
	l.to, l.window.calls = change.to, nil
}

// checkSlots checks that every call in flight holds what it should, and nothing else does.
func (l *lockstep) checkSlots() {
	m := &l.machine
	require.Equal(l.t, m.state == Closed, m.period == nil)
	var probes []uint32
	inFlight := 0
	for _, t := range slices.Concat(l.forgotten, l.flying) {
		if t.epoch == m.epoch && t.slot != noSlot {
			inFlight++
			probes = append(probes, t.slot)
		}
	}
	if m.state == Recovering {
		require.Equal(l.t, inFlight, m.period.inFlight)
	}
	var held []uint32
	if m.period != nil {
		for _, p := range m.period.probes.flying {
			held = append(held, p.number)
		}
	}
	if m.state != HalfOpen {
		require.Empty(l.t, held, "probes in flight while %v", m.state)
		return
	}
	require.ElementsMatch(l.t, probes, held, "every slot comes back")
	if n := m.rules.ProbeCohort; n > 0 {
		require.LessOrEqual(l.t, m.period.counts.Calls+len(held), n)
	} else {
		require.LessOrEqual(l.t, len(held), m.rules.HalfOpenProbes)
	}
}

// checkRings checks that the rings hold what was recorded and nothing older than their windows.
func (l *lockstep) checkRings() {
	g := l.machine.gauges
	if g == nil {
		return
	}
	require.Equal(l.t, l.window.read(l.now), g.window.read(l.now))
	if g.baseline != nil {
		require.Equal(l.t, l.baseline.read(l.now), g.baseline.read(l.now))
	}
}

// The invariants of section 17, after every operation of random histories.
func TestMachineInvariants(t *testing.T) {
	for name, s := range map[string]Settings{
		"default":     {},
		"consecutive": only(func(s *Settings) { s.ConsecutiveFailures = 2 }),
		"probes":      {HalfOpenProbes: 3, ProbeSuccesses: 4, FailureRatio: 0.2, MinCalls: 5, ProbeTimeout: 20 * time.Second},
		"cohort":      {ProbeCohort: 5, FailureRatio: 0.4, MinCalls: 10, SlowCallThreshold: 30 * time.Millisecond},
		"ramp":        {Recovery: Recovery{Fraction: 0.5}, HalfOpenProbes: 2, SlowCallThreshold: 20 * time.Millisecond, MinCalls: 5},
		"cohort and ramp": {
			ProbeCohort: 3, Recovery: Recovery{Fraction: 2}, ProbeTimeout: Disabled, BreakJitter: JitterFull, BreakDuration: time.Second,
		},
		"short windows": {
			Window: time.Second, MinCalls: 3, Failures: Failures{Window: 20 * time.Second, MinSamples: 5},
			SlowCalls: SlowCalls{Window: 10 * time.Second, MinSamples: 5},
		},
		"every setting": {
			Recovery: Recovery{Fraction: 0.5}, Failures: Failures{FalseAlarmEvery: time.Hour, MinSamples: 20},
			SlowCalls: SlowCalls{TailQuantile: 0.75, MinSamples: 5}, MinCalls: 5, HalfOpenProbes: 3,
		},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(3) {
				l := newLockstep(t, s, seed)
				for range 2000 {
					l.step()
				}
				require.Equal(t, l.twin, l.machine)
				require.Greater(t, l.changes, 10, fmt.Sprint("seed ", seed))
			}
		})
	}
}
