package ledger

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/benbjohnson/clock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
)

var errDown = errors.New("down")

// made returns a breaker that opens on its first failure, for 15 s, and measures nothing.
func made(m *breaker.Monitor, name string) *breaker.Breaker {
	return breaker.MustNew(breaker.Settings{
		Name: name, ConsecutiveFailures: 1, BreakDuration: 15 * time.Second, BreakJitter: breaker.JitterNone,
		Failures: breaker.Failures{Off: true}, SlowCalls: breaker.SlowCalls{Off: true}, Monitor: m, Clock: clock.NewMock(),
	})
}

func call(b *breaker.Breaker, err error) {
	_ = b.Execute(context.Background(), func(context.Context) error { return err })
}

func names(rows []Row) (names []string) {
	for _, r := range rows {
		names = append(names, r.Name)
	}
	return names
}

func TestRowsAreInOrderOfName(t *testing.T) {
	var m breaker.Monitor
	l := New(&m, 10)
	assert.Empty(t, l.Read())
	breakers := []*breaker.Breaker{made(&m, "b"), made(&m, "a")}
	call(breakers[0], nil)
	rows := l.Read()
	require.Equal(t, []string{"a", "b"}, names(rows))
	assert.EqualValues(t, 1, rows[1].Totals.Successes)
	assert.Equal(t, Gauges{Breakers: 1, AdmittedFraction: 1}, rows[0].Gauges)
	runtime.KeepAlive(breakers)
}

func TestBreakersOfOneNameAreMerged(t *testing.T) {
	var m breaker.Monitor
	l := New(&m, 10)
	first, second := made(&m, "a"), made(&m, "a")
	call(first, nil)
	call(second, errDown)
	call(second, nil) // refused
	rows := l.Read()
	require.Equal(t, []string{"a"}, names(rows))
	assert.Equal(t, breaker.Totals{Successes: 1, Transient: 1, Rejected: 1, Opens: 1}, rows[0].Totals)
	assert.Equal(t, Gauges{Breakers: 2, State: breaker.Open, RetryAfter: 15 * time.Second}, rows[0].Gauges)
	runtime.KeepAlive(first)
}

func TestGaugesAreTheWorst(t *testing.T) {
	low, high := 0.1, 0.2
	a := breaker.Snapshot{
		State: breaker.HalfOpen, NormalLatency: 2, SlowThreshold: 9, NormalFailureRate: &low, TripRatio: 0.5, Evidence: 0.3,
		AdmittedFraction: 0.7, Waiting: 1, ProbesInFlight: 2,
	}
	b := breaker.Snapshot{
		State: breaker.Open, NormalLatency: 3, SlowThreshold: 7, NormalFailureRate: &high, TripRatio: 0.4, Evidence: 0.2,
		AdmittedFraction: 0.6, Waiting: 4, ProbesInFlight: 8, RetryAfter: 5,
	}
	want := Gauges{
		Breakers: 3, State: breaker.Open, NormalLatency: 3, SlowThreshold: 7, NormalFailureRate: &high, TripRatio: 0.4,
		Evidence: 0.3, AdmittedFraction: 0.6, Waiting: 5, ProbesInFlight: 10, RetryAfter: 5,
	}
	unknown := breaker.Snapshot{AdmittedFraction: 1}
	for i, order := range [][]breaker.Snapshot{{a, b, unknown}, {unknown, b, a}, {b, unknown, a}} {
		var g Gauges
		for _, s := range order {
			g.add(s)
		}
		assert.Equal(t, want, g, "order %d", i)
	}
}

