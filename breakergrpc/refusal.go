package breakergrpc

import (
	"errors"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/brownout-go/breaker"
)

// refused returns the error of a call that was not admitted as one that has a status.
func refused(err error) error {
	if rejected, ok := errors.AsType[*breaker.RejectedError](err); ok {
		return rejection{rejected}
	}
	if waited, ok := errors.AsType[*breaker.WaitError](err); ok {
		return surrender{waited}
	}
	return status.FromContextError(err).Err() // the context was done before
}

// rejection is a [breaker.RejectedError] that has a status. It holds one pointer, so that making it an error allocates nothing; the
// status is made when it is asked for, and so knows how long the break lasts then.
type rejection struct{ *breaker.RejectedError }

// Unwrap returns the *[breaker.RejectedError].
func (r rejection) Unwrap() error { return r.RejectedError }

// GRPCStatus returns Unavailable, with a RetryInfo while the break tells how long to wait.
func (r rejection) GRPCStatus() *status.Status {
	s := status.New(codes.Unavailable, r.Error())
	wait, ok := r.RetryAfter()
	if !ok {
		return s
	}
	if detailed, err := s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(wait)}); err == nil {
		return detailed
	}
	return s
}

// surrender is a [breaker.WaitError] that has a status: the one of the context that ended the wait.
type surrender struct{ *breaker.WaitError }

// Unwrap returns the *[breaker.WaitError].
func (s surrender) Unwrap() error { return s.WaitError }

// GRPCStatus returns Canceled or DeadlineExceeded.
func (s surrender) GRPCStatus() *status.Status {
	return status.New(status.FromContextError(s.Err).Code(), s.Error())
}
