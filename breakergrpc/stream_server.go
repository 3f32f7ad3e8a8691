package breakergrpc

import (
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// StreamServerInterceptor returns an interceptor that asks a breaker before it calls the handler of a stream and tells it what the
// handler returned, or, with [WithOutcomeAtHeaders], that it began to answer. A stream that is not admitted is answered as
// [UnaryClientInterceptor] says. It panics if the selector is nil.
func StreamServerInterceptor(s Selector, opts ...Option) grpc.StreamServerInterceptor {
	c := newConfig(s, opts)
	return func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
		b, err := c.selector(ss.Context(), Call{Method: info.FullMethod})
		if err != nil {
			return err
		}
		if b == nil {
			return handle(srv, ss)
		}
		st, err := c.admit(ss.Context(), b)
		if err != nil {
			return err
		}
		return st.serve(srv, ss, handle)
	}
}

func (s *stream) serve(srv any, ss grpc.ServerStream, handle grpc.StreamHandler) error {
	returned := false
	defer func() {
		if !returned {
			s.unwind(recover())
		}
	}()
	err := handle(srv, &serverStream{ss, s})
	returned = true
	s.end(err)
	return err
}

// serverStream is a guarded stream of a server.
type serverStream struct {
	grpc.ServerStream
	stream *stream
}

// SendHeader notes that the handler begins to answer.
func (s *serverStream) SendHeader(md metadata.MD) error {
	err := s.ServerStream.SendHeader(md)
	if err == nil {
		s.stream.answer()
	}
	return err
}

// SendMsg notes that the handler begins to answer.
func (s *serverStream) SendMsg(m any) error {
	err := s.ServerStream.SendMsg(m)
	if err == nil {
		s.stream.answer()
	}
	return err
}
