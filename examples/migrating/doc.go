// Package migrating shows one client guarded by other circuit breakers and by this one, side by side. It is the code of
// docs/migrating.md.
package migrating

import (
	"context"
	"errors"
)

// fetcher asks the dependency for the price of an item.
type fetcher func(ctx context.Context, item string) (int, error)

// errNoPrice is an answer, not a failure of the dependency: it looked, and there is no price.
var errNoPrice = errors.New("no price")

// errBusy refuses a call that would exceed the limit on concurrent calls.
var errBusy = errors.New("too many calls at once")

// limit limits how many calls run at once.
type limit chan struct{}

func (l limit) enter() bool {
	select {
	case l <- struct{}{}:
		return true
	default:
		return false
	}
}

func (l limit) leave() { <-l }
