package breakerhttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
	"github.com/brownout-go/breaker/breakerhttp"
)

func TestClassifyStatus(t *testing.T) {
	for _, test := range []struct {
		codes []int
		want  breaker.Outcome
	}{
		{[]int{0, 99, 100, 101, 103, 200, 201, 204, 206, 226, 299, 300, 301, 304, 308, 399, 600, 999}, breaker.Success},
		{[]int{404, 410}, breaker.Success},
		{[]int{429}, breaker.Throttled},
		{[]int{408, 500, 502, 503, 504, 506, 507, 508, 511, 520, 599}, breaker.Transient},
		{[]int{400, 401, 403, 405, 409, 411, 412, 413, 422, 425, 431, 451, 499, 501, 505}, breaker.Permanent},
	} {
		for _, code := range test.codes {
			got := breakerhttp.Classify(&http.Response{StatusCode: code}, nil)
			assert.Equal(t, test.want, got, "status %d", code)
		}
	}
}

func TestClassifyError(t *testing.T) {
	isolated := breaker.MustNew(breaker.Settings{Name: "inner"})
	isolated.Isolate()
	_, refusal := isolated.TryAcquire(t.Context())
	require.Error(t, refusal)
	for _, test := range []struct {
		err  error
		want breaker.Outcome
	}{
		{io.ErrUnexpectedEOF, breaker.Transient},
		{context.DeadlineExceeded, breaker.Transient},
		{context.Canceled, breaker.Transient}, // the context of the request decides, not the text of an error
		{refusal, breaker.Ignored},
		{fmt.Errorf("get: %w", refusal), breaker.Ignored},
	} {
		assert.Equal(t, test.want, breakerhttp.Classify(nil, test.err), "%v", test.err)
		assert.Equal(t, test.want, breakerhttp.Classify(&http.Response{StatusCode: 200}, test.err), "%v in the body", test.err)
	}
	assert.Equal(t, breaker.Transient, breakerhttp.Classify(nil, nil), "no answer is a failure")
}

// The rule of the specification, one line for each of its clauses, against what a breaker counts.
func FuzzClassify(f *testing.F) {
	for _, code := range []int{0, 200, 304, 399, 400, 404, 408, 410, 429, 499, 500, 501, 503, 505, 599, 600, -1} {
		f.Add(code, false)
		f.Add(code, true)
	}
	broken := errors.New("broken off")
	f.Fuzz(func(t *testing.T, code int, failed bool) {
		var err error
		if failed {
			err = broken
		}
		want := breaker.Success
		for _, clause := range []struct {
			holds bool
			o     breaker.Outcome
		}{
			{code >= 400 && code <= 499 || code == 501 || code == 505, breaker.Permanent},
			{code == 404 || code == 410, breaker.Success},
			{code == 408 || code >= 500 && code <= 599 && code != 501 && code != 505, breaker.Transient},
			{code == 429, breaker.Throttled},
			{failed, breaker.Transient},
		} {
			if clause.holds {
				want = clause.o
			}
		}
		require.Equal(t, want, breakerhttp.Classify(&http.Response{StatusCode: code}, err))
	})
}
