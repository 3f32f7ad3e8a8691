package breaker

// Outcome is what a finished call says about the health of the dependency. Only [Success] and [Transient] are calls to the
// breaker; the other three are neutral: they enter no ratio, no streak and no baseline. The zero value is [Success].
type Outcome uint8

const (
	// Success: the dependency did the work.
	Success Outcome = iota
	// Transient: the dependency failed. The only evidence that trips on errors.
	Transient
	// Throttled: it is up and defends itself, as with HTTP status 429. Tripping on it would turn a rate limit into an outage.
	Throttled
	// Permanent: the caller's own fault, as with HTTP status 400 or a bug in mapping.
	Permanent
	// Ignored: it says nothing, as when the caller gave up.
	Ignored
)

var outcomes = enum{"Outcome", []string{"success", "transient", "throttled", "permanent", "ignored"}}

// String returns the outcome in lower case: success, transient, throttled, permanent or ignored.
func (o Outcome) String() string { return outcomes.text(uint8(o)) }

// MarshalText returns the text of String. An unknown outcome is an error.
func (o Outcome) MarshalText() ([]byte, error) { return outcomes.marshal(uint8(o)) }

// UnmarshalText reads the text of String. Unknown text is an error and leaves the outcome as it was.
func (o *Outcome) UnmarshalText(text []byte) error {
	v, err := outcomes.parse(text)
	if err == nil {
		*o = Outcome(v)
	}
	return err
}

// givenUp is [Ignored] for a call that its caller gave up: how it would have ended it does not say, but how slow it was it does.
const givenUp = Ignored + 1

// worse returns the worse of two outcomes, in the order that Mark gives: that of their numbers, but for Success, the best.
func worse(a, b Outcome) Outcome { return min(a-Transient, b-Transient) + Transient }

// isCall reports whether o is evidence about the dependency.
func (o Outcome) isCall() bool { return o == Success || o == Transient }

// Mark returns an error that every breaker counts as o, whatever its Classify says: the place that knows best what a failure
// means says it once. The message stays the same, and [errors.Is] and [errors.As] see through it. Mark(nil, o) is nil. An unknown
// outcome counts as [Ignored], as it does everywhere.
//
// Where one error wraps another, the outermost mark wins. Where one wraps several, as [errors.Join] does and [fmt.Errorf] with more
// than one %w, each of them is a branch, and the worst branch wins: Transient, Throttled, Permanent, Ignored, Success. A branch
// without a mark counts as it would without the others, except that the classifier is asked once, about the whole error. To speak
// for all branches, mark the error that joins them.
func Mark(err error, o Outcome) error {
	if err == nil {
		return nil
	}
	return &markedError{err, o}
}

type markedError struct {
	error
	outcome Outcome
}

func (e *markedError) Unwrap() error { return e.error }
