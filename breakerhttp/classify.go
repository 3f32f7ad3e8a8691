package breakerhttp

import (
	"errors"
	"net/http"

	"github.com/brownout-go/breaker"
)

// Classify is what a [Transport] makes of a response or an error. For a probe, an answer that a working server gives is proof
// that it works, even where it blames the caller:
//
//	status                               any request   a probe
//	1xx, 2xx, 3xx, 404, 410              Success       Success
//	407                                  Permanent     Permanent: a proxy answered, not the server
//	408                                  Transient     Transient
//	429                                  Throttled     Throttled
//	every other 4xx, 501, 505            Permanent     Success
//	every other 5xx                      Transient     Transient
//	anything below 100 or above 599      Success       Success
//
// The second column is what Classify returns; the third is what a Transport makes of that, also of the Permanent of another
// classifier. An error is [breaker.Transient], also one that broke a body off; the refusal of another breaker is
// [breaker.Ignored].
//
// A 503 is Transient with a Retry-After as well as without, because that is how many outages look. Settings.BreakDurationFunc
// sees a failed response as the [StatusError] in StateChange.Err, with the header's wait in it: [BreakDuration] makes that the
// break.
//
// The Transport judges before it asks: a cancelled request is Ignored, a [breaker.Mark] on the error stands, and what failed on
// the side of the request is Ignored.
func Classify(resp *http.Response, err error) breaker.Outcome {
	if errors.Is(err, breaker.ErrRejected) {
		return breaker.Ignored
	}
	if err != nil || resp == nil {
		return breaker.Transient
	}
	return classifyStatus(resp.StatusCode)
}

func classifyStatus(code int) breaker.Outcome {
	switch code {
	case http.StatusTooManyRequests:
		return breaker.Throttled
	case http.StatusRequestTimeout:
		return breaker.Transient
	case http.StatusNotFound, http.StatusGone:
		return breaker.Success
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return breaker.Permanent
	}
	switch code / 100 {
	case 4:
		return breaker.Permanent
	case 5:
		return breaker.Transient
	default:
		return breaker.Success
	}
}

// proven returns what an answer counts as for a probe. The caller's fault was found by a server that works, unless a proxy on
// the way found it.
func proven(o breaker.Outcome, code int) breaker.Outcome {
	if o == breaker.Permanent && code != http.StatusProxyAuthRequired {
		return breaker.Success
	}
	return o
}
