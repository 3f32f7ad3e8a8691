package breakerotel

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/brownout-go/breaker"
)

// The monitor must let go of a registration that has ended.
func TestUnregisterEndsTheCountingOfChanges(t *testing.T) {
	var monitor breaker.Monitor
	r, err := RegisterMetrics(&monitor, WithMeterProvider(noop.NewMeterProvider()))
	require.NoError(t, err)
	b := breaker.MustNew(breaker.Settings{Name: "a", Monitor: &monitor})
	b.Isolate()
	require.NoError(t, r.Unregister())
	b.Reset()
	rows := r.ledger.Read()
	require.Len(t, rows, 1)
	assert.Len(t, rows[0].Moves, 1, "the isolation only")
}
