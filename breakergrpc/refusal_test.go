package breakergrpc_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/brownout-go/breaker"
)

// retryDelay returns what the RetryInfo of an error says; 0: it has none.
func retryDelay(t *testing.T, err error) (delay time.Duration) {
	t.Helper()
	for _, detail := range status.Convert(err).Details() {
		info, ok := detail.(*errdetails.RetryInfo)
		require.True(t, ok)
		delay = info.RetryDelay.AsDuration()
	}
	return delay
}

// bothKinds asks for a unary call and for a stream that are both refused, and returns their errors.
func bothKinds(ctx context.Context, t *testing.T, b *breaker.Breaker) map[string]error {
	t.Helper()
	cc := guarded(t, "127.0.0.1:1", b)
	cs, err := cc.NewStream(ctx, both, bothMethod)
	assert.Nil(t, cs)
	return map[string]error{"unary": call(ctx, cc), "stream": err}
}

func TestRefusalIsAStatus(t *testing.T) {
	settings, clock := consecutive(1)
	b := breaker.MustNew(settings)
	cause := errors.New("secret")
	require.Error(t, b.Execute(t.Context(), func(context.Context) error { return cause }))
	clock.Add(4 * time.Second)
	for kind, err := range bothKinds(within(t), t, b) {
		t.Run(kind, func(t *testing.T) {
			assert.Equal(t, codes.Unavailable, status.Code(err))
			assert.Equal(t, 6*time.Second, retryDelay(t, err))
			assert.Equal(t, `breaker: "server" is open, retry after 6 s`, status.Convert(err).Message())
			assert.Equal(t, status.Convert(err).Message(), err.Error())

			require.ErrorIs(t, err, breaker.ErrRejected)
			var rejected *breaker.RejectedError
			require.ErrorAs(t, err, &rejected)
			assert.Equal(t, cause, rejected.Cause)
		})
	}
}

func TestRefusalThatDoesNotKnowForHowLong(t *testing.T) {
	for kind, err := range bothKinds(within(t), t, isolated(t)) {
		assert.Equal(t, codes.Unavailable, status.Code(err), kind)
		assert.Empty(t, status.Convert(err).Details(), kind)
		assert.ErrorIs(t, err, breaker.ErrRejected, kind)
	}
}

func TestWaitThatItsContextEnds(t *testing.T) {
	settings, _ := consecutive(1)
	settings.WhenOpen = breaker.Wait
	b := breaker.MustNew(settings)
	b.Isolate()
	for name, row := range map[string]struct {
		cause error
		code  codes.Code
	}{"deadline": {context.DeadlineExceeded, codes.DeadlineExceeded}, "cancelled": {context.Canceled, codes.Canceled}} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			if row.code == codes.Canceled {
				ctx, cancel = context.WithCancel(t.Context())
				time.AfterFunc(20*time.Millisecond, cancel)
			}
			for kind, err := range bothKinds(ctx, t, b) {
				assert.Equal(t, row.code, status.Code(err), kind)
			}
			assert.Empty(t, outcomes(b))
		})
	}
}

func TestWaitErrorKeepsItsNature(t *testing.T) {
	settings, _ := consecutive(1)
	settings.WhenOpen = breaker.Wait
	b := breaker.MustNew(settings)
	b.Isolate()
	cc := guarded(t, "127.0.0.1:1", b)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	err := call(ctx, cc)
	assert.ErrorIs(t, err, breaker.ErrRejected)
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	var waited *breaker.WaitError
	require.ErrorAs(t, err, &waited)
	assert.Equal(t, "server", waited.Name)
	assert.Equal(t, waited.Error(), status.Convert(err).Message())
}

func TestCallsWaitWhereTheBreakerSaysSo(t *testing.T) {
	_, address := serve(t, "", &service{unary: pong, stream: messages(1, nil)})
	settings, _ := consecutive(1)
	settings.WhenOpen = breaker.Wait
	b := breaker.MustNew(settings)
	b.Isolate()
	cc, done := guarded(t, address, b), make(chan error, 2)
	go func() { done <- call(within(t), cc) }()
	go func() {
		_, err := cc.NewStream(within(t), up, upMethod)
		done <- err
	}()
	require.Eventually(t, func() bool { return b.Snapshot().Waiting == 2 }, time.Minute, time.Millisecond)
	assert.Empty(t, done)
	b.Reset()
	require.NoError(t, <-done)
	require.NoError(t, <-done)
	assert.Zero(t, b.Snapshot().Totals.Rejected)
}

// gate is a clock whose After tells how long it was asked for, and gives nothing until the test does.
type gate struct {
	breaker.Clock
	asked chan time.Duration
	open  chan time.Time
}

func (g gate) After(d time.Duration) <-chan time.Time {
	g.asked <- d
	return g.open
}

// A caller in a loop cannot spin, and the context ends the delay.
func TestRejectionDelayOfAStream(t *testing.T) {
	for _, row := range []string{"the delay", "the context"} {
		t.Run(row+" ends", func(t *testing.T) {
			settings, clock := consecutive(1)
			settings.RejectionDelay = time.Second
			g := gate{clock, make(chan time.Duration), make(chan time.Time)}
			settings.Clock = g
			b := breaker.MustNew(settings)
			b.Isolate()
			ctx, cancel := context.WithCancel(within(t))
			defer cancel()
			cc, refusal := guarded(t, "127.0.0.1:1", b), make(chan error, 1)
			go func() {
				_, err := cc.NewStream(ctx, down, downMethod)
				refusal <- err
			}()
			require.Equal(t, time.Second, <-g.asked)
			require.Empty(t, refusal)
			if row == "the delay" {
				g.open <- clock.Now()
			} else {
				cancel()
			}
			require.ErrorIs(t, <-refusal, breaker.ErrRejected)
		})
	}
}
