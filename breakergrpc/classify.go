package breakergrpc

import (
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/brownout-go/breaker"
)

// Classify is what the interceptors make of the error of a call:
//
//	status                                                                any call    a probe
//	OK, NotFound, AlreadyExists, FailedPrecondition, Aborted, OutOfRange  Success     Success
//	InvalidArgument, Unauthenticated, PermissionDenied, Unimplemented     Permanent   Success
//	ResourceExhausted                                                     Throttled   Throttled
//	Unavailable, DeadlineExceeded, Internal, DataLoss, Unknown            Transient   Transient
//	Canceled, by the caller                                               Ignored     Ignored
//	Canceled, by the server                                               Transient   Transient
//	any other number                                                      Transient   Transient
//
// The second column is what Classify returns; the third is what an interceptor makes of that, also of the Permanent of another
// classifier, because a server that finds fault with a call works. An error without a status counts as Unknown. The refusal of
// another breaker is [breaker.Ignored]; that of a breaker in the server is the status Unavailable like any other.
//
// The interceptors judge before they ask: a call whose context was cancelled is Ignored, so the Canceled that Classify sees is
// taken for the server's; a [breaker.Mark] on the error stands; and what failed on the client's side is Ignored.
func Classify(err error) breaker.Outcome {
	if errors.Is(err, breaker.ErrRejected) {
		return breaker.Ignored
	}
	return classifyCode(status.Code(err))
}

func classifyCode(code codes.Code) breaker.Outcome {
	switch code {
	case codes.OK, codes.NotFound, codes.AlreadyExists, codes.FailedPrecondition, codes.Aborted, codes.OutOfRange:
		return breaker.Success
	case codes.InvalidArgument, codes.Unauthenticated, codes.PermissionDenied, codes.Unimplemented:
		return breaker.Permanent
	case codes.ResourceExhausted:
		return breaker.Throttled
	default:
		return breaker.Transient
	}
}

// speaksForItself reports whether no classifier has a say in an error: it has a mark, is the refusal of another breaker, or cannot
// even be looked into. The breaker deals with all three.
func speaksForItself(err error) (yes bool) {
	defer func() { yes = recover() != nil || yes }()
	return isMarked(err) || errors.Is(err, breaker.ErrRejected)
}
