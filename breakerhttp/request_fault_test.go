package breakerhttp_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
	"github.com/brownout-go/breaker/breakerhttp"
)

var errSource = errors.New("disk unplugged")

// upload answers 200 to a request whose body it could read to its end, and 500 to any other. It never answers one for /never.
func upload(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		w.WriteHeader(http.StatusInternalServerError)
	} else if r.URL.Path == "/never" {
		<-r.Context().Done()
	}
}

func withBody(body io.Reader, length int64) func(*http.Request) {
	return func(r *http.Request) {
		r.Method, r.Body, r.ContentLength = http.MethodPost, io.NopCloser(body), length
	}
}

// withLongBody goes where no answer comes: a server that has had all it was promised may answer before the rest is noticed.
func withLongBody(body io.Reader, length int64) func(*http.Request) {
	return func(r *http.Request) {
		withBody(body, length)(r)
		r.URL.Path = "/never"
	}
}

func withHeader(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header[name] = []string{value} }
}

// stream is a body of which nobody knows that it is in memory.
func stream(text string) io.Reader { return brokenReader{strings.NewReader(text), io.EOF} }

// requestFaults spoil a request. They are made anew for each request, since a body can be read once.
func requestFaults() map[string]func(*http.Request) {
	long := strings.Repeat("body", 1<<16)
	return map[string]func(*http.Request){
		"body fails at once":      withBody(brokenReader{strings.NewReader(""), errSource}, -1),
		"body fails, chunked":     withBody(brokenReader{strings.NewReader(long), errSource}, -1),
		"body fails, with length": withBody(brokenReader{strings.NewReader(long), errSource}, int64(2*len(long))),
		"stream too short":        withBody(stream("body"), 10),
		"stream too long":         withLongBody(stream("body"), 3),
		"string too short":        withBody(strings.NewReader("body"), 10),
		"string too long":         withLongBody(strings.NewReader("body"), 3),
		"bytes too long":          withLongBody(bytes.NewReader([]byte("body")), 3),
		"buffer too short":        withBody(bytes.NewBufferString("body"), 5),
		"spent string":            withBody(strings.NewReader(""), 4),
		"header name":             withHeader("Bad Name", "value"),
		"empty header name":       withHeader("", "value"),
		"header name not ASCII":   withHeader("Ключ", "value"),
		"header value":            withHeader("Name", "two\nlines"),
		"header value with DEL":   withHeader("Name", "\x7f"),
		"trailer value": func(r *http.Request) {
			withBody(stream("body"), -1)(r)
			r.Trailer = http.Header{"Name": {"\x00"}}
		},
		"unknown scheme": func(r *http.Request) { r.URL.Scheme = "gopher" },
		"no scheme":      func(r *http.Request) { r.URL.Scheme = "" },
		"no host":        func(r *http.Request) { r.URL.Host = "" },
		"port too large": func(r *http.Request) { r.URL.Host = "127.0.0.1:65536" },
		"no URL":         func(r *http.Request) { r.URL = nil },
		"no header map":  func(r *http.Request) { r.Header = nil },
	}
}

// onlyIn1 and onlyIn2 are faults for one protocol and none for the other.
func onlyIn1() map[string]func(*http.Request) {
	return map[string]func(*http.Request){
		"method":          func(r *http.Request) { r.Method = "GE T" },
		"length, no body": func(r *http.Request) { r.Method, r.ContentLength = http.MethodPost, 5 },
		"reserved trailer": func(r *http.Request) {
			withBody(stream("body"), -1)(r)
			r.Trailer = http.Header{"Content-Length": {"4"}}
		},
		"control in path": func(r *http.Request) { r.URL.Opaque = "//" + r.URL.Host + "/\x01" },
	}
}

func onlyIn2() map[string]func(*http.Request) {
	return map[string]func(*http.Request){"transfer encoding": withHeader("Transfer-Encoding", "gzip")}
}

