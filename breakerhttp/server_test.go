package breakerhttp_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
	"github.com/brownout-go/breaker/breakerhttp"
)

var protocols = map[string]struct {
	start func(*httptest.Server)
	major int
}{"HTTP/1.1": {http1, 1}, "HTTP/2": {http2, 2}}

// everyWay runs a test against a server of each protocol, with outcomes at the headers and at the end of the body.
func everyWay(t *testing.T, test func(t *testing.T, start func(*httptest.Server), throughBody bool)) {
	for name, protocol := range protocols {
		t.Run(name, func(t *testing.T) {
			bothWays(t, func(t *testing.T, throughBody bool) { test(t, protocol.start, throughBody) })
		})
	}
}

// An outage, the refusals and the recovery as a client sees them. While the circuit is open the server hears nothing, and the
// bodies of the requests are not read.
func TestOutageAndRecovery(t *testing.T) {
	everyWay(t, func(t *testing.T, start func(*httptest.Server), throughBody bool) {
		mock := clock.NewMock()
		s := consecutive(3)
		s.Clock = mock
		b := breaker.MustNew(s)
		var status, requests atomic.Int32
		status.Store(503)
		echo := func(w http.ResponseWriter, r *http.Request) {
			requests.Add(1)
			text, _ := io.ReadAll(r.Body)
			w.WriteHeader(int(status.Load()))
			_, _ = w.Write(text)
		}
		client, address := serve(t, echo, &breakerhttp.Transport{Breaker: b, ThroughBody: throughBody}, start)
		send := func(text string) error {
			resp, err := client.Post(address, "text/plain", strings.NewReader(text))
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			got, err := io.ReadAll(resp.Body)
			assert.Equal(t, text, string(got))
			return err
		}
		for range 3 {
			require.NoError(t, send("hello"))
		}
		body := newWatchedBody()
		_, err := client.Post(address, "text/plain", body)
		require.ErrorIs(t, err, breaker.ErrRejected)
		assert.Zero(t, body.reads.Load())
		assert.EqualValues(t, 1, body.closes.Load())
		assert.EqualValues(t, 3, requests.Load())

		status.Store(200)
		mock.Add(s.BreakDuration)
		require.NoError(t, send("one"))
		require.NoError(t, send("two"))
		assert.Equal(t, breaker.Closed, b.State())
		assert.Equal(t, map[breaker.Outcome]uint64{breaker.Transient: 3, breaker.Success: 2}, outcomes(b))
	})
}

func TestProtocol(t *testing.T) {
	for name, protocol := range protocols {
		client, address := serve(t, func(http.ResponseWriter, *http.Request) {},
			&breakerhttp.Transport{Breaker: breaker.MustNew(consecutive(1))}, protocol.start)
		resp, err := client.Get(address)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, protocol.major, resp.ProtoMajor, name)
	}
}

// Each hop of a redirect is a request: it has an outcome of its own and can be refused by itself.
func TestRedirects(t *testing.T) {
	everyWay(t, func(t *testing.T, start func(*httptest.Server), throughBody bool) {
		b := breaker.MustNew(consecutive(1))
		client, address := serve(t, func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/down":
				w.WriteHeader(500)
			case "/end":
				fmt.Fprint(w, "end")
			default:
				http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusTemporaryRedirect)
			}
		}, &breakerhttp.Transport{Breaker: b, ThroughBody: throughBody}, start)
		resp, err := client.Post(address+"/?to=/end", "text/plain", strings.NewReader("sent twice"))
		require.NoError(t, err)
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, "end", string(text))
		assert.Equal(t, map[breaker.Outcome]uint64{breaker.Success: 2}, outcomes(b))

		resp, err = client.Get(address + "/?to=/down")
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, map[breaker.Outcome]uint64{breaker.Success: 3, breaker.Transient: 1}, outcomes(b))
		_, err = client.Get(address + "/?to=/end")
		require.ErrorIs(t, err, breaker.ErrRejected)
	})
}

// The second hop goes to a host whose circuit is open.
func TestRedirectToARefusedHost(t *testing.T) {
	g := newGroup(t, func(string) breaker.Settings { return consecutive(1) })
	var other string
	client, address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other, http.StatusFound)
	}, &breakerhttp.Transport{Select: breakerhttp.PerHost(g)}, http1)
	other = strings.Replace(address, "127.0.0.1", "localhost", 1)
	target, err := url.Parse(other)
	require.NoError(t, err)
	refusing, err := g.Get(target.Host)
	require.NoError(t, err)
	refusing.Isolate()

	_, err = client.Get(address)
	var refusal *breaker.RejectedError
	require.ErrorAs(t, err, &refusal)
	assert.Equal(t, breaker.Isolated, refusal.State)
	assert.Equal(t, 2, g.Len())
}

// A server that dies in the middle of its answer has answered, and failed: only ThroughBody sees it.
func TestStreamThatBreaksOff(t *testing.T) {
	everyWay(t, func(t *testing.T, start func(*httptest.Server), throughBody bool) {
		b := breaker.MustNew(consecutive(2))
		client, address := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/length" {
				w.Header().Set("Content-Length", "1000")
			}
			fmt.Fprint(w, "the beginning")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, &breakerhttp.Transport{Breaker: b, ThroughBody: throughBody}, start)
		for _, path := range []string{"/stream", "/length"} {
			resp, err := client.Get(address + path)
			require.NoError(t, err)
			_, err = io.ReadAll(resp.Body)
			require.Error(t, err)
			require.NoError(t, resp.Body.Close())
		}
		if throughBody {
			assert.Equal(t, map[breaker.Outcome]uint64{breaker.Transient: 2}, outcomes(b))
			assert.Equal(t, breaker.Open, b.State())
		} else {
			assert.Equal(t, map[breaker.Outcome]uint64{breaker.Success: 2}, outcomes(b))
		}
	})
}

