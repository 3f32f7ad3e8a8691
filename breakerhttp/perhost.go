package breakerhttp

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/brownout-go/breaker"
)

var errNoURL = errors.New("breakerhttp: request without a URL")

// PerHost returns a Select function for a [Transport]: each host and port that requests are sent to has a breaker of its own in
// the group. The key is host:port in lower case, with the scheme's port where the URL names none: http://Example.com and
// http://example.com:80 share "example.com:80". A Host header changes nothing, since the URL says where the request goes.
func PerHost(g *breaker.Group[string]) func(*http.Request) (*breaker.Breaker, error) {
	if g == nil {
		panic("breakerhttp: PerHost of a nil group")
	}
	return func(req *http.Request) (*breaker.Breaker, error) {
		if req.URL == nil {
			return nil, errNoURL
		}
		return g.Get(hostKey(req.URL))
	}
}

// hostKey returns host:port in lower case. A scheme whose port is unknown leaves the port empty.
func hostKey(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = defaultPorts[u.Scheme]
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

var defaultPorts = map[string]string{"http": "80", "https": "443"}
