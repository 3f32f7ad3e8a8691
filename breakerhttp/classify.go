package breakerhttp

import (
	"errors"
	"net/http"

	"github.com/brownout-go/breaker"
)

// Classify is what a [Transport] makes of a response or an error:
//
//   - an error is [breaker.Transient], also one that broke a body off; the refusal of another breaker is [breaker.Ignored];
//   - 429 is [breaker.Throttled];
//   - 408 and 5xx are [breaker.Transient], except 501 and 505;
//   - 404 and 410 are answers: [breaker.Success];
//   - every other 4xx, 501 and 505 are [breaker.Permanent];
//   - the rest is [breaker.Success].
//
// A 503 is Transient with a Retry-After as well as without, because that is how many outages look; the header can be the
// break, through Settings.BreakDurationFunc.
//
// The breaker itself judges before it asks: a cancelled request is Ignored, and a [breaker.Mark] on the error stands.
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
