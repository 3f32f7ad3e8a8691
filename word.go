package breaker

// word is what admission in Closed needs, in one atomic load: the state; a bit that tells a breaker made by New from a zero one; a
// bit that says, where successes are not sampled, that the next one has a streak to end; and the epoch.
type word uint64

const (
	wordStates     = 1<<3 - 1
	wordMade       = 1 << 3
	wordStreak     = 1 << 4
	wordEpochShift = 5
)

func wordOf(s State, epoch uint64) word { return word(epoch<<wordEpochShift | wordMade | uint64(s)) }

// state returns the state that the machine is in.
func (w word) state() State { return State(w & wordStates) }

// epoch returns the epoch that the machine is in.
func (w word) epoch() uint64 { return uint64(w >> wordEpochShift) }

// isClosed reports whether a call is admitted without the lock.
func (w word) isClosed() bool { return w&(wordMade|wordStates) == wordMade|word(Closed) }
