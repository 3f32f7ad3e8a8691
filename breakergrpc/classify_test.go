package breakergrpc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/brownout-go/breaker"
	"github.com/brownout-go/breaker/breakergrpc"
)

// table is the classification of every status: of any call, and of a probe.
var table = []struct {
	code         codes.Code
	call, aProbe breaker.Outcome
}{
	{codes.OK, breaker.Success, breaker.Success},
	{codes.Canceled, breaker.Transient, breaker.Transient}, // by the server
	{codes.Unknown, breaker.Transient, breaker.Transient},
	{codes.InvalidArgument, breaker.Permanent, breaker.Success},
	{codes.DeadlineExceeded, breaker.Transient, breaker.Transient},
	{codes.NotFound, breaker.Success, breaker.Success},
	{codes.AlreadyExists, breaker.Success, breaker.Success},
	{codes.PermissionDenied, breaker.Permanent, breaker.Success},
	{codes.ResourceExhausted, breaker.Throttled, breaker.Throttled},
	{codes.FailedPrecondition, breaker.Success, breaker.Success},
	{codes.Aborted, breaker.Success, breaker.Success},
	{codes.OutOfRange, breaker.Success, breaker.Success},
	{codes.Unimplemented, breaker.Permanent, breaker.Success},
	{codes.Internal, breaker.Transient, breaker.Transient},
	{codes.Unavailable, breaker.Transient, breaker.Transient},
	{codes.DataLoss, breaker.Transient, breaker.Transient},
	{codes.Unauthenticated, breaker.Permanent, breaker.Success},
	{codes.Code(17), breaker.Transient, breaker.Transient},
}

func TestClassify(t *testing.T) {
	for i, row := range table {
		assert.Equal(t, codes.Code(i), row.code, "every status is in the table")
		assert.Equal(t, row.call, breakergrpc.Classify(status.Error(row.code, "")), "%s", row.code)
		wrapped := fmt.Errorf("reserve: %w", status.Error(row.code, ""))
		if row.code != codes.OK {
			assert.Equal(t, row.call, breakergrpc.Classify(wrapped), "%s, wrapped", row.code)
		}
	}
}

func TestClassifyErrorsWithoutAStatus(t *testing.T) {
	for err, want := range map[error]breaker.Outcome{
		nil:                      breaker.Success,
		io.ErrUnexpectedEOF:      breaker.Transient,
		context.DeadlineExceeded: breaker.Transient,
		context.Canceled:         breaker.Transient,
		breaker.ErrRejected:      breaker.Ignored,
		fmt.Errorf("get: %w", errors.ErrUnsupported): breaker.Transient,
	} {
		assert.Equal(t, want, breakergrpc.Classify(err), "%v", err)
	}
}
