package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
)

// direct hands requests to a handler, so that a whole outage runs on the time of a synctest bubble.
type direct struct {
	handler  http.Handler
	requests atomic.Int64
}

func (d *direct) RoundTrip(request *http.Request) (*http.Response, error) {
	d.requests.Add(1)
	answer := httptest.NewRecorder()
	d.handler.ServeHTTP(answer, request)
	return answer.Result(), request.Context().Err()
}

// bubble is a pipeline whose server is out from the first second to the fifth.
type bubble struct {
	*pipeline
	server           *direct
	out, deadLetters bytes.Buffer
}

func newBubble(t *testing.T, s breaker.Settings) *bubble {
	outage := time.Now().Add(time.Second)
	server := &direct{handler: &priceServer{outage, outage.Add(4 * time.Second)}}
	p, err := newPipeline(&prices{&http.Client{Transport: server}, "http://prices"}, s, 8)
	require.NoError(t, err)
	return &bubble{pipeline: p, server: server}
}

// ids reads the numbers of the orders in a file, in order.
func ids(t *testing.T, file io.Reader) (all []int) {
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var o order
		require.NoError(t, json.Unmarshal(lines.Bytes(), &o))
		all = append(all, o.ID)
	}
	slices.Sort(all)
	return all
}

// numbered returns the numbers up to n of those orders that the server takes, and of the others.
func numbered(n int) (good, bad []int) {
	for o := range orders(n) {
		if o.ID%50 == 0 {
			bad = append(bad, o.ID)
		} else {
			good = append(good, o.ID)
		}
	}
	return good, bad
}

func TestPipeline_WaitsForTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, settings(nil))
		start := time.Now()
		go func() {
			time.Sleep(2 * time.Second)
			read, requests := b.tally.read.Load(), b.server.requests.Load()
			assert.Equal(t, 8, b.breaker.Snapshot().Waiting)
			time.Sleep(2 * time.Second)
			assert.Equal(t, read, b.tally.read.Load(), "nothing is read while all wait")
			assert.LessOrEqual(t, b.server.requests.Load(), requests+5, "the server gets a probe now and then")
		}()
		require.NoError(t, b.run(t.Context(), orders(2000), &b.out, &b.deadLetters))
		assert.Less(t, time.Since(start), 20*time.Second)

		good, bad := numbered(2000)
		assert.Equal(t, good, ids(t, &b.out), "each once")
		assert.Contains(t, b.deadLetters.String(), `"error":"the server answered 422 Unprocessable Entity"`)
		assert.Equal(t, bad, ids(t, &b.deadLetters))
		assert.NoError(t, report(io.Discard, options{orders: 2000}, &b.tally, true))
	})
}

// A refusal after MaxWait is no reason for a dead letter: the order has not been tried.
func TestPipeline_RefusalIsNoDeadLetter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := settings(nil)
		s.MaxWait = 50 * time.Millisecond
		b := newBubble(t, s)
		require.NoError(t, b.run(t.Context(), orders(1000), &b.out, &b.deadLetters))
		assert.Positive(t, b.breaker.Snapshot().Totals.Rejected)
		good, bad := numbered(1000)
		assert.Equal(t, good, ids(t, &b.out))
		assert.Equal(t, bad, ids(t, &b.deadLetters))
	})
}

func TestPipeline_Interrupted(t *testing.T) {
	for _, test := range []struct {
		name     string
		after    time.Duration
		returned int64
	}{
		{"healthy", 500 * time.Millisecond, -1}, // depends on who is at work
		{"in the outage", 3 * time.Second, 8},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t, settings(nil))
				ctx, cancel := context.WithTimeout(t.Context(), test.after)
				defer cancel()
				start := time.Now()
				err := b.run(ctx, orders(10_000), &b.out, &b.deadLetters)
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				assert.Less(t, time.Since(start)-test.after, 20*time.Millisecond, "the requests in flight, no more")
				tally := &b.tally
				assert.Equal(t, tally.read.Load(), tally.priced.Load()+tally.dead.Load()+tally.returned.Load())
				if test.returned >= 0 {
					assert.Equal(t, test.returned, tally.returned.Load())
				}
				assert.Len(t, ids(t, &b.out), int(tally.priced.Load()))
				assert.Zero(t, b.breaker.Snapshot().Waiting)
				out := new(strings.Builder)
				assert.NoError(t, report(out, options{orders: 10_000}, tally, false))
				assert.Contains(t, out.String(), "No order is lost.")
			})
		})
	}
}

// fullDisk fails after so many writes.
type fullDisk struct{ left int }

