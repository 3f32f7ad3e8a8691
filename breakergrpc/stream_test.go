package breakergrpc_test

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/brownout-go/breaker"
	"github.com/brownout-go/breaker/breakergrpc"
)

// drain reads a stream to its end and returns how many messages there were.
func drain(s grpc.ClientStream) (n int, err error) {
	for {
		if err = recv(s); err != nil {
			return n, err
		}
		n++
	}
}

func TestStreamHasTheOutcomeOfItsLastMessage(t *testing.T) {
	for _, row := range table {
		_, address := serve(t, "", &service{stream: messages(2, status.Error(row.code, ""))})
		for _, desc := range []*grpc.StreamDesc{down, both} {
			b := steady()
			cs := begin(within(t), t, guarded(t, address, b), desc)
			require.NoError(t, recv(cs))
			assert.Empty(t, outcomes(b), "it goes on")
			_, err := drain(cs)
			if row.code == codes.OK {
				assert.Equal(t, io.EOF, err)
			} else {
				assert.Equal(t, row.code, status.Code(err))
			}
			assert.Equal(t, once(row.call), outcomes(b), "%s", row.code)
		}
		b := halfOpen(t)
		before := outcomes(b)
		before[row.aProbe]++
		_, _ = drain(begin(within(t), t, guarded(t, address, b), down))
		assert.Equal(t, before, outcomes(b), "%s of a probe", row.code)
	}
}

func TestClientStreamEndsWithItsOnlyReply(t *testing.T) {
	for _, row := range []struct {
		err  error
		want breaker.Outcome
	}{{nil, breaker.Success}, {status.Error(codes.Internal, ""), breaker.Transient}} {
		_, address := serve(t, "", &service{stream: messages(1, row.err)})
		b := steady()
		cs := begin(within(t), t, guarded(t, address, b), up)
		require.NoError(t, cs.CloseSend())
		assert.Equal(t, status.Code(row.err), status.Code(recv(cs)))
		assert.Equal(t, once(row.want), outcomes(b))
	}
}

func TestStreamThatIsRefused(t *testing.T) {
	_, address := serve(t, "", &service{stream: messages(1, status.Error(codes.Unavailable, ""))})
	settings, _ := consecutive(1)
	b := breaker.MustNew(settings)
	cc := guarded(t, address, b)
	_, err := drain(begin(within(t), t, cc, down))
	require.Equal(t, codes.Unavailable, status.Code(err))

	cs, err := cc.NewStream(within(t), down, downMethod)
	assert.Nil(t, cs)
	require.ErrorIs(t, err, breaker.ErrRejected)
	rejected := err.(interface{ Unwrap() error }).Unwrap().(*breaker.RejectedError)
	assert.Equal(t, codes.Unavailable, status.Code(rejected.Cause), "the error of the stream that opened it")
}

// The server dies with the stream half read.
func TestStreamThatBreaksHalfway(t *testing.T) {
	server, address := serve(t, "", &service{stream: func(ss grpc.ServerStream) error {
		if err := ss.SendMsg(wrapperspb.String("half")); err != nil {
			return err
		}
		<-ss.Context().Done()
		return ss.Context().Err()
	}})
	b := steady()
	cs := begin(within(t), t, guarded(t, address, b), down)
	require.NoError(t, recv(cs))
	server.Stop()
	require.Equal(t, codes.Unavailable, status.Code(recv(cs)))
	assert.Equal(t, once(breaker.Transient), outcomes(b))
}

func TestStreamToAServerThatIsGone(t *testing.T) {
	server, address := serve(t, "", &service{})
	server.Stop()
	b := steady()
	_, err := guarded(t, address, b).NewStream(within(t), down, downMethod)
	require.Equal(t, codes.Unavailable, status.Code(err))
	assert.Equal(t, once(breaker.Transient), outcomes(b))
}

// silent returns the handler of a stream that sends some messages and then hangs.
func silent(n int) func(grpc.ServerStream) error {
	return func(ss grpc.ServerStream) error {
		if err := messages(n, nil)(ss); err != nil {
			return err
		}
		<-ss.Context().Done()
		return ss.Context().Err()
	}
}

