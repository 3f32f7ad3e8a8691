package breakergrpc

import (
	"errors"
	"reflect"
	"strings"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/brownout-go/breaker"
)

// witness knows the circumstances of one call, which its error alone does not tell.
type witness struct {
	breaker  *breaker.Breaker
	classify func(error) breaker.Outcome // nil: by the breaker's settings
	conn     *grpc.ClientConn            // nil on a server, and for other transports
	probe    bool
	peer     peer.Peer   // who the call was sent to, if it was; gRPC writes it when the call ends
	sent     atomic.Bool // the call was sent; known once it has ended
}

// noteSent notes whether the call was sent. It is for the goroutine on which gRPC has ended the call: no other may look at peer.
func (w *witness) noteSent() { w.sent.Store(w.peer.Addr != nil) }

// outcome tells what an error says about the server; nil is a success.
func (w *witness) outcome(err error) breaker.Outcome {
	switch {
	case err == nil:
		return breaker.Success
	case w.conn != nil && w.isOwnFault(err):
		return breaker.Ignored
	}
	o := w.classifier()(err)
	if o == breaker.Permanent && w.probe {
		return breaker.Success
	}
	return o
}

// classifier returns the function that judges what the breaker admits.
func (w *witness) classifier() func(error) breaker.Outcome {
	if w.classify != nil {
		return w.classify
	}
	if f := w.breaker.Settings().Classify; f != nil {
		return f
	}
	return Classify
}

// isOwnFault reports whether a call failed on the client's side: its connection was closed under it, or it was never sent and
// that is not the network's doing, such as credentials that cannot be had or metadata that cannot be sent.
func (w *witness) isOwnFault(err error) bool {
	if w.conn.GetState() == connectivity.Shutdown {
		return true
	}
	code := status.Code(err)
	local := code == codes.Internal || classifyCode(code) != breaker.Transient
	return local && !w.sent.Load()
}

// looksUnsendable reports whether an error reads as if a message could not be made into bytes. Both sides say it alike.
func looksUnsendable(err error) bool {
	s, ok := status.FromError(err)
	return ok && s.Code() == codes.Internal && strings.HasPrefix(s.Message(), "grpc: error while ")
}

// isUnsendable reports whether a call failed because its own request cannot be made into bytes.
func isUnsendable(request any, err error) bool {
	if !looksUnsendable(err) {
		return false
	}
	message, ok := request.(proto.Message)
	if !ok {
		return true
	}
	_, err = proto.Marshal(message)
	return err != nil
}

// markType is the type of an error with a mark.
var markType = reflect.TypeOf(breaker.Mark(breaker.ErrRejected, breaker.Ignored))

// isMarked reports whether an error has a [breaker.Mark].
func isMarked(err error) bool { return errors.As(err, reflect.New(markType).Interface()) }
