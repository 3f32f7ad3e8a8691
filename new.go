package breaker

import "context"

// New returns a closed breaker. It copies the settings; invalid ones are a *[SettingsError].
func New(s Settings) (*Breaker, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	b := newBreaker(s)
	if s.Monitor != nil {
		s.Monitor.bind(b.tenant())
	}
	return b, nil
}

// MustNew is [New] for settings that are known to be valid. It panics with the *[SettingsError] of those that are not.
func MustNew(s Settings) *Breaker {
	b, err := New(s)
	if err != nil {
		panic(err)
	}
	return b
}

// newBreaker returns a breaker for settings that are not checked, bound to no monitor.
func newBreaker(s Settings) *Breaker {
	b := &Breaker{settings: s.WithDefaults()}
	b.settings.Clock, b.realTime = b.time.start(s.Clock), s.Clock == nil
	b.timed, b.sampled = b.settings.judgesSlowness(), b.settings.judgesRatios()
	b.machine = newMachine(&b.settings)
	b.machine.derives(&s)
	if s.OnStateChange != nil || s.BreakDurationFunc != nil || s.Monitor != nil {
		b.events = new(eventQueue)
	}
	b.publishLocked()
	b.restock(context.Background())
	return b
}
