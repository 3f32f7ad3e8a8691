package breaker

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The model of the probes in flight is a map from number to the time of admission.
func TestProbesAgainstModel(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	var p probes
	model := map[uint32]time.Duration{}
	ended := map[uint32]bool{}
	for step := range time.Duration(5_000) {
		switch {
		case len(model) == 0 || random.IntN(2) == 0:
			number := p.admit(step)
			_, flying := model[number]
			require.False(t, flying || ended[number], "step %d: number %d is taken", step, number)
			model[number] = step
		default:
			number := p.flying[random.IntN(len(p.flying))].number
			p.end(number)
			delete(model, number)
			ended[number] = true
		}
		for number := range ended {
			p.end(number) // a slot is given back once
			break
		}
		requireInFlight(t, model, &p)
	}
}

func requireInFlight(t *testing.T, model map[uint32]time.Duration, p *probes) {
	t.Helper()
	require.Len(t, p.flying, len(model))
	var times []time.Duration
	for _, f := range p.flying {
		require.Equal(t, model[f.number], f.since)
		times = append(times, f.since)
	}
	oldest, ok := p.oldest()
	require.Equal(t, len(model) > 0, ok)
	if ok {
		require.Equal(t, slices.Min(times), oldest)
	}
}

// The first and the last number mean that a call holds no slot of its own, so the count steps over both.
func TestProbeNumbersWrapAround(t *testing.T) {
	p := probes{last: rampSlot - 2}
	assert.Equal(t, uint32(rampSlot-1), p.admit(0))
	assert.Equal(t, uint32(noSlot+1), p.admit(0))
	p.end(rampSlot - 1)
	assert.Equal(t, []probe{{number: noSlot + 1}}, p.flying)
}