// A group drops a breaker and makes it again, with totals that start anew.
func TestCountersNeverGoBack(t *testing.T) {
	var m breaker.Monitor
	group, err := breaker.NewGroup(func(name string) breaker.Settings {
		return breaker.Settings{ConsecutiveFailures: 1, Monitor: &m, Clock: clock.NewMock()}
	}, breaker.GroupSettings{})
	require.NoError(t, err)
	l := New(&m, 10)
	for round := range uint64(3) {
		b, err := group.Get("a")
		require.NoError(t, err)
		call(b, nil)
		call(b, errDown)
		rows := l.Read()
		assert.Equal(t, breaker.Totals{Successes: round + 1, Transient: round + 1, Opens: round + 1}, rows[0].Totals)
		assert.Equal(t, rows, l.Read(), "nothing is counted twice")
		group.Delete("a")
		rows = l.Read()
		assert.Zero(t, rows[0].Gauges, "no breaker is left")
		assert.Equal(t, round+1, rows[0].Totals.Successes)
		assert.Len(t, l.seen, 0, "nothing is kept of a breaker that is gone")
		require.Len(t, rows[0].Moves, 1)
		assert.Equal(t, Moves{Move{breaker.Closed, breaker.Open, breaker.ReasonConsecutiveFailures}, round + 1}, rows[0].Moves[0])
	}
}

func TestNamesBeyondTheLimitAreOther(t *testing.T) {
	var m breaker.Monitor
	l := New(&m, 2)
	var breakers []*breaker.Breaker
	for i := range 5 {
		b := made(&m, fmt.Sprint(i))
		call(b, errDown)
		breakers = append(breakers, b)
	}
	rows := l.Read()
	require.Equal(t, []string{"0", "1", Other}, names(rows))
	assert.EqualValues(t, 3, rows[2].Totals.Opens)
	assert.Equal(t, 3, rows[2].Gauges.Breakers)
	require.Len(t, rows[2].Moves, 1)
	assert.EqualValues(t, 3, rows[2].Moves[0].Count)
	runtime.KeepAlive(breakers)
}

func TestBreakerNamedOtherSharesTheAccount(t *testing.T) {
	var m breaker.Monitor
	l := New(&m, 1)
	breakers := []*breaker.Breaker{made(&m, Other), made(&m, "a"), made(&m, "b")}
	rows := l.Read()
	require.Equal(t, []string{"a", Other}, names(rows), "it takes no place of the limit")
	assert.Equal(t, 2, rows[1].Gauges.Breakers)
	runtime.KeepAlive(breakers)
}

// The account of a name without breakers is kept until another name needs the place; the one gone for longest goes first.
func TestPlaceOfANameThatIsGone(t *testing.T) {
	var m breaker.Monitor
	group, err := breaker.NewGroup(func(string) breaker.Settings {
		return breaker.Settings{Monitor: &m, Clock: clock.NewMock()}
	}, breaker.GroupSettings{})
	require.NoError(t, err)
	get := func(name string) {
		_, err := group.Get(name)
		require.NoError(t, err)
	}
	l := New(&m, 2)
	get("a")
	get("b")
	require.Equal(t, []string{"a", "b"}, names(l.Read()))
	group.Delete("b")
	require.Equal(t, []string{"a", "b"}, names(l.Read()))
	group.Delete("a")
	require.Equal(t, []string{"a", "b"}, names(l.Read()))
	get("c")
	require.Equal(t, []string{"a", "c"}, names(l.Read()), "b was gone first")
	get("a")
	get("d")
	require.Equal(t, []string{"a", "c", Other}, names(l.Read()), "a is back, so none is gone")
	group.Delete("a")
	require.Equal(t, []string{"c", "d", Other}, names(l.Read()), "d has waited for a place")
}

// A change may come before the first reading finds its breaker, and takes no place of a name that is alive.
func TestChangeOfANameNotSeenYet(t *testing.T) {
	var m breaker.Monitor
	l := New(&m, 1)
	a := made(&m, "a")
	l.Read()
	b := made(&m, "b")
	b.Isolate()
	rows := l.Read()
	require.Equal(t, []string{"a", Other}, names(rows))
	assert.Equal(t, []Moves{{Move{breaker.Closed, breaker.Isolated, breaker.ReasonIsolated}, 1}}, rows[1].Moves)
	runtime.KeepAlive(a)
}