// A client that reads a part of an endless stream and closes it has what it wanted, but has not seen how it would have gone on.
func TestStreamThatTheClientCloses(t *testing.T) {
	everyWay(t, func(t *testing.T, start func(*httptest.Server), throughBody bool) {
		b := breaker.MustNew(consecutive(1))
		client, address := serve(t, func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintln(w, "first")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, &breakerhttp.Transport{Breaker: b, ThroughBody: throughBody}, start)
		resp, err := client.Get(address)
		require.NoError(t, err)
		line, err := bufio.NewReader(resp.Body).ReadString('\n')
		require.NoError(t, err)
		assert.Equal(t, "first\n", line)
		require.NoError(t, resp.Body.Close())
		want := breaker.Success
		if throughBody {
			want = breaker.Ignored
		}
		assert.Equal(t, once(want), outcomes(b))
	})
}

// A request that its caller gives up, before the headers or in the body, says nothing about the server.
func TestCancelledRequest(t *testing.T) {
	everyWay(t, func(t *testing.T, start func(*httptest.Server), throughBody bool) {
		b := breaker.MustNew(consecutive(1))
		arrived := make(chan struct{})
		client, address := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/body" {
				_ = http.NewResponseController(w).Flush()
			} else {
				arrived <- struct{}{}
			}
			<-r.Context().Done()
		}, &breakerhttp.Transport{Breaker: b, ThroughBody: throughBody}, start)

		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-arrived
			cancel()
		}()
		_, err := client.Do(get(t, address).WithContext(ctx))
		require.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, once(breaker.Ignored), outcomes(b))

		ctx, cancel = context.WithCancel(t.Context())
		resp, err := client.Do(get(t, address+"/body").WithContext(ctx))
		require.NoError(t, err)
		cancel()
		_, err = io.ReadAll(resp.Body)
		require.ErrorIs(t, err, context.Canceled)
		require.NoError(t, resp.Body.Close())
		if throughBody {
			assert.Equal(t, map[breaker.Outcome]uint64{breaker.Ignored: 2}, outcomes(b))
		} else {
			assert.Equal(t, map[breaker.Outcome]uint64{breaker.Ignored: 1, breaker.Success: 1}, outcomes(b))
		}
		assert.Equal(t, breaker.Closed, b.State())
	})
}

func TestServerThatIsGone(t *testing.T) {
	b := breaker.MustNew(consecutive(1))
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	client := &http.Client{Transport: &breakerhttp.Transport{Breaker: b}} // and http.DefaultTransport
	_, err := client.Get(server.URL)
	require.Error(t, err)
	assert.Equal(t, once(breaker.Transient), outcomes(b))
	_, err = client.Get(server.URL)
	require.ErrorIs(t, err, breaker.ErrRejected)
}

// After 101 Switching Protocols the connection is the caller's, to read and to write.
func TestUpgrade(t *testing.T) {
	bothWays(t, func(t *testing.T, throughBody bool) {
		b := breaker.MustNew(consecutive(1))
		client, address := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Connection", "Upgrade")
			w.Header().Set("Upgrade", "echo")
			w.WriteHeader(http.StatusSwitchingProtocols)
			connection, buffered, err := http.NewResponseController(w).Hijack()
			if assert.NoError(t, err) {
				defer connection.Close()
				line, _ := buffered.ReadString('\n')
				_, _ = io.WriteString(connection, line)
			}
		}, &breakerhttp.Transport{Breaker: b, ThroughBody: throughBody}, http1)
		req := get(t, address)
		req.Header.Set("Connection", "Upgrade")
		req.Header.Set("Upgrade", "echo")
		resp, err := client.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		assert.Equal(t, once(breaker.Success), outcomes(b), "the connection may last for days")
		connection, ok := resp.Body.(io.ReadWriteCloser)
		require.True(t, ok)
		_, err = io.WriteString(connection, "hello\n")
		require.NoError(t, err)
		text, err := io.ReadAll(connection)
		require.NoError(t, err)
		assert.Equal(t, "hello\n", string(text))
	})
}

// Whatever comes back to a hundred goroutines, each admitted request has one outcome and each other one is a refusal.
func TestHundredGoroutines(t *testing.T) {
	const goroutines, requests = 100, 5
	everyWay(t, func(t *testing.T, start func(*httptest.Server), throughBody bool) {
		s := consecutive(5)
		s.BreakDuration = time.Millisecond
		b := breaker.MustNew(s)
		var served, refused atomic.Uint64
		client, address := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if served.Add(1)%50 < 10 {
				w.WriteHeader(500)
			}
			fmt.Fprint(w, "body")
		}, &breakerhttp.Transport{Breaker: b, ThroughBody: throughBody}, start)
		var all sync.WaitGroup
		for range goroutines {
			all.Go(func() {
				for range requests {
					resp, err := client.Get(address)
					if err != nil {
						assert.ErrorIs(t, err, breaker.ErrRejected)
						refused.Add(1)
						continue
					}
					_, err = io.Copy(io.Discard, resp.Body)
					assert.NoError(t, err)
					assert.NoError(t, resp.Body.Close())
				}
			})
		}
		all.Wait()
		n := b.Snapshot().Totals
		assert.Equal(t, refused.Load(), n.Rejected)
		assert.Equal(t, served.Load(), n.Successes+n.Transient+n.Discarded)
		assert.EqualValues(t, goroutines*requests, served.Load()+n.Rejected)
		assert.Zero(t, b.Snapshot().ProbesInFlight)
	})
}
