package main

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/brownout-go/breaker"
)

const (
	maxOrder = 4 << 10         // bytes of a body
	patience = 5 * time.Second // with the observers of a change
)

// order is the body of an admin request: one breaker by its name, or all of them.
type order struct {
	Name string `json:"name"`
	All  bool   `json:"all"`
}

// admin isolates or resets one breaker or all of them. It answers with the resulting health once every observer has seen the
// change, or with a 202 if the change is made but an observer is slow.
func (s *service) admin(one func(*breaker.Breaker, context.Context) error,
	all func(*breaker.Monitor, context.Context) error) http.Handler {
	return s.authorized(func(w http.ResponseWriter, r *http.Request) {
		o, status, err := readOrder(w, r)
		if err != nil {
			problem(w, status, err.Error())
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		if o.All {
			err = all(s.monitor, ctx)
		} else if b := s.find(o.Name); b != nil {
			err = one(b, ctx)
		} else {
			problem(w, http.StatusNotFound, fmt.Sprintf("there is no breaker %q", o.Name))
			return
		}
		if err != nil {
			reply(w, http.StatusAccepted, map[string]string{"status": "changed, but not every observer has heard of it yet"})
			return
		}
		s.health(w, r)
	})
}

func (s *service) find(name string) *breaker.Breaker {
	for _, b := range s.monitor.Breakers() {
		if b.Name() == name {
			return b
		}
	}
	return nil
}

// authorized lets only requests with the bearer token through. Hashes of equal length are compared, in constant time, so that
// the response time reveals neither how much of a token is right nor how long the right one is.
func (s *service) authorized(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		sum := sha256.Sum256([]byte(token))
		if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(sum[:], s.token[:]) != 1 {
			w.Header().Set("WWW-Authenticate", `Bearer realm="admin"`)
			problem(w, http.StatusUnauthorized, "missing or wrong bearer token")
			return
		}
		next(w, r)
	})
}

// readOrder reads the body, which must be one order and nothing else, or returns the status that says what is wrong with it.
func readOrder(w http.ResponseWriter, r *http.Request) (o order, status int, err error) {
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxOrder))
	decoder.DisallowUnknownFields()
	if err = decoder.Decode(&o); err == nil {
		_, err = decoder.Token() // what follows the order must be the end
		if err == nil {
			err = errors.New("more than one value")
		} else if errors.Is(err, io.EOF) {
			err = nil
		}
	}
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		return o, http.StatusRequestEntityTooLarge, fmt.Errorf("the body is larger than %d bytes", maxOrder)
	case err != nil:
		return o, http.StatusBadRequest, fmt.Errorf(`the body is no order such as {"name":"payments"}: %w`, err)
	case (o.Name == "") != o.All:
		return o, http.StatusBadRequest, errors.New(`say either {"name":"…"} or {"all":true}`)
	default:
		return o, http.StatusOK, nil
	}
}
