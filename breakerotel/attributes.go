package breakerotel

import (
	"go.opentelemetry.io/otel/attribute"

	"github.com/brownout-go/breaker"
	"github.com/brownout-go/breaker/breakerotel/internal/ledger"
)

// scope names the instrumentation.
const scope = "github.com/brownout-go/breaker/breakerotel"

// The attributes of metrics, spans and span events.
const (
	// NameKey is Settings.Name of the breaker, with what cannot be printed replaced.
	NameKey = attribute.Key("breaker.name")
	// StateKey is a state: closed, recovering, half-open, open or isolated.
	StateKey = attribute.Key("breaker.state")
	// FromKey and ToKey are the states before and after a change.
	FromKey = attribute.Key("breaker.from")
	ToKey   = attribute.Key("breaker.to")
	// ReasonKey is why a state changed, such as consecutive-failures.
	ReasonKey = attribute.Key("breaker.reason")
	// OutcomeKey is how a call ended: success, transient, throttled, permanent or ignored.
	OutcomeKey = attribute.Key("breaker.outcome")

	// ProbeKey is true for a call that a half-open circuit admitted as a probe, and absent for others.
	ProbeKey = attribute.Key("breaker.probe")
	// RefusedKey is true for a call that the breaker refused, and absent for others.
	RefusedKey = attribute.Key("breaker.refused")
	// RetryAfterKey is how long the break lasts, in seconds, for a call refused while it does.
	RetryAfterKey = attribute.Key("breaker.retry_after")
	// WaitedKey is how long a call waited for admission before it gave up, in seconds.
	WaitedKey = attribute.Key("breaker.waited")
	// BreakKey is how long the circuit stays open, in seconds, for a change to open.
	BreakKey = attribute.Key("breaker.break_duration")
	// OpensKey is the number of opens in a row, for a change to open.
	OpensKey = attribute.Key("breaker.opens")
	// CallsKey, FailuresKey and SlowKey are the numbers that a change was decided on, absent if it was not decided on calls.
	CallsKey    = attribute.Key("breaker.counts.calls")
	FailuresKey = attribute.Key("breaker.counts.failures")
	SlowKey     = attribute.Key("breaker.counts.slow")

	errorTypeKey = attribute.Key("error.type") // of the semantic conventions
)

// name returns the attribute that names a breaker.
func name(n string) attribute.KeyValue { return NameKey.String(ledger.Label(n)) }

// move returns the attributes that tell one kind of change from another.
func move(from, to breaker.State, reason breaker.Reason) []attribute.KeyValue {
	return []attribute.KeyValue{FromKey.String(from.String()), ToKey.String(to.String()), ReasonKey.String(reason.String())}
}
