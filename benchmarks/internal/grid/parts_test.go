package grid

import (
	"strings"
	"testing"
	"time"

	"github.com/brownout-go/breaker"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPatterns_keep_the_share_of_bad_calls(t *testing.T) {
	for _, p := range []Pattern{Independent, Bursts, DailySwing, Deploys} {
		for _, steady := range []float64{0.01, 0.3} {
			weather, sum, most, n := p.new(1), 0.0, 0.0, 0
			for at := time.Duration(0); at < 10*day; at += time.Second {
				chance := weather(at, steady)
				most = max(most, chance)
				sum += chance
				n++
			}
			assert.LessOrEqual(t, most, 1.0, p.Name)
			assert.InDelta(t, steady, sum/float64(n), 0.05*steady+0.0005, "%s, %v", p.Name, steady)
		}
	}
}

func TestBursts_last_as_long_as_they_say(t *testing.T) {
	weather := Bursts.new(1)
	const step = 10 * time.Millisecond
	bursts, inBurst := 0, 0
	last := 0.0
	for at := time.Duration(0); at < time.Hour; at += step {
		chance := weather(at, 0.02)
		if chance == 1 {
			inBurst++
			if last < 1 {
				bursts++
			}
		}
		last = chance
	}
	assert.InEpsilon(t, burst, time.Duration(inBurst)*step/time.Duration(bursts), 0.05)
	assert.InEpsilon(t, 0.01*float64(time.Hour/burst), bursts, 0.2, "half of the bad calls are in them")
}

func TestDailySwing_and_deploys(t *testing.T) {
	assert.InDelta(t, 0.18, swing(6*time.Hour, 0.1), 1e-9)
	assert.InDelta(t, 0.02, swing(18*time.Hour, 0.1), 1e-9)
	assert.InDelta(t, 0.1, deploys(6*time.Hour-time.Minute, 0.1), 1e-9)
	assert.InDelta(t, 0.25, deploys(6*time.Hour-1, 0.1), 1e-9)
	assert.InDelta(t, 0.1, deploys(6*time.Hour, 0.1), 1e-9)
}

func TestStream_judges_slowness(t *testing.T) {
	s := newStream(breaker.Settings{}, 10, 1)
	s.trouble = Slow
	assert.Zero(t, s.healthy(0.001, time.Hour))
	totals := s.breaker.Snapshot().Totals
	assert.Zero(t, totals.Transient, "a slow call succeeds")
	_, opened := s.untilOpen(1, time.Minute)
	assert.True(t, opened, "the slow trip sees it")
}

func TestParts_are_the_same_on_every_run_and_in_order(t *testing.T) {
	p := tiny()
	p.Parts = parts(p.Steady)[:3]
	r := p.Run()
	assert.Equal(t, r.WorstTable(), p.Run().WorstTable())
	require.Len(t, r.Parts, 3)
	for i, part := range p.Parts {
		require.Len(t, r.Parts[i], len(p.Loads)*len(part.Rules)*len(part.Steady))
		for _, h := range r.Parts[i] {
			assert.Equal(t, part.Trouble, h.Trouble)
			assert.Equal(t, part.Pattern.Name, h.Pattern.Name)
		}
	}
}

func TestWorstTable(t *testing.T) {
	part := Part{Slow, Bursts, slownessRules[:1], []float64{0.01, 0.05}}
	r := Result{Plan: Plan{Parts: []Part{part}}, Parts: [][]Health{part.cells([]Load{{3, 10 * day}, {20, 30 * day}})}}
	r.Parts[0][1].Opens, r.Parts[0][3].Opens = 2, 5
	assert.Contains(t, r.WorstTable(), "| slowness | bursts | classic rules | 6 | 3 | 5 % |")
	assert.Contains(t, r.PartTables(), "| 20 | 30 | classic rules | 0 | 5 |")
	assert.Equal(t, 4, strings.Count(r.PartTables(), "\n"))
}
