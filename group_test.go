package breaker

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// newGroup returns a group of brittle breakers on a fake clock.
func newGroup(t testing.TB, capacity int, c Clock) *Group[string] {
	g, err := NewGroup(func(string) Settings {
		s := brittle(c)
		s.Name = ""
		return s
	}, GroupSettings{Capacity: capacity, Clock: c})
	require.NoError(t, err)
	return g
}

func ask[K comparable](t testing.TB, g *Group[K], key K) *Breaker {
	t.Helper()
	b, err := g.Get(key)
	require.NoError(t, err)
	require.NotNil(t, b)
	return b
}

// keys returns the keys of a group in their order.
func keys(g *Group[string]) []string {
	var all []string
	for k := range g.All() {
		all = append(all, k)
	}
	slices.Sort(all)
	return all
}

func TestGroup_OneBreakerForAKey(t *testing.T) {
	g := newGroup(t, 0, clock.NewMock())
	a := ask(t, g, "a")
	for range 100 {
		require.Same(t, a, ask(t, g, "a"))
	}
	assert.NotSame(t, a, ask(t, g, "b"))
	assert.Equal(t, "a", a.Name(), "an empty name becomes the key's text")
	assert.Equal(t, 2, g.Len())
	assert.Equal(t, []string{"a", "b"}, keys(g))
}

func TestGroup_Name(t *testing.T) {
	type endpoint struct {
		Host string
		Port int
	}
	g, err := NewGroup(func(e endpoint) Settings {
		if e.Port == 443 {
			return Settings{Name: "written"}
		}
		return Settings{}
	}, GroupSettings{})
	require.NoError(t, err)
	assert.Equal(t, "{db 80}", ask(t, g, endpoint{"db", 80}).Name())
	assert.Equal(t, "written", ask(t, g, endpoint{"db", 443}).Name())
}

// However many goroutines ask for a key at once, its settings are asked for once and all get the same breaker.
func TestGroup_Contention(t *testing.T) {
	var asked atomic.Int64
	g, err := NewGroup(func(int) Settings {
		asked.Add(1)
		runtime.Gosched()
		return Settings{}
	}, GroupSettings{})
	require.NoError(t, err)
	const workers, distinct = 16, 100
	got := make([][distinct]*Breaker, workers)
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := range 5 * distinct {
				key := (i + 7*w) % distinct
				b, err := g.Get(key)
				if err != nil || got[w][key] != nil && got[w][key] != b {
					panic("another breaker for the same key")
				}
				got[w][key] = b
			}
		})
	}
	all.Wait()
	for w := range workers {
		require.True(t, got[0] == got[w], "goroutine %d", w)
	}
	assert.Equal(t, int64(distinct), asked.Load())
	assert.Equal(t, distinct, g.Len())
}

// Those who ask while the settings function runs wait for it, and the group is free for the others.
func TestGroup_SettingsAreAskedForOutsideTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g *Group[string]
		release := make(chan bool)
		g, err := NewGroup(func(key string) Settings {
			if key == "slow" {
				<-release
				_, _ = g.Get("other")
				g.Len()
			}
			return Settings{}
		}, GroupSettings{})
		require.NoError(t, err)
		var first, second *Breaker
		var all sync.WaitGroup
		all.Go(func() { first, _ = g.Get("slow") })
		all.Go(func() { second, _ = g.Get("slow") })
		synctest.Wait()
		ask(t, g, "quick")
		assert.Equal(t, []string{"quick"}, keys(g), "the slow one is not made yet")
		close(release)
		all.Wait()
		require.NotNil(t, first)
		assert.Same(t, first, second)
		assert.Equal(t, []string{"other", "quick", "slow"}, keys(g))
	})
}

var faultySettings = []struct {
	name   string
	faulty func() Settings
	check  func(*testing.T, error)
}{
	{"invalid", func() Settings { return Settings{FailureRatio: 2} }, func(t *testing.T, err error) {
		invalid, _ := err.(*SettingsError)
		require.NotNil(t, invalid)
		assert.Equal(t, "Settings.FailureRatio", invalid.Problems[0].Field)
	}},
	{"panic", func() Settings { panic("boom") }, func(t *testing.T, err error) {
		failed, _ := err.(*CallbackError)
		require.NotNil(t, failed)
		assert.Equal(t, "boom", failed.Panic)
		assert.Equal(t, "7", failed.Name)
		assert.NotEmpty(t, failed.Stack)
	}},
	{"Goexit", func() Settings { runtime.Goexit(); return Settings{} }, func(t *testing.T, err error) {
		assert.ErrorIs(t, err, errGoexit)
	}},
}

