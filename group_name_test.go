package breaker

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type region struct{ Name, Zone string }

type port int

// initial prints as its first letter, so that many are printed alike.
type initial string

func (i initial) String() string { return string(i)[:1] }

func textOf[K comparable](key K) string {
	text, _ := keyText(key)
	return text
}

// A name was what fmt prints of a key, so {"eu west" "x"} and {"eu" "west x"} were both "{eu west x}": of a map by name only
// one was left, and nobody could tell which of the two a line of the log was about.
func TestRegression_KeysThatFmtPrintsAlikeHaveNamesOfTheirOwn(t *testing.T) {
	g, err := NewGroup(func(region) Settings { return Settings{} }, GroupSettings{})
	require.NoError(t, err)
	assert.Equal(t, `{"eu west" x}`, ask(t, g, region{"eu west", "x"}).Name())
	assert.Equal(t, `{eu "west x"}`, ask(t, g, region{"eu", "west x"}).Name())
	assert.Equal(t, `{eu west}`, ask(t, g, region{"eu", "west"}).Name())
}

func TestGroup_NamesOfKeys(t *testing.T) {
	x := 7
	for _, test := range []struct{ got, want string }{
		{textOf("any text, \"as it is\""), "any text, \"as it is\""},
		{textOf(""), ""},
		{textOf(-7), "-7"},
		{textOf(port(80)), "80"},
		{textOf(0.1), "0.1"},
		{textOf(true), "true"},
		{textOf(90 * time.Second), "1m30s"},
		{textOf(netip.MustParseAddrPort("10.0.0.1:80")), "10.0.0.1:80"},
		{textOf(initial("west")), "w"},
		{textOf([2]string{"a", ""}), `[a ""]`},
		{textOf([2]region{{"a", "b"}, {"c", "d}"}}), `[{a b} {c "d}"}]`},
		{textOf(struct {
			a string
			b time.Duration
			C time.Duration
		}{"a", 1, 2}), "{a 1 2ns}"},
		{textOf(struct{ A initial }{"w"}), "{w}"},
		{textOf[any]("80"), "80"},
		{textOf[any](80), "int(80)"},
		{textOf[any](int8(80)), "int8(80)"},
		{textOf[any]("int(80)"), `"int(80)"`},
		{textOf[any](nil), "<nil>"},
		{textOf[any]("<nil>"), `"<nil>"`},
		{textOf[any](region{"a", "b"}), "breaker.region({a b})"},
		{textOf[fmt.Stringer](initial("west")), "breaker.initial(w)"},
		{textOf(&x), fmt.Sprintf("%p", &x)},
		{textOf(&region{}), ""},
	} {
		if test.want == "" && test.got != "" {
			assert.Regexp(t, "^0x[0-9a-f]+$", test.got, "an address")
		} else {
			assert.Equal(t, test.want, test.got)
		}
	}
}

// Of random keys made of what confuses, no two have the same text.
func TestGroup_TextsOfDistinctKeysAreDistinct(t *testing.T) {
	type key struct {
		A string
		B [2]any
		c string
	}
	random := rand.New(rand.NewPCG(1, 2))
	word := func() (s string) {
		for range random.IntN(4) {
			s += string(` "\{}[]()<>a1ü`[random.IntN(14)])
		}
		return s
	}
	thing := func() any {
		return []any{nil, word(), 1, int8(1), "1", true, "true", 1.5, [1]string{word()}, struct{ S string }{word()}}[random.IntN(10)]
	}
	keys := map[string]key{}
	for range 100_000 {
		k := key{word(), [2]any{thing(), thing()}, word()}
		text, certain := keyText(k)
		if other, there := keys[text]; certain && there {
			require.Equal(t, other, k, "of %s", text)
		}
		keys[text] = k
	}
	assert.Greater(t, len(keys), 50_000)
}

// Where keys print themselves alike, the later ones are numbered, and a name is free again once its breaker has gone.
func TestGroup_KeysThatPrintThemselvesAlikeAreNumbered(t *testing.T) {
	fail := false
	g, err := NewGroup(func(initial) Settings {
		if fail {
			return Settings{FailureRatio: 2}
		}
		return Settings{}
	}, GroupSettings{Clock: new(handClock)})
	require.NoError(t, err)
	assert.Equal(t, "w", ask(t, g, "west").Name())
	assert.Equal(t, "w#2", ask(t, g, "wild").Name())
	assert.Equal(t, "w#3", ask(t, g, "wide").Name())
	assert.Equal(t, "e", ask(t, g, "east").Name())
	g.Delete("west")
	assert.Equal(t, "w", ask(t, g, "wool").Name(), "the name is free again")
	assert.Equal(t, "w#4", ask(t, g, "wine").Name(), "those in use are not")
	fail = true
	_, err = g.Get("wrong")
	require.Error(t, err)
	for key := range g.All() {
		g.Delete(key)
	}
	assert.Empty(t, g.names)
}

// Names cost memory only for the breakers that are there.
func TestGroup_KeepsNoNameOfOneThatHasGone(t *testing.T) {
	g, err := NewGroup(func(initial) Settings { return Settings{} }, GroupSettings{Capacity: 10, Clock: new(handClock)})
	require.NoError(t, err)
	names := map[string]bool{}
	for i := range 1000 {
		ask(t, g, initial("w"+strconv.Itoa(i)))
	}
	for _, b := range g.All() {
		names[b.Name()] = true
	}
	assert.Len(t, names, 10)
	assert.LessOrEqual(t, len(g.names), 11)
}

// A written name is the caller's own.
func TestGroup_WrittenNamesAreNotNumbered(t *testing.T) {
	g, err := NewGroup(func(initial) Settings { return Settings{Name: "all"} }, GroupSettings{})
	require.NoError(t, err)
	assert.Equal(t, "all", ask(t, g, "a").Name())
	assert.Equal(t, "all", ask(t, g, "b").Name())
	assert.Empty(t, g.names)
}
