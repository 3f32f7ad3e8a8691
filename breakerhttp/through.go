package breakerhttp

import (
	"io"
	"net/http"
)

// hasBody reports whether there is a body to wait for. What follows 101 Switching Protocols is no body but a connection, which
// may last for days and says nothing about how requests are answered.
func (x *exchange) hasBody() bool {
	switch x.resp.StatusCode {
	case http.StatusSwitchingProtocols, http.StatusNoContent, http.StatusNotModified:
		return false
	}
	return x.req.Method != http.MethodHead && x.resp.Body != nil && x.resp.Body != http.NoBody
}

// watchBody makes the end of the response body the end of the request. A body that can be written to stays so.
func (x *exchange) watchBody() {
	x.body = x.resp.Body
	x.resp.Body = (*body)(x)
	if w, ok := x.body.(io.Writer); ok {
		x.resp.Body = struct {
			io.ReadCloser
			io.Writer
		}{(*body)(x), w}
	}
}

// body is an exchange as the body of its response.
type body exchange

func (b *body) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	b.read.Add(int64(n))
	switch err {
	case nil:
	case io.EOF:
		(*exchange)(b).end(nil, false)
	default:
		(*exchange)(b).end(err, false)
	}
	return n, err
}

// Close ends the request first, or a Read that it interrupts would count as a failure.
func (b *body) Close() (err error) {
	defer func() { err = b.body.Close() }()
	(*exchange)(b).end(nil, !b.isComplete())
	return nil
}

// isComplete reports whether every byte of a body of known length has been read, though nobody has asked for its end.
func (b *body) isComplete() bool {
	return b.resp.ContentLength > 0 && b.read.Load() >= b.resp.ContentLength
}