func TestGroup_FaultySettingsAreNotRemembered(t *testing.T) {
	for _, test := range faultySettings {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked, release := 0, make(chan bool)
				g, err := NewGroup(func(int) Settings {
					if asked++; asked == 1 {
						<-release
						return test.faulty()
					}
					return Settings{}
				}, GroupSettings{})
				require.NoError(t, err)
				errs := make([]error, 3)
				var all sync.WaitGroup
				for i := range errs {
					all.Go(func() { _, errs[i] = g.Get(7) })
				}
				synctest.Wait()
				close(release)
				all.Wait()
				for _, err := range errs {
					test.check(t, err)
				}
				assert.Equal(t, 1, asked, "all three got the answer of the one attempt")
				assert.Zero(t, g.Len())
				ask(t, g, 7)
				assert.Equal(t, 2, asked)
			})
		})
	}
}

func TestGroup_InvalidGroupSettings(t *testing.T) {
	_, err := NewGroup(func(int) Settings { return Settings{} }, GroupSettings{Capacity: -1, Idle: -time.Second})
	var invalid *SettingsError
	require.ErrorAs(t, err, &invalid)
	require.Len(t, invalid.Problems, 2)
	assert.Equal(t, "GroupSettings.Capacity", invalid.Problems[0].Field)
	assert.Equal(t, "GroupSettings.Idle", invalid.Problems[1].Field)
}

func TestGroup_Delete(t *testing.T) {
	mock := clock.NewMock()
	limit := 1
	g, err := NewGroup(func(string) Settings {
		s := brittle(mock)
		s.ConsecutiveFailures = limit
		return s
	}, GroupSettings{})
	require.NoError(t, err)
	old := ask(t, g, "a")
	old.Isolate()
	limit = 3
	assert.Same(t, old, ask(t, g, "a"), "changed settings wait for Delete")
	g.Delete("a")
	g.Delete("a")
	g.Delete("never there")
	assert.Zero(t, g.Len())
	assert.Empty(t, keys(g))
	next := ask(t, g, "a")
	assert.NotSame(t, old, next)
	assert.Equal(t, 3, next.Settings().ConsecutiveFailures)
	assert.Equal(t, Closed, next.State())
	assert.Equal(t, Isolated, old.State(), "whoever holds it may still use it")
}

// A breaker deleted while it is being made goes to whoever asked for it, and nowhere else.
func TestGroup_DeleteOfOneBeingMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, release := new(Monitor), make(chan bool)
		g, err := NewGroup(func(string) Settings {
			<-release
			return Settings{Monitor: m}
		}, GroupSettings{})
		require.NoError(t, err)
		var first *Breaker
		var all sync.WaitGroup
		all.Go(func() { first, _ = g.Get("a") })
		synctest.Wait()
		g.Delete("a")
		assert.Zero(t, g.Len())
		close(release)
		all.Wait()
		require.NotNil(t, first)
		assert.Empty(t, m.Breakers())
		assert.NotSame(t, first, ask(t, g, "a"))
		assert.Len(t, m.Breakers(), 1)
	})
}

// The loop may do with the group what it likes, and sees what there was when it began.
func TestGroup_All(t *testing.T) {
	g := newGroup(t, 0, clock.NewMock())
	for _, key := range []string{"a", "b", "c", "d"} {
		ask(t, g, key)
	}
	seen := 0
	for key, b := range g.All() {
		seen++
		assert.Equal(t, key, b.Name())
		ask(t, g, key+key)
		g.Len()
		if seen == 3 {
			break
		}
	}
	assert.Equal(t, 3, seen)
	assert.Equal(t, 7, g.Len())
	for key := range g.All() {
		g.Delete(key)
	}
	assert.Zero(t, g.Len())
}

