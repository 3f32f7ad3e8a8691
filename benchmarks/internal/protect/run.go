package protect

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/brownout-go/breaker/benchmarks/internal/entry"
)

// Load is who calls.
type Load struct {
	PerSecond float64       // calls a second of each process, at random: exponential gaps
	Processes int           // 0: 1. Each has a breaker of its own; they share the dependency
	Callers   int           // instead of PerSecond: so many, each of which makes its next call when the last has ended
	Think     time.Duration // what such a caller waits in between
	Timeout   time.Duration // after which the client gives up on a call; 0: never
	Cancelled float64       // fraction of calls that their caller gives up on before they end
	Every     time.Duration // instead of PerSecond: one call after each such time, exactly
	Hurried   float64       // fraction of calls that have a deadline of their own, evenly spread up to Budget
	Budget    time.Duration
}

// gap is the time to the next call of an open loop.
func (l Load) gap(r *rand.Rand) time.Duration {
	if l.Every > 0 {
		return l.Every
	}
	return time.Duration(r.ExpFloat64() / l.PerSecond * float64(time.Second))
}

// patience is how long a caller waits; 0: for ever.
type patience struct {
	cancels  time.Duration // then it gives up
	deadline time.Duration // which its context has
}

// drained is how long a run goes on without load at its end, so that every timer of a library has ended. Some libraries give up
// on a call that goes on, so it goes on until the dependency is idle as well.
const drained = 5 * time.Minute

// begin is when every run starts. A bubble starts at the beginning of 2000, before the process was started, and go-zero
// takes a time before the start of its process for none at all.
var begin = time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC)

// Run drives the entry through the scenario and returns what happened. It must be called in a bubble of testing/synctest.
func (s Scenario) Run(e entry.Entry, seed uint64) *Record {
	time.Sleep(time.Until(begin))
	r := &run{scenario: s, server: newServer(s.Dependency), record: newRecord(s, e.Sheds)}
	var processes []*process
	for i := range max(1, s.Load.Processes) {
		time.Sleep(time.Microsecond) // some libraries seed their random numbers with the time
		processes = append(processes, &process{run: r, guard: r.guard(e, seed+uint64(i))})
	}
	r.server.began = time.Now()
	for i, p := range processes {
		p.start(rand.New(rand.NewPCG(seed, uint64(i))))
	}
	r.load.Wait()
	for time.Sleep(drained); r.server.busy(); {
		time.Sleep(drained)
	}
	synctest.Wait()
	for _, p := range processes {
		if c, ok := p.guard.(interface{ Close() }); ok {
			c.Close()
		}
	}
	r.record.Peak = r.server.peak
	return r.record
}

// run is one entry in one scenario.
type run struct {
	scenario Scenario
	server   *server
	record   *Record
	load     sync.WaitGroup // whatever makes or waits for calls
}

func (r *run) guard(e entry.Entry, seed uint64) entry.Guard {
	if e.New == nil {
		return oracle{r.server}
	}
	return e.New(seed)
}

// process is one client process with its breaker.
type process struct {
	*run
	guard entry.Guard

	mu    sync.Mutex  // protects the following field
	state entry.State // when last looked at
}

func (p *process) start(r *rand.Rand) {
	if p.scenario.Load.Callers == 0 {
		p.load.Go(func() { p.openLoop(r) })
		return
	}
	for range p.scenario.Load.Callers {
		seed1, seed2 := r.Uint64(), r.Uint64()
		p.load.Go(func() { p.closedLoop(rand.New(rand.NewPCG(seed1, seed2))) })
	}
}

// openLoop makes calls at their own times, however long they take.
func (p *process) openLoop(r *rand.Rand) {
	for {
		time.Sleep(p.scenario.Load.gap(r))
		time.Sleep(p.server.thaw(p.server.now()))
		at := p.server.now()
		if at >= p.scenario.Length {
			return
		}
		plan, patience := p.draw(r, at)
		p.load.Go(func() { p.call(at, plan, patience) })
	}
}

// closedLoop makes one call after the other.
func (p *process) closedLoop(r *rand.Rand) {
	time.Sleep(time.Duration(r.Float64() * float64(p.scenario.Load.Think)))
	for {
		at := p.server.now()
		if at >= p.scenario.Length {
			return
		}
		plan, patience := p.draw(r, at)
		p.call(at, plan, patience)
		// The random part keeps callers from moving in step.
		time.Sleep(time.Duration((0.5 + r.Float64()) * float64(p.scenario.Load.Think)))
	}
}

// draw draws a call and how long its caller waits.
func (p *process) draw(r *rand.Rand, at time.Duration) (plan, patience) {
	load := p.scenario.Load
	c, waits := p.server.plan(r, at), patience{deadline: load.Timeout}
	if luck, moment := r.Float64(), r.Float64(); luck < load.Cancelled {
		waits.cancels = 1 + time.Duration(moment*float64(c.latency))
	}
	if load.Hurried > 0 && r.Float64() < load.Hurried {
		waits.deadline = 1 + time.Duration(r.Float64()*float64(load.Budget))
	}
	return c, waits
}

// call makes one call through the breaker.
func (p *process) call(at time.Duration, c plan, waits patience) {
	ctx, cancel := waits.context()
	defer cancel()
	before := p.look()
	var ran atomic.Bool // some libraries run the call in a goroutine of its own and do not wait for it
	err := p.guard.Call(ctx, func(ctx context.Context) error {
		ran.Store(true)
		return p.server.serve(ctx, c)
	})
	p.look()
	admitted := ran.Load()
	leaves := waits.leaves()
	p.record.add(outcome{
		at: at, took: p.server.now() - at, whole: min(c.latency, leaves), fate: fateOf(c, leaves, slowStandard*p.record.p99),
		admitted: admitted, probe: admitted && before == entry.Open, failed: err != nil, good: !c.fails && c.latency < never,
	})
}

// leaves is when the caller has gone, whatever becomes of the call.
func (w patience) leaves() time.Duration {
	first := never
	for _, d := range []time.Duration{w.cancels, w.deadline} {
		if d > 0 {
			first = min(first, d)
		}
	}
	return first
}

func (w patience) context() (context.Context, context.CancelFunc) {
	if w.cancels > 0 {
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(w.cancels, cancel)
		return ctx, cancel
	}
	if w.deadline > 0 {
		return context.WithTimeout(context.Background(), w.deadline)
	}
	return context.Background(), func() {}
}

// look notes whether the breaker has left its closed state, or returned to it, since it was last looked at.
func (p *process) look() entry.State {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := p.state
	p.state = p.guard.State()
	if closed := p.state == entry.Closed; closed != (last == entry.Closed) {
		p.record.change(p.server.now(), closed)
	}
	return p.state
}

// oracle admits what the dependency has room for: what a breaker could do that knew the capacity.
type oracle struct{ s *server }

var errNoRoom = errors.New("the dependency has no room")

func (o oracle) Call(ctx context.Context, fn entry.Func) error {
	if !o.s.room() {
		return errNoRoom
	}
	return fn(ctx)
}

func (oracle) State() entry.State { return entry.Closed }