// A reading that began earlier and ends later must not take back what another has entered meanwhile, nor count a breaker that
// has been dropped since a second time.
func TestReadingThatIsOvertaken(t *testing.T) {
	var m breaker.Monitor
	group, err := breaker.NewGroup(func(string) breaker.Settings {
		return breaker.Settings{Monitor: &m, Clock: clock.NewMock()}
	}, breaker.GroupSettings{})
	require.NoError(t, err)
	l := New(&m, 10)
	a, err := group.Get("a")
	require.NoError(t, err)
	var overtake func()
	b := breaker.MustNew(breaker.Settings{Name: "b", Monitor: &m, Clock: &hooked{clock.NewMock(), &overtake}})
	call(a, nil)
	assert.EqualValues(t, 1, l.Read()[0].Totals.Successes)
	overtaken := 0
	overtake = func() { // when the reading has looked at a, and not yet at b
		overtake = nil
		overtaken++
		call(a, nil)
		assert.EqualValues(t, 2, l.Read()[0].Totals.Successes)
		group.Delete("a")
		assert.Zero(t, l.Read()[0].Gauges)
	}
	rows := l.Read()
	require.Equal(t, 1, overtaken)
	assert.Zero(t, rows[0].Gauges)
	assert.EqualValues(t, 2, rows[0].Totals.Successes)
	assert.EqualValues(t, 2, l.Read()[0].Totals.Successes)
	runtime.KeepAlive(b)
}

// hooked is a clock that calls a function when it is read, if there is one.
type hooked struct {
	*clock.Mock
	hook *func()
}

func (h *hooked) Since(t time.Time) time.Duration {
	if *h.hook != nil {
		(*h.hook)()
	}
	return h.Mock.Since(t)
}

func TestCloseEndsTheCounting(t *testing.T) {
	var m breaker.Monitor
	l := New(&m, 10)
	b := made(&m, "a")
	b.Isolate()
	l.Close()
	l.Close()
	b.Reset()
	assert.Len(t, l.Read()[0].Moves, 1)
}

func TestLabel(t *testing.T) {
	long := strings.Repeat("ä", 200)
	for name, want := range map[string]string{
		"":                     "unnamed",
		"inventory":            "inventory",
		"größe 1, 東京 e\u0301":  "größe 1, 東京 e\u0301",
		"a\nb\x00c\u2028d\x7f": "a\uFFFDb\uFFFDc\uFFFDd\uFFFD",
		"a\xffb":               "a\uFFFDb",
		"\u202eevil":           "\uFFFDevil",
		long[:2*128]:           long[:2*128],
		long:                   long[:2*127] + "…",
	} {
		assert.Equal(t, want, Label(name), "%q", name)
	}
}

func FuzzLabel(f *testing.F) {
	f.Add("inventory")
	f.Add("a\xff\n")
	f.Fuzz(func(t *testing.T, name string) {
		label := Label(name)
		assert.True(t, utf8.ValidString(label))
		assert.NotEmpty(t, label)
		assert.LessOrEqual(t, utf8.RuneCountInString(label), maxRunes)
		assert.Equal(t, label, Label(label))
	})
}

// Whatever comes and goes at once, no counter goes back from one reading to the next, and the bound holds.
func TestContention(t *testing.T) {
	const limit, rounds = 3, 200
	var m breaker.Monitor
	group, err := breaker.NewGroup(func(int) breaker.Settings {
		return breaker.Settings{ConsecutiveFailures: 1, Monitor: &m, Clock: clock.NewMock()}
	}, breaker.GroupSettings{})
	require.NoError(t, err)
	l := New(&m, limit)
	var wg sync.WaitGroup
	for key := range limit {
		wg.Go(func() {
			for range rounds {
				b, err := group.Get(key)
				assert.NoError(t, err)
				call(b, nil)
				call(b, errDown)
				group.Delete(key)
			}
		})
	}
	for range 2 {
		wg.Go(func() {
			last := map[string]Row{}
			for range rounds {
				rows := l.Read()
				assert.LessOrEqual(t, len(rows), limit)
				for _, r := range rows {
					assert.GreaterOrEqual(t, r.Totals.Successes, last[r.Name].Totals.Successes)
					assert.GreaterOrEqual(t, sum(r.Moves), sum(last[r.Name].Moves))
					last[r.Name] = r
				}
			}
		})
	}
	wg.Wait()
	var moves uint64
	for _, r := range l.Read() {
		moves += sum(r.Moves)
	}
	assert.EqualValues(t, limit*rounds, moves)
}

func sum(moves []Moves) (sum uint64) {
	for _, m := range moves {
		sum += m.Count
	}
	return sum
}
