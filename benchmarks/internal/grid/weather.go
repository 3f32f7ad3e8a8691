package grid

import (
	"math"
	"math/rand/v2"
	"time"
)

// Trouble is what is wrong with a bad call.
type Trouble uint8

// The troubles.
const (
	Failing Trouble = iota // it fails at once
	Slow                   // it succeeds, but takes twenty times as long as the others
)

// How long calls take where slowness is judged. A slow one is above any floor that a rule may have.
const (
	fastCall = 10 * time.Millisecond
	slowCall = 200 * time.Millisecond
)

func (t Trouble) String() string { return [...]string{"failures", "slowness"}[t] }

// Pattern is how bad calls are spread over time, so that a given fraction of all calls is bad.
type Pattern struct {
	Name string
	new  func(seed uint64) weather
}

// weather is how likely a call at a time is bad where the fraction steady is bad in the long run. It is asked in order.
type weather func(at time.Duration, steady float64) float64

// The patterns. Each is health: none has a time in which most calls are bad, but for bursts, which are over before a breaker could
// be of use.
var (
	Independent = Pattern{"independent", func(uint64) weather { return independent }}
	Bursts      = Pattern{"bursts", newBursts}
	DailySwing  = Pattern{"daily swing", func(uint64) weather { return swing }}
	Deploys     = Pattern{"deploys", func(uint64) weather { return deploys }}
)

func independent(_ time.Duration, steady float64) float64 { return steady }

// burst is how long a cause lasts that all calls share.
const burst = 200 * time.Millisecond

// newBursts makes half of the bad calls come in bursts in which all are bad, at random times.
func newBursts(seed uint64) weather {
	r := rand.New(rand.NewPCG(seed, 1))
	var from time.Duration
	begun := false
	gap := func(steady float64) time.Duration { // of which bursts take half of steady
		return time.Duration(r.ExpFloat64() * float64(burst) * (2/steady - 1))
	}
	return func(at time.Duration, steady float64) float64 {
		if !begun {
			from, begun = gap(steady), true
		}
		for at >= from+burst {
			from += burst + gap(steady)
		}
		if at >= from {
			return 1
		}
		return steady / 2 / (1 - steady/2)
	}
}

// swing moves the fraction between a fifth of its mean and nine fifths, once a day.
func swing(at time.Duration, steady float64) float64 {
	return steady * (1 + 0.8*math.Sin(2*math.Pi*float64(at)/float64(day)))
}

// deploys adds 15 % bad calls for a minute, four times a day. The mean is a little above the steady fraction.
func deploys(at time.Duration, steady float64) float64 {
	if at%(6*time.Hour) > 6*time.Hour-time.Minute {
		return steady + 0.15
	}
	return steady
}