// What failed before or beside the network counted as the dependency's failure: a disk that could not be read, or one malformed
// header repeated, opened the circuit of a healthy server. Here each is a probe, says nothing and gives its slot back to the next
// request, which closes the circuit.
func TestRegression_FaultOfTheRequestSaysNothingOfTheServer(t *testing.T) {
	everyWay(t, func(t *testing.T, start func(*httptest.Server), throughBody bool) {
		transport := &breakerhttp.Transport{ThroughBody: throughBody}
		client, address := serve(t, upload, transport, start)
		resp, err := client.Transport.(*breakerhttp.Transport).Base.RoundTrip(get(t, address))
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		own := onlyIn1()
		if resp.ProtoMajor == 2 {
			own = onlyIn2()
		}
		for _, faults := range []map[string]func(*http.Request){requestFaults(), own} {
			for name, spoil := range faults {
				t.Run(name, func(t *testing.T) {
					b := halfOpen(t)
					transport.Breaker = b
					req := get(t, address)
					spoil(req)
					resp, err := transport.RoundTrip(req)
					if err == nil { // the server noticed first
						assert.Equal(t, http.StatusInternalServerError, resp.StatusCode)
						readAll(t, resp)
					}
					assert.Equal(t, once(breaker.Ignored), ofProbe(b), "%v", err)
					assert.Zero(t, b.Snapshot().ProbesInFlight)
					resp, err = transport.RoundTrip(get(t, address))
					require.NoError(t, err)
					readAll(t, resp)
					assert.Equal(t, breaker.Closed, b.State())
				})
			}
		}
	})
}

// Whole requests with every kind of body reach the server.
func TestBodiesArrive(t *testing.T) {
	everyWay(t, func(t *testing.T, start func(*httptest.Server), throughBody bool) {
		b := breaker.MustNew(consecutive(1))
		client, address := serve(t, func(w http.ResponseWriter, r *http.Request) {
			text, err := io.ReadAll(r.Body)
			assert.NoError(t, err)
			_, _ = w.Write(text)
		}, &breakerhttp.Transport{Breaker: b, ThroughBody: throughBody}, start)
		text := strings.Repeat("body", 1<<15)
		for _, spoil := range []func(*http.Request){
			withBody(stream(text), -1),
			withBody(stream(text), int64(len(text))),
			withBody(strings.NewReader(text), int64(len(text))),
			withBody(strings.NewReader(text), -1),
		} {
			req := get(t, address)
			spoil(req)
			resp, err := client.Do(req)
			require.NoError(t, err)
			got, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			assert.True(t, text == string(got))
		}
		assert.Equal(t, map[breaker.Outcome]uint64{breaker.Success: 4}, outcomes(b))
	})
}

// A body of the request that fails after the headers of the response have come breaks off the response with it.
func TestRequestBodyFailsBehindTheResponse(t *testing.T) {
	for name, protocol := range protocols {
		t.Run(name, func(t *testing.T) {
			b := breaker.MustNew(consecutive(1))
			client, address := serve(t, func(w http.ResponseWriter, r *http.Request) {
				c := http.NewResponseController(w)
				_ = c.EnableFullDuplex() // HTTP/2 always is
				assert.NoError(t, c.Flush())
				_, err := io.Copy(w, r.Body)
				assert.Error(t, err)
				panic(http.ErrAbortHandler)
			}, &breakerhttp.Transport{Breaker: b, ThroughBody: true}, protocol.start)
			body, feed := io.Pipe()
			req := get(t, address)
			withBody(body, -1)(req)
			go func() { _, _ = io.WriteString(feed, "begun") }()
			resp, err := client.Do(req)
			require.NoError(t, err)
			require.NoError(t, feed.CloseWithError(errSource))
			_, err = io.ReadAll(resp.Body)
			require.Error(t, err)
			require.NoError(t, resp.Body.Close())
			assert.Equal(t, once(breaker.Ignored), outcomes(b))
		})
	}
}

