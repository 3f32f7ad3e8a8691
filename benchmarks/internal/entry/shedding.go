package entry

import (
	"sync"
	"time"
)

// sheddingPause is how long a library without an open state must have refused nothing to count as closed.
const sheddingPause = 10 * time.Second

// shedding tells when such a library refuses.
type shedding struct {
	mu      sync.Mutex // protects the following field
	refused time.Time  // the last time; zero before the first
}

// note takes down a call that was refused, if it was.
func (s *shedding) note(refused bool) {
	if !refused {
		return
	}
	s.mu.Lock()
	s.refused = time.Now()
	s.mu.Unlock()
}

func (s *shedding) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return stateOf(s.refused.IsZero() || time.Since(s.refused) >= sheddingPause)
}
