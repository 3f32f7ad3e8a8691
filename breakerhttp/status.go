package breakerhttp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/brownout-go/breaker"
)

// StatusError is what a breaker is told of a response that counts as a failure: StateChange.Err and RejectedError.Cause hold it
// behind a [breaker.Mark], so look for it with [errors.As]. The caller of the request never sees it: to the caller the response
// is a response. It holds no header but the hint, no path, no query and no user.
type StatusError struct {
	StatusCode int
	Host       string        // of the URL that was asked, with its port if the URL names one
	RetryAfter time.Duration // that the response asked for, above zero; 0: it did not
}

// Error names the host and the status.
func (e *StatusError) Error() string {
	return strings.TrimRight(fmt.Sprintf("breakerhttp: %s answered %d %s", e.Host, e.StatusCode, http.StatusText(e.StatusCode)), " ")
}

// RetryAfter reads the Retry-After of a response: whole seconds, or a date in one of the three formats of HTTP, which lasts from
// now. A wait too long for a time.Duration is the longest one. It is false without the header, for what is neither form, and for
// a wait that is not positive.
func RetryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if text != "" && strings.Trim(text, "0123456789") == "" {
		seconds, _ := strconv.ParseInt(text, 10, 64) // the largest number, if it is too large
		wait := time.Duration(min(seconds, int64(math.MaxInt64/time.Second))) * time.Second
		if seconds > int64(math.MaxInt64/time.Second) {
			wait = math.MaxInt64
		}
		return wait, wait > 0
	}
	at, err := http.ParseTime(text)
	if err != nil || !at.After(now) {
		return 0, false
	}
	return at.Sub(now), true // which saturates
}

// BreakDuration returns a function for Settings.BreakDurationFunc: the break lasts as long as the failed response asked for in
// Retry-After, and at most longest. Where the circuit opened for anything but a response with that header, the break stays what
// it is. It reads [StatusError.RetryAfter] of the very failure that opened the circuit, so a hint cannot outlive its response. A
// longest that is not positive panics.
func BreakDuration(longest time.Duration) func(context.Context, breaker.StateChange) (time.Duration, error) {
	if longest <= 0 {
		panic("breakerhttp: BreakDuration needs a longest break above zero")
	}
	return func(_ context.Context, change breaker.StateChange) (time.Duration, error) {
		var failed *StatusError
		if errors.As(change.Err, &failed) && failed.RetryAfter > 0 {
			return min(failed.RetryAfter, longest), nil
		}
		return change.Break, nil
	}
}