var errFull = errors.New("no space left")

func (d *fullDisk) Write(p []byte) (int, error) {
	if d.left--; d.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

// An order that could not be written down is not done.
func TestPipeline_DiskFull(t *testing.T) {
	for _, test := range []struct {
		name             string
		out, deadLetters int // writes until the disk is full
	}{{"results", 100, 1000}, {"dead letters", 1000, 3}} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t, settings(nil))
				err := b.run(t.Context(), orders(1000), &fullDisk{test.out}, &fullDisk{test.deadLetters})
				assert.ErrorIs(t, err, errFull)
				tally := &b.tally
				assert.Less(t, tally.read.Load(), int64(1000))
				assert.Positive(t, tally.returned.Load())
				assert.NoError(t, report(io.Discard, options{orders: 1000}, tally, false))
			})
		})
	}
}

// The same over real connections, with a server that is out for its first hundred milliseconds.
func TestPipeline_OverHTTP(t *testing.T) {
	outage := time.Now()
	server := httptest.NewServer(&priceServer{outage, outage.Add(100 * time.Millisecond)})
	defer server.Close()
	s := settings(nil)
	s.BreakDuration, s.Recovery.Min = 20*time.Millisecond, 20*time.Millisecond
	p, err := newPipeline(&prices{server.Client(), server.URL}, s, 8)
	require.NoError(t, err)
	var out, deadLetters bytes.Buffer
	require.NoError(t, p.run(t.Context(), orders(100), &out, &deadLetters))
	good, bad := numbered(100)
	assert.Equal(t, good, ids(t, &out))
	assert.Equal(t, bad, ids(t, &deadLetters))
	assert.Positive(t, p.breaker.Snapshot().Totals.Opens)
}

func TestPrices_Errors(t *testing.T) {
	for status, want := range map[int]breaker.Outcome{
		http.StatusOK:                  breaker.Success,
		http.StatusNotFound:            breaker.Permanent,
		http.StatusUnprocessableEntity: breaker.Permanent,
		http.StatusTooManyRequests:     breaker.Throttled,
		http.StatusServiceUnavailable:  breaker.Transient,
	} {
		server := &direct{handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `{"price":7}`)
		})}
		b := breaker.MustNew(settings(nil))
		client := &prices{&http.Client{Transport: server}, "http://prices"}
		price, err := breaker.Execute(t.Context(), b, func(ctx context.Context) (int, error) {
			return client.ask(ctx, order{ID: 1})
		})
		assert.Equal(t, want == breaker.Permanent, isPermanent(err), status)
		assert.Equal(t, want == breaker.Success, price == 7, status)
		totals := b.Snapshot().Totals
		assert.Equal(t, uint64(1), map[breaker.Outcome]uint64{
			breaker.Success: totals.Successes, breaker.Permanent: totals.Permanent,
			breaker.Throttled: totals.Throttled, breaker.Transient: totals.Transient,
		}[want], status)
	}
}

func TestReport_SaysWhatIsMissing(t *testing.T) {
	var lost, short tally
	lost.read.Store(10)
	lost.priced.Store(9)
	assert.ErrorContains(t, report(io.Discard, options{orders: 10}, &lost, true), "1 orders are unaccounted for")
	short.read.Store(9)
	short.priced.Store(9)
	assert.ErrorContains(t, report(io.Discard, options{orders: 10}, &short, true), "ended before the orders did")
	assert.NoError(t, report(io.Discard, options{orders: 10}, &short, false))
}

func TestRun(t *testing.T) {
	dir, out := t.TempDir(), new(bytes.Buffer)
	require.NoError(t, run(t.Context(), []string{"-orders", "100", "-dir", dir}, out, io.Discard))
	assert.Contains(t, out.String(), "100 of 100 orders read: 98 priced, 2 dead letters, 0 given back")
	assert.Contains(t, out.String(), "No order is lost.")
	file, err := os.Open(filepath.Join(dir, "dead-letters.jsonl"))
	require.NoError(t, err)
	defer file.Close()
	assert.Equal(t, []int{50, 100}, ids(t, file))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	out.Reset()
	assert.ErrorIs(t, run(ctx, []string{"-dir", dir}, out, io.Discard), context.Canceled)
	assert.Contains(t, out.String(), "No order is lost.")
	for _, args := range [][]string{{"-orders", "-1"}, {"-workers", "0"}, {"-nonsense"}, {"-dir", filepath.Join(dir, "missing")}} {
		assert.Error(t, run(t.Context(), args, io.Discard, io.Discard), args)
	}
}