// A base that has lost its connection closes the body of the request: that it can then be read no more is no fault of the body.
func TestBodyThatTheBaseCloses(t *testing.T) {
	b := breaker.MustNew(consecutive(2))
	body, _ := io.Pipe()
	transport := &breakerhttp.Transport{Breaker: b, Base: roundTripFunc(func(r *http.Request) (*http.Response, error) {
		assert.NoError(t, r.Body.Close())
		_, err := r.Body.Read(make([]byte, 1))
		assert.Equal(t, io.ErrClosedPipe, err)
		return nil, errors.New("connection reset")
	})}
	req := get(t, "http://example.com/")
	req.Body = body
	_, err := transport.RoundTrip(req)
	require.Error(t, err)
	assert.Equal(t, once(breaker.Transient), outcomes(b))
}

// A base may send a request again with GetBody: the second body is watched like the first, and one that cannot be had is the
// request's fault.
func TestBodyOfASecondAttempt(t *testing.T) {
	for _, test := range []struct {
		again io.ReadCloser
		err   error
		want  breaker.Outcome
	}{
		{io.NopCloser(brokenReader{strings.NewReader("bo"), errSource}), nil, breaker.Ignored},
		{nil, errSource, breaker.Ignored},
		{io.NopCloser(stream("body")), nil, breaker.Transient},
	} {
		b := breaker.MustNew(consecutive(2))
		transport := &breakerhttp.Transport{Breaker: b, Base: roundTripFunc(func(r *http.Request) (*http.Response, error) {
			_, _ = io.Copy(io.Discard, r.Body)
			r.Body.Close()
			body, err := r.GetBody()
			assert.Equal(t, test.err, err)
			if err == nil {
				_, _ = io.Copy(io.Discard, body)
			}
			return nil, errors.New("gave up")
		})}
		req := get(t, "http://example.com/")
		withBody(stream("body"), -1)(req)
		req.GetBody = func() (io.ReadCloser, error) { return test.again, test.err }
		_, err := transport.RoundTrip(req)
		require.Error(t, err)
		assert.Equal(t, once(test.want), outcomes(b))
	}
}

// It takes an error that says so and a request that is so: neither alone is a fault of the request.
func TestRequestFaultTakesTwoWitnesses(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(*http.Request)
		err   error
		want  breaker.Outcome
	}{
		"both":                 {requestFaults()["no host"], errors.New("http: no Host in request URL"), breaker.Ignored},
		"error alone":          {func(*http.Request) {}, errors.New("http: no Host in request URL"), breaker.Transient},
		"request alone":        {requestFaults()["no host"], errors.New("connection refused"), breaker.Transient},
		"closed while writing": {onlyIn1()["reserved trailer"], fmt.Errorf("read: %w", net.ErrClosed), breaker.Ignored},
		"closed by others":     {requestFaults()["no host"], fmt.Errorf("read: %w", net.ErrClosed), breaker.Transient},
		"marked":               {requestFaults()["no host"], breaker.Mark(errors.New("no Host in request URL"), breaker.Transient), breaker.Transient},
		"unspeakable":          {requestFaults()["no host"], unspeakable{}, breaker.Transient},
		"unknown length":       {withBody(strings.NewReader("body"), -1), errors.New("connection refused"), breaker.Transient},
		"length as zero":       {withBody(strings.NewReader("body"), 0), errors.New("connection refused"), breaker.Transient},
		"good length":          {withBody(strings.NewReader("body"), 4), errors.New("connection refused"), breaker.Transient},
		"good port":            {func(r *http.Request) { r.URL.Host = "h:65535" }, errors.New("invalid port"), breaker.Transient},
		"tab in a value":       {withHeader("Name", "a\tb"), errors.New("invalid header"), breaker.Transient},
	} {
		t.Run(name, func(t *testing.T) {
			b := breaker.MustNew(consecutive(2))
			req := get(t, "http://example.com:80/")
			test.spoil(req)
			_, err := (&breakerhttp.Transport{Breaker: b, Base: fail(test.err)}).RoundTrip(req)
			assert.Equal(t, test.err, err)
			assert.Equal(t, once(test.want), outcomes(b))
		})
	}
}

// unspeakable is an error whose text cannot be had.
type unspeakable struct{}

func (unspeakable) Error() string { panic("no text") }