// However its caller leaves a stream, and however far it has come, it says nothing, and the place of a probe is free again.
func TestAbandonedStreamLeavesItsPlace(t *testing.T) {
	_, address := serve(t, "", &service{stream: silent(1)})
	for name, read := range map[string]bool{"unread": false, "half read": true} {
		t.Run(name, func(t *testing.T) {
			b := halfOpen(t)
			cc := guarded(t, address, b)
			ctx, cancel := context.WithCancel(within(t))
			cs := begin(ctx, t, cc, down)
			if read {
				require.NoError(t, recv(cs))
			}
			require.ErrorIs(t, call(within(t), cc), breaker.ErrRejected, "the stream is the probe")
			cancel()
			require.Eventually(t, func() bool { return outcomes(b)[breaker.Ignored] == 1 }, time.Minute, time.Millisecond)
			assert.Equal(t, breaker.HalfOpen, b.State())
			permit, err := b.TryAcquire(t.Context())
			require.NoError(t, err)
			permit.Release()
		})
	}
}

func TestCancelledWhileReading(t *testing.T) {
	_, address := serve(t, "", &service{stream: silent(1)})
	b := steady()
	ctx, cancel := context.WithCancel(within(t))
	cs := begin(ctx, t, guarded(t, address, b), down)
	require.NoError(t, recv(cs))
	go cancel()
	require.Equal(t, codes.Canceled, status.Code(recv(cs)))
	assert.Equal(t, once(breaker.Ignored), outcomes(b))
}

// The context of the stream never ends, and nobody reads.
func TestStreamWhoseConnectionIsClosed(t *testing.T) {
	_, address := serve(t, "", &service{stream: silent(0)})
	for name, read := range map[string]bool{"unread": false, "while reading": true} {
		t.Run(name, func(t *testing.T) {
			b := steady()
			cc := guarded(t, address, b)
			cs := begin(context.Background(), t, cc, down)
			if read {
				go func() { _ = cc.Close() }()
				require.Error(t, recv(cs))
			} else {
				require.NoError(t, cc.Close())
			}
			eventually(t, b, breaker.Ignored)
		})
	}
}

// A deadline is evidence only while somebody waits for the server.
func TestDeadlineOfAStream(t *testing.T) {
	_, address := serve(t, "", &service{stream: silent(1)})
	for name, row := range map[string]struct {
		read bool
		want breaker.Outcome
	}{"while reading": {true, breaker.Transient}, "while nobody reads": {false, breaker.Ignored}} {
		t.Run(name, func(t *testing.T) {
			b := steady()
			cc := guarded(t, address, b)
			cs := begin(soon(t, cc), t, cc, down)
			require.NoError(t, recv(cs))
			if row.read {
				require.Equal(t, codes.DeadlineExceeded, status.Code(recv(cs)))
				assert.Equal(t, once(row.want), outcomes(b))
			}
			eventually(t, b, row.want)
		})
	}
}

func TestDeadlineWhileWaitingForHeaders(t *testing.T) {
	ended := make(chan struct{})
	_, address := serve(t, "", &service{stream: func(grpc.ServerStream) error { <-ended; return nil }})
	t.Cleanup(func() { close(ended) })
	b := steady()
	cc := guarded(t, address, b)
	cs := begin(soon(t, cc), t, cc, down)
	md, err := cs.Header()
	assert.Empty(t, md)
	require.NoError(t, err, "gRPC leaves the error to RecvMsg")
	eventually(t, b, breaker.Transient)
}

// A server that reads nothing lets no more be sent than the network holds.
func TestDeadlineWhileSending(t *testing.T) {
	ended := make(chan struct{})
	_, address := serve(t, "", &service{stream: func(grpc.ServerStream) error { <-ended; return nil }})
	t.Cleanup(func() { close(ended) })
	b := steady()
	cc := guarded(t, address, b)
	cs := begin(soon(t, cc), t, cc, up)
	large := wrapperspb.Bytes(make([]byte, 1<<20))
	for cs.SendMsg(large) == nil {
	}
	require.Equal(t, codes.DeadlineExceeded, status.Code(recv(cs)))
	assert.Equal(t, once(breaker.Transient), outcomes(b))
}

func TestMessageThatCannotBeSentIsIgnored(t *testing.T) {
	_, address := serve(t, "", &service{stream: silent(0)})
	b := steady()
	cs := begin(within(t), t, guarded(t, address, b), both)
	require.Equal(t, codes.Internal, status.Code(cs.SendMsg(wrapperspb.String("\xff"))))
	assert.Equal(t, once(breaker.Ignored), outcomes(b))

	_, err := guarded(t, address, b).NewStream(metadata.AppendToOutgoingContext(within(t), "na me", "x"), down, downMethod)
	require.Error(t, err)
	assert.Equal(t, map[breaker.Outcome]uint64{breaker.Ignored: 2}, outcomes(b))
}

