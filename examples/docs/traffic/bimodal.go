package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/brownout-go/breaker"
	"github.com/brownout-go/breaker/examples/docs/internal/manual"
)

// twoHumped is a day of a dependency that answers some calls from a cache and the others from a disk.
type twoHumped struct {
	name  string
	hits  float64       // the fraction from the cache, once the first five minutes with 0.6 are over
	disk  time.Duration // the latency of the others from then on
	cache time.Duration
}

func twoHumpedDays() []twoHumped {
	const cache, disk = time.Millisecond, 25 * time.Millisecond
	return []twoHumped{
		{"60 % from the cache", 0.6, disk, cache},
		{"40 % from the cache", 0.4, disk, cache},
		{"disk 20 times slower", 0.4, 20 * disk, cache},
	}
}

const (
	warm = 5 * time.Minute
	gap  = 20 * time.Millisecond // between two calls
)

// firstOpen tells how long after the change the circuit first opened.
func (d twoHumped) firstOpen(s breaker.Settings) string {
	clock := new(manual.Clock)
	s.Clock = clock
	b := breaker.MustNew(s)
	random := rand.New(rand.NewPCG(1, 1))
	for t := time.Duration(0); t < 2*warm; t += gap {
		d.call(b, random.Float64(), t >= warm)
		if b.State() == breaker.Open {
			return max(0, t-warm).Round(100 * time.Millisecond).String()
		}
		clock.Advance(gap)
	}
	return "never"
}

func (d twoHumped) call(b *breaker.Breaker, random float64, changed bool) {
	hits, disk := 0.6, 25*time.Millisecond
	if changed {
		hits, disk = d.hits, d.disk
	}
	latency := disk
	if random < hits {
		latency = d.cache
	}
	p, err := b.TryAcquire(context.Background())
	if err != nil {
		return
	}
	p.RecordLatency(breaker.Success, latency)
}
