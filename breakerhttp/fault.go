package breakerhttp

import (
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
)

// isRequestFault reports whether net/http has refused to send a request. That takes two witnesses: the request breaks one of its
// rules, and the error says so. A base of another kind may have other rules, and a server can write what it likes into its
// answer, but it cannot do so before the request is sent.
func isRequestFault(req *http.Request, err error) (yes bool) {
	defer func() { yes = recover() == nil && yes }() // an error whose text cannot be had says nothing
	for _, f := range requestFaults {
		if f.in(req) && (strings.Contains(err.Error(), f.says) || f.writing && errors.Is(err, net.ErrClosed)) {
			return true
		}
	}
	return false
}

// requestFaults are the rules of net/http. Those of writing are noticed on a connection, which is closed for it: what is reading
// from it may be the first to tell.
var requestFaults = []struct {
	says    string // the error, of HTTP/1 and HTTP/2
	writing bool
	in      func(*http.Request) bool
}{
	{"nil Request.URL", false, func(r *http.Request) bool { return r.URL == nil }},
	{"nil Request.Header", false, func(r *http.Request) bool { return r.Header == nil }},
	{"invalid header", false, func(r *http.Request) bool { return !isValidHeader(r.Header) }},
	{"invalid trailer", false, func(r *http.Request) bool { return !isValidHeader(r.Trailer) }},
	{"unsupported protocol scheme", false, hasUnknownScheme},
	{"unsupported scheme", false, hasUnknownScheme},
	{"invalid method", false, func(r *http.Request) bool { return r.Method != "" && !isToken(r.Method) }},
	{"no Host in request URL", false, func(r *http.Request) bool { return r.URL != nil && r.URL.Host == "" }},
	{"invalid port", false, hasInvalidPort},
	{"request header", false, hasConnectionHeader},
	{"invalid Trailer key", true, hasReservedTrailer},
	{"control character in Request.URL", true, hasControlCharacter},
	{"with nil Body", true, func(r *http.Request) bool { return r.Body == nil && r.ContentLength != 0 }},
}

// hasConnectionHeader reports whether there is a header that HTTP/2 may refuse, since it has no use for it.
func hasConnectionHeader(r *http.Request) bool {
	return r.Header["Connection"] != nil || r.Header["Upgrade"] != nil || r.Header["Transfer-Encoding"] != nil
}

func hasUnknownScheme(r *http.Request) bool {
	return r.URL != nil && r.URL.Scheme != "http" && r.URL.Scheme != "https"
}

func hasInvalidPort(r *http.Request) bool {
	if r.URL == nil || r.URL.Port() == "" {
		return false
	}
	_, err := strconv.ParseUint(r.URL.Port(), 10, 16)
	return err != nil
}

func hasControlCharacter(r *http.Request) bool {
	return r.URL != nil && strings.ContainsFunc(r.URL.RequestURI(), func(c rune) bool { return c < ' ' || c == 0x7f })
}

// hasReservedTrailer reports whether a trailer has the name of a header that frames the body.
func hasReservedTrailer(r *http.Request) bool {
	for name := range r.Trailer {
		switch http.CanonicalHeaderKey(name) {
		case "Transfer-Encoding", "Trailer", "Content-Length":
			return true
		}
	}
	return false
}

// isValidHeader reports whether every name is a token and no value holds a control character but a tab.
func isValidHeader(h http.Header) bool {
	for name, values := range h {
		if !isToken(name) {
			return false
		}
		for _, value := range values {
			if strings.ContainsFunc(value, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }) {
				return false
			}
		}
	}
	return true
}

// isToken reports whether s is a token of RFC 9110, section 5.6.2.
func isToken(s string) bool {
	return s != "" && strings.Trim(s, "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}
