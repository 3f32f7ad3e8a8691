package breakerhttp_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
	"github.com/brownout-go/breaker/breakerhttp"
)

func newGroup(t *testing.T, settings func(string) breaker.Settings) *breaker.Group[string] {
	t.Helper()
	g, err := breaker.NewGroup(settings, breaker.GroupSettings{})
	require.NoError(t, err)
	return g
}

func TestPerHostKey(t *testing.T) {
	for _, test := range []struct{ url, key string }{
		{"http://example.com/", "example.com:80"},
		{"http://example.com:80/path", "example.com:80"},
		{"http://EXAMPLE.com:/", "example.com:80"},
		{"https://Example.Com/", "example.com:443"},
		{"https://example.com:443", "example.com:443"},
		{"http://example.com:443", "example.com:443"},
		{"http://example.com:8080", "example.com:8080"},
		{"http://user:secret@example.com/", "example.com:80"},
		{"http://127.0.0.1", "127.0.0.1:80"},
		{"http://[::1]", "[::1]:80"},
		{"https://[FE80::A]:8443", "[fe80::a]:8443"},
		{"spdy://example.com", "example.com:"},
	} {
		g := newGroup(t, func(string) breaker.Settings { return breaker.Settings{} })
		b, err := breakerhttp.PerHost(g)(get(t, test.url))
		require.NoError(t, err)
		assert.Equal(t, test.key, b.Name(), test.url)
	}
}

func TestPerHostIgnoresTheHostHeader(t *testing.T) {
	g := newGroup(t, func(string) breaker.Settings { return breaker.Settings{} })
	req := get(t, "http://10.0.0.1/")
	req.Host = "example.com"
	b, err := breakerhttp.PerHost(g)(req)
	require.NoError(t, err)
	assert.Equal(t, "10.0.0.1:80", b.Name())
}

func TestPerHostFaults(t *testing.T) {
	assert.PanicsWithValue(t, "breakerhttp: PerHost of a nil group", func() { breakerhttp.PerHost(nil) })

	invalid := breakerhttp.PerHost(newGroup(t, func(string) breaker.Settings { return breaker.Settings{MinCalls: -1} }))
	transport := &breakerhttp.Transport{Select: invalid, Base: answer(200, "")}
	_, err := transport.RoundTrip(get(t, "http://example.com/"))
	var settings *breaker.SettingsError
	require.ErrorAs(t, err, &settings)

	_, err = transport.RoundTrip(&http.Request{Method: http.MethodGet})
	require.ErrorContains(t, err, "URL")
}

// One host that is down is refused; another, and the same one on another port, are not.
func TestPerHostKeepsHostsApart(t *testing.T) {
	base := roundTripFunc(func(req *http.Request) (*http.Response, error) {
		if req.URL.Host == "down.example" || req.URL.Host == "DOWN.example:80" {
			return answer(503, "")(req)
		}
		return answer(200, "")(req)
	})
	g := newGroup(t, func(string) breaker.Settings { return consecutive(2) })
	client := &http.Client{Transport: &breakerhttp.Transport{Base: base, Select: breakerhttp.PerHost(g)}}
	for i, step := range []struct {
		url     string
		refused bool
	}{
		{"http://down.example", false},
		{"http://DOWN.example:80", false},
		{"http://down.example", true},
		{"http://down.example:80/else", true},
		{"http://up.example", false},
		{"http://down.example:8080", false},
		{"https://down.example", false},
	} {
		resp, err := client.Get(step.url)
		assert.Equal(t, step.refused, err != nil, "step %d: %v", i, err)
		if err != nil {
			require.ErrorIs(t, err, breaker.ErrRejected)
			continue
		}
		require.NoError(t, resp.Body.Close())
	}
	assert.Equal(t, 4, g.Len())
}
