package breakerhttp_test

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
)

// A breaker around a httputil.ReverseProxy opened because browsers were closed: when a client goes away while the body is copied,
// the proxy panics with http.ErrAbortHandler, and a panic was a failure whoever had caused it. Nobody who gives up counts.
func TestRegression_ClientOfAReverseProxyThatGoesAwaySaysNothing(t *testing.T) {
	for name, protocol := range protocols {
		t.Run(name, func(t *testing.T) {
			backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, "begun")
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			}))
			defer backend.Close()
			target, err := url.Parse(backend.URL)
			require.NoError(t, err)
			proxy := httputil.NewSingleHostReverseProxy(target)
			proxy.FlushInterval = -1
			proxy.ErrorLog = log.New(io.Discard, "", 0)

			b := breaker.MustNew(consecutive(1))
			panicked := make(chan any, 1)
			front := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer func() { panicked <- recover() }()
				_ = b.Execute(r.Context(), func(ctx context.Context) error {
					proxy.ServeHTTP(w, r.WithContext(ctx))
					return nil
				})
			}))
			protocol.start(front)
			defer front.Close()

			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			resp, err := front.Client().Do(get(t, front.URL).WithContext(ctx))
			require.NoError(t, err)
			_, err = io.ReadFull(resp.Body, make([]byte, len("begun")))
			require.NoError(t, err)
			cancel()
			assert.Equal(t, http.ErrAbortHandler, <-panicked, "the panic goes on unchanged")
			require.NoError(t, resp.Body.Close())
			assert.Equal(t, once(breaker.Ignored), outcomes(b))
			assert.Equal(t, breaker.Closed, b.State())
		})
	}
}
