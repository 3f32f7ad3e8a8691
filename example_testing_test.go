package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
)

// prices is code that uses a breaker: while the circuit is open, it goes on with the last price it got.
type prices struct {
	breaker *breaker.Breaker
	ask     func(context.Context) (int, error)
	last    atomic.Int64
}

// newPrices takes the clock from its caller; nil is the real one.
func newPrices(ask func(context.Context) (int, error), clk breaker.Clock) *prices {
	return &prices{
		ask: ask,
		breaker: breaker.MustNew(breaker.Settings{
			Name:                "prices",
			ConsecutiveFailures: 2,
			BreakDuration:       10 * time.Second,
			BreakJitter:         breaker.JitterNone,
			Clock:               clk,
		}),
	}
}

func (p *prices) price(ctx context.Context) (int, error) {
	price, err := breaker.Execute(ctx, p.breaker, p.ask)
	if errors.Is(err, breaker.ErrRejected) {
		return int(p.last.Load()), nil
	}
	if err == nil {
		p.last.Store(int64(price))
	}
	return price, err
}

// priceService is a dependency for tests.
type priceService struct {
	asked atomic.Int64
	err   error
}

func (s *priceService) ask(context.Context) (int, error) {
	s.asked.Add(1)
	return 7, s.err
}

// A fake clock makes a break pass at once.
func Example_fakeClock() {
	clk, service := clock.NewMock(), &priceService{}
	p := newPrices(service.ask, clk)
	show := func() {
		price, err := p.price(context.Background())
		fmt.Println(price, err, "- asked", service.asked.Load())
	}
	show()
	service.err = errors.New("down")
	show()
	show()
	show() // the circuit is open
	service.err = nil
	clk.Add(10 * time.Second)
	show()
	// Output:
	// 7 <nil> - asked 1
	// 7 down - asked 2
	// 7 down - asked 3
	// 7 <nil> - asked 3
	// 7 <nil> - asked 4
}

// The same test, with a fake clock that is passed in.
func TestPricesWithMockClock(t *testing.T) {
	clk, service := clock.NewMock(), &priceService{}
	p := newPrices(service.ask, clk)
	_, err := p.price(t.Context())
	require.NoError(t, err)

	service.err = errors.New("down")
	for range 2 {
		_, err = p.price(t.Context())
		require.ErrorIs(t, err, service.err)
	}
	clk.Add(10*time.Second - 1)
	price, err := p.price(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 7, price)
	assert.EqualValues(t, 3, service.asked.Load(), "not asked during the break")

	service.err = nil
	clk.Add(1)
	_, err = p.price(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 4, service.asked.Load(), "asked again after it")
}

// In a synctest bubble the real clock is a fake one, so no clock has to be passed in, and calls in flight can be tested too.
func TestPricesWithSynctest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := &priceService{err: errors.New("down")}
		p := newPrices(func(ctx context.Context) (int, error) {
			time.Sleep(3 * time.Second) // takes no time
			return service.ask(ctx)
		}, nil)
		for range 2 {
			_, err := p.price(t.Context())
			require.ErrorIs(t, err, service.err)
		}
		assert.Equal(t, breaker.Open, p.breaker.State())

		time.Sleep(10 * time.Second)
		service.err = nil
		go func() { _, _ = p.price(t.Context()) }()
		synctest.Wait() // until the probe is under way
		assert.Equal(t, 1, p.breaker.Snapshot().ProbesInFlight)
		_, err := p.price(t.Context())
		require.NoError(t, err, "refused beside the probe: the last price stands in")
		assert.EqualValues(t, 2, service.asked.Load())
		time.Sleep(3 * time.Second)
		synctest.Wait() // until the probe is back
		assert.EqualValues(t, 3, service.asked.Load())
		assert.Equal(t, breaker.HalfOpen, p.breaker.State(), "one more probe to go")
	})
}