func TestStreamedReplyThatCannotBeSentIsAFailure(t *testing.T) {
	_, address := serve(t, "", &service{stream: func(ss grpc.ServerStream) error {
		return ss.SendMsg(wrapperspb.String("\xff"))
	}})
	b := steady()
	_, err := drain(begin(within(t), t, guarded(t, address, b), down))
	require.ErrorContains(t, err, "marshal")
	assert.Equal(t, once(breaker.Transient), outcomes(b))
}

func TestOutcomeAtHeaders(t *testing.T) {
	_, address := serve(t, "", &service{stream: func(ss grpc.ServerStream) error {
		if err := ss.SendHeader(nil); err != nil {
			return err
		}
		return silent(1)(ss)
	}})
	for name, wait := range map[string]func(grpc.ClientStream) error{
		"header":  func(cs grpc.ClientStream) error { _, err := cs.Header(); return err },
		"message": func(cs grpc.ClientStream) error { return recv(cs) },
	} {
		t.Run(name, func(t *testing.T) {
			b := halfOpen(t)
			ctx, cancel := context.WithCancel(within(t))
			cs := begin(ctx, t, guarded(t, address, b, breakergrpc.WithOutcomeAtHeaders()), both)
			require.Equal(t, breaker.HalfOpen, b.State())
			require.NoError(t, wait(cs))
			require.True(t, admitsAgain(b))
			cancel()
			_, err := drain(cs)
			require.Equal(t, codes.Canceled, status.Code(err))
			assert.Equal(t, map[breaker.Outcome]uint64{breaker.Transient: 1, breaker.Success: 1}, outcomes(b))
		})
	}
}

// A stream that fails before there are headers has none, however the client waits for them.
func TestStreamThatEndsBeforeItsHeaders(t *testing.T) {
	_, address := serve(t, "", &service{stream: messages(0, status.Error(codes.Unavailable, ""))})
	b := steady()
	cs := begin(within(t), t, guarded(t, address, b, breakergrpc.WithOutcomeAtHeaders()), down)
	_, _ = cs.Header()
	assert.Equal(t, once(breaker.Transient), outcomes(b))
	require.Equal(t, codes.Unavailable, status.Code(recv(cs)))
}

// The latency of a stream ends with the first thing that comes back, however long it goes on.
func TestLatencyOfAStream(t *testing.T) {
	more := make(chan struct{})
	_, address := serve(t, "", &service{stream: func(ss grpc.ServerStream) error {
		for range more {
			if err := ss.SendMsg(wrapperspb.String("pong")); err != nil {
				return err
			}
		}
		return nil
	}})
	settings, clock := consecutive(1000)
	settings.SlowCalls = breaker.SlowCalls{MinSamples: 1}
	settings.SlowCallThreshold = time.Hour
	b := breaker.MustNew(settings)
	cs := begin(within(t), t, guarded(t, address, b), down)
	clock.Add(2 * time.Second)
	more <- struct{}{}
	require.NoError(t, recv(cs))
	clock.Add(3 * time.Hour)
	close(more)
	require.Equal(t, io.EOF, recv(cs))
	assert.Zero(t, b.Snapshot().Totals.Slow)
	normal, ok := b.NormalLatency()
	require.True(t, ok)
	assert.InDelta(t, 2, normal.Seconds(), 0.2)
}

// A caller who gives up while nothing has come back tells of slowness; one who has read enough does not.
func TestCancelledStreamIsSlowOnlyBeforeItsAnswer(t *testing.T) {
	for n, slow := range map[int]uint64{0: 1, 1: 0} {
		_, address := serve(t, "", &service{stream: silent(n)})
		settings, clock := consecutive(1000)
		settings.SlowCallThreshold = time.Second
		b := breaker.MustNew(settings)
		ctx, cancel := context.WithCancel(within(t))
		cs := begin(ctx, t, guarded(t, address, b), down)
		for range n {
			require.NoError(t, recv(cs))
		}
		clock.Add(time.Minute)
		cancel()
		eventually(t, b, breaker.Ignored)
		assert.Equal(t, slow, b.Snapshot().Totals.Slow, "after %d messages", n)
	}
}
