package breaker

import "time"

// virtualClock is the Clock of simulated breakers. It moves only when the simulator takes the next event from its queue.
type virtualClock struct{ now time.Duration }

// Now counts from the Unix epoch, so that a report depends on nothing outside the simulation.
func (c *virtualClock) Now() time.Time { return time.Unix(0, 0).UTC().Add(c.now) }

// Since returns the simulated time since t.
func (c *virtualClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// After never fires: simulated calls are admitted or refused at once, so nobody waits for a simulated time.
func (c *virtualClock) After(time.Duration) <-chan time.Time { return nil }

// eventKind orders events at the same time. A second ends before anything happens in the next one, and a call leaves the
// dependency before another one finds it busy.
type eventKind uint8

const (
	secondEnds eventKind = iota
	callEnds
	callArrives
)

// simEvent is something that happens at a simulated time.
type simEvent struct {
	at     time.Duration
	kind   eventKind
	number uint64 // of its push: the last tie-break, which makes the order total
	client *client
	flight flight // of callEnds
}

func (e *simEvent) before(f *simEvent) bool {
	if e.at != f.at {
		return e.at < f.at
	}
	if e.kind != f.kind {
		return e.kind < f.kind
	}
	return e.number < f.number
}

// agenda is a binary heap with the next event first. container/heap would box every event it is given.
type agenda struct {
	heap   []simEvent
	pushed uint64
}

func (a *agenda) push(e simEvent) {
	e.number = a.pushed
	a.pushed++
	a.heap = append(a.heap, e)
	for i := len(a.heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if !a.heap[i].before(&a.heap[parent]) {
			return
		}
		a.heap[i], a.heap[parent] = a.heap[parent], a.heap[i]
		i = parent
	}
}

// pop removes and returns the next event of a queue that is not empty.
func (a *agenda) pop() simEvent {
	next, last := a.heap[0], len(a.heap)-1
	a.heap[0] = a.heap[last]
	a.heap[last] = simEvent{} // lets go of its permit
	a.heap = a.heap[:last]
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if a.heap[child].before(&a.heap[least]) {
				least = child
			}
		}
		if least == i {
			return next
		}
		a.heap[i], a.heap[least] = a.heap[least], a.heap[i]
		i = least
	}
}

// slidingSecond counts what happened in the last second, and remembers the worst one.
type slidingSecond struct {
	times []time.Duration // within the last second, oldest first
	peak  int
}

func (s *slidingSecond) add(now time.Duration) {
	left := 0
	for left < len(s.times) && s.times[left] <= now-time.Second {
		left++
	}
	s.times = append(s.times[:copy(s.times, s.times[left:])], now)
	s.peak = max(s.peak, len(s.times))
}
