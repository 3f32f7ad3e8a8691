package breakergrpc

import (
	"context"
	"io"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// StreamClientInterceptor returns an interceptor that asks a breaker before it opens a stream and tells it how the stream ended, or,
// with [WithOutcomeAtHeaders], how it began. A stream that is not admitted is refused as [UnaryClientInterceptor] says. It panics if
// the selector is nil.
func StreamClientInterceptor(s Selector, opts ...Option) grpc.StreamClientInterceptor {
	c := newConfig(s, opts)
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer,
		callOpts ...grpc.CallOption) (grpc.ClientStream, error) {
		b, err := c.selector(ctx, Call{targetOf(cc), method})
		if err != nil {
			return nil, err
		}
		if b == nil {
			return open(ctx, desc, cc, method, callOpts...)
		}
		st, err := c.admit(ctx, b)
		if err != nil {
			return nil, err
		}
		st.conn = cc
		g := &clientStream{stream: st, single: !desc.ServerStreams}
		callOpts = append(callOpts[:len(callOpts):len(callOpts)], grpc.Peer(&st.peer), grpc.OnFinish(g.finished))
		return g.open(func() (grpc.ClientStream, error) { return open(ctx, desc, cc, method, callOpts...) })
	}
}

// clientStream is a guarded stream of a client. What its caller does shows most of how it goes; that it was cancelled, or its
// connection closed, while its caller does nothing, gRPC tells it through OnFinish.
type clientStream struct {
	grpc.ClientStream
	stream *stream
	single bool                  // the server sends one message and then ends
	busy   atomic.Int32          // operations that wait for the server
	cut    atomic.Bool           // an operation found it over, and the error is still to be found out
	over   atomic.Pointer[error] // how it ended, once gRPC has said so
}

func (s *clientStream) open(open func() (grpc.ClientStream, error)) (grpc.ClientStream, error) {
	returned := false
	s.busy.Add(1)
	defer s.waited(&returned)
	inner, err := open()
	returned = true
	if err != nil {
		s.stream.end(err)
		return nil, err
	}
	s.ClientStream = inner
	return s, nil
}

// Header notes that headers have arrived. Neither headers nor an error say only that the stream is over; how, RecvMsg tells, or
// gRPC if the deadline is first.
func (s *clientStream) Header() (metadata.MD, error) {
	returned := false
	s.busy.Add(1)
	defer s.waited(&returned)
	md, err := s.ClientStream.Header()
	returned = true
	switch {
	case err != nil:
		s.stream.end(err)
	case md == nil:
		s.cut.Store(true)
	default:
		s.stream.answer()
	}
	return md, err
}

// SendMsg notes a stream that breaks while a message waits to be sent. [io.EOF] says only that it is over, as with Header.
func (s *clientStream) SendMsg(m any) error {
	returned := false
	s.busy.Add(1)
	defer s.waited(&returned)
	err := s.ClientStream.SendMsg(m)
	returned = true
	switch {
	case err == nil:
	case err == io.EOF:
		s.cut.Store(true)
	case status.Code(err) == codes.Internal:
		s.stream.release() // the message cannot be sent, and that is its sender's fault
	default:
		s.stream.end(err)
	}
	return err
}

// RecvMsg notes how the stream goes on, and how it ends.
func (s *clientStream) RecvMsg(m any) error {
	returned := false
	s.busy.Add(1)
	defer s.waited(&returned)
	err := s.ClientStream.RecvMsg(m)
	returned = true
	switch {
	case err == io.EOF:
		s.stream.end(nil)
	case err != nil:
		s.stream.end(err)
	default:
		s.stream.answer()
		if s.single {
			s.stream.end(nil)
		}
	}
	return err
}

// waited ends an operation that waits for the server. Defer it, for the operation may not return.
func (s *clientStream) waited(returned *bool) {
	s.busy.Add(-1)
	if !*returned {
		s.stream.unwind(recover())
	}
	s.settle()
}

// finished hears from gRPC that the stream has ended. An operation that waits for the server knows better how, so it goes first.
func (s *clientStream) finished(err error) {
	s.stream.noteSent()
	s.over.Store(&err)
	s.settle()
}

// settle ends a stream that has ended while nobody waits for the server. A deadline that passes then is nobody's fault, unless it
// cut an operation short.
func (s *clientStream) settle() {
	err := s.over.Load()
	switch {
	case err == nil || s.busy.Load() > 0:
	case status.Code(*err) == codes.DeadlineExceeded && !s.cut.Load():
		s.stream.release()
	default:
		s.stream.end(*err)
	}
}
