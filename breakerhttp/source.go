package breakerhttp

import (
	"bytes"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"
)

// outgoing returns the request to send: the caller's own, or a copy of it whose body tells when reading it fails. A body in
// memory cannot fail, and is known to net/http, which sends it along with the headers: it stays as it is.
func (x *exchange) outgoing() *http.Request {
	if x.req.Body == nil || x.req.Body == http.NoBody {
		return x.req
	}
	if length, ok := lengthInMemory(x.req.Body); ok {
		x.spoiled.Store(x.req.ContentLength > 0 && x.req.ContentLength != length)
		return x.req
	}
	watched := &struct {
		req  http.Request
		body source
	}{req: *x.req, body: source{ReadCloser: x.req.Body, x: x}}
	watched.req.Body = &watched.body
	if x.req.GetBody != nil {
		watched.req.GetBody = x.getBody
	}
	return &watched.req
}

// getBody returns the body of the request anew, for an attempt of the base's own.
func (x *exchange) getBody() (io.ReadCloser, error) {
	body, err := x.req.GetBody()
	if err != nil {
		x.spoiled.Store(true)
		return nil, err
	}
	return &source{ReadCloser: body, x: x}, nil
}

// source is the body of a request as the base reads it.
type source struct {
	io.ReadCloser
	x      *exchange
	read   int64 // bytes
	closed atomic.Bool
}

// Read notices a failure, unless the base has closed the body: then it is the base that has given up.
func (s *source) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	s.read += int64(n)
	if !s.closed.Load() && (err != nil && err != io.EOF || s.isOdd(err == io.EOF)) {
		s.x.spoiled.Store(true)
	}
	return n, err
}

// isOdd reports whether what has been read contradicts the length that the request says.
func (s *source) isOdd(whole bool) bool {
	length := s.x.req.ContentLength
	return length > 0 && (s.read > length || whole && s.read < length)
}

func (s *source) Close() error {
	s.closed.Store(true)
	return s.ReadCloser.Close()
}

// What io.NopCloser returns, for a reader that is an io.WriterTo as well and for one that is not. Requests hold their bodies so.
var (
	nopCloser         = reflect.TypeOf(io.NopCloser(nil))
	nopCloserWriterTo = reflect.TypeOf(io.NopCloser(new(bytes.Buffer)))
)

// lengthInMemory returns the length of a body that http.NewRequest knows.
func lengthInMemory(body io.ReadCloser) (length int64, ok bool) {
	if t := reflect.TypeOf(body); t != nopCloser && t != nopCloserWriterTo {
		return 0, false
	}
	switch r := reflect.ValueOf(body).Field(0).Interface().(type) {
	case *bytes.Buffer:
		return int64(r.Len()), true
	case *bytes.Reader:
		return int64(r.Len()), true
	case *strings.Reader:
		return int64(r.Len()), true
	default:
		return 0, false
	}
}