// A key that has been asked for a few times is found without the lock, its neighbours too.
func TestGroup_WarmGetTakesNoLock(t *testing.T) {
	g := newGroup(t, 3, clock.NewMock())
	a, b := ask(t, g, "a"), ask(t, g, "b")
	for range 3 {
		ask(t, g, "a")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	known := *g.known.Load()
	require.Len(t, known, 2)
	assert.Same(t, a, ask(t, g, "a"))
	assert.Same(t, b, ask(t, g, "b"))
}

func TestGroup_WarmGetDoesNotAllocate(t *testing.T) {
	g := newGroup(t, 0, nil)
	for range 10 {
		ask(t, g, "a")
	}
	assert.Zero(t, testing.AllocsPerRun(1000, func() { _, _ = g.Get("a") }))
}

// Everything at once, for the race detector.
func TestGroup_Concurrent(t *testing.T) {
	m := new(Monitor)
	g, err := NewGroup(func(int) Settings { return Settings{Monitor: m, ConsecutiveFailures: 1} },
		GroupSettings{Capacity: 10, Idle: time.Millisecond})
	require.NoError(t, err)
	var all sync.WaitGroup
	for w := range 4 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(w), 1))
			for range 2000 {
				key := random.IntN(30)
				b, err := g.Get(key)
				if err != nil {
					panic(err)
				}
				switch random.IntN(20) {
				case 0:
					g.Delete(key)
				case 1:
					b.Isolate()
				case 2, 3:
					b.Reset()
				case 4:
					for range g.All() {
						g.Len()
					}
				default:
					_ = b.Execute(context.Background(), func(context.Context) error { return nil })
				}
			}
		})
	}
	all.Wait()
	for _, b := range g.All() {
		b.Reset()
	}
	_, err = g.Get(31)
	require.NoError(t, err)
	assert.LessOrEqual(t, g.Len(), 10)
	assert.Len(t, m.Breakers(), g.Len())
}

// warm returns a group that has been asked for each key often enough to know it without its lock, and the keys.
func warm(b *testing.B, n int) (g *Group[string], keys []string) {
	g = newGroup(b, 0, nil)
	for i := range n {
		keys = append(keys, strconv.Itoa(i))
	}
	for range 3 {
		for _, key := range keys {
			ask(b, g, key)
		}
	}
	return g, keys
}

func BenchmarkGroup_WarmGet(b *testing.B) {
	for _, n := range []int{1, 1000} {
		b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) {
			g, keys := warm(b, n)
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for i := rand.IntN(n); pb.Next(); {
					_, _ = g.Get(keys[i])
					if i++; i == n {
						i = 0
					}
				}
			})
		})
	}
}

func BenchmarkGroup_NewKeys(b *testing.B) {
	g, err := NewGroup(func(int) Settings { return Settings{} }, GroupSettings{})
	require.NoError(b, err)
	b.ReportAllocs()
	for i := range b.N {
		_, _ = g.Get(i)
	}
	b.ReportMetric(float64(g.Len()), "breakers")
}

func BenchmarkGroup_NewKeysBesideOpenOnes(b *testing.B) {
	g, keys := warm(b, 10_000)
	for _, key := range keys {
		ask(b, g, key).Isolate()
	}
	b.ResetTimer()
	for i := range b.N {
		_, _ = g.Get("new " + strconv.Itoa(i))
	}
}

func BenchmarkGroup_NewKeysThatAllOpen(b *testing.B) {
	g, err := NewGroup(func(int) Settings { return Settings{ConsecutiveFailures: 1} }, GroupSettings{})
	require.NoError(b, err)
	for i := range b.N {
		trip(b, ask(b, g, i))
	}
	b.ReportMetric(float64(g.Len()), "breakers")
}

// A NaN was stored under a key that no lookup and no deletion finds, so each Get left an entry for good.
func TestRegression_KeysNotEqualToThemselvesAreRefused(t *testing.T) {
	g, err := NewGroup(func(float64) Settings { return Settings{} }, GroupSettings{})
	require.NoError(t, err)
	_, err = g.Get(math.NaN())
	require.ErrorContains(t, err, "NaN")
	assert.Zero(t, g.Len())
}
