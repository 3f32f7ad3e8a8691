package breaker

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// layout says which file may use the declarations of which others, so that every file can be read with only those before it
// in mind. A pure file lists its imports: it is plain data and takes the time as an argument. The files of the simulation
// count as one, and so do those of a group.
var layout = []place{
	{"enum", "", "fmt slices"},
	{"state", "enum", "log/slog time"},
	{"outcome", "enum", "errors"},
	{"jitter", "enum", "math time"},
	{"window", "state", "math time"},
	{"latency", "", "math math/bits time"},
	{"recovery", "jitter", "cmp time"},
	{"probes", "", "math slices time"},
	{"flights", "window", "slices time"},
	{"snapshot", "state outcome", "time"},
	{"wait", "", "-"},
	{"errors", "state", ""},
	{"events", "state errors", ""},
	{"settings", "enum state outcome errors jitter recovery latency monitor", ""},
	{"validate", "enum jitter recovery settings", ""},
	{"encoding", "state jitter snapshot settings", ""},
	{"sequential", "state window settings", "math time"},
	{"machine", "state outcome jitter window latency recovery probes flights snapshot settings sequential", "math time"},
	{"trip", "state settings machine", "math time"},
	{"view", "state snapshot settings machine", "time"},
	{"breaker", "state outcome errors jitter probes events snapshot settings machine wait", ""},
	{"observe", "state errors events breaker", ""},
	{"classify", "outcome errors events observe breaker", ""},
	{"waiting", "state settings machine wait breaker", ""},
	{"permit", "state outcome probes breaker waiting", ""},
	{"monitor", "state machine breaker", ""},
	{"group", "state jitter events snapshot settings validate machine breaker", ""},
	{"simulation", "state outcome jitter latency settings validate breaker permit", ""},
	{"doc", "", "-"},
}

// place is one file in the layout.
type place struct {
	file string
	uses string
	pure string // imports; empty: any
}

// The one cycle that the API forces: a setting names the type that holds breakers.
var forced = edge{"settings", "monitor"}

type edge struct{ from, to string }

// source is the package as its files say it: parsed, and resolved as far as that goes without what it imports.
type source struct {
	files   *token.FileSet
	syntax  []*ast.File
	info    types.Info
	pkg     *types.Package
	imports map[string][]string
}

// empty stands in for every package that is imported.
type empty struct{}

func (empty) Import(p string) (*types.Package, error) {
	pkg := types.NewPackage(p, path.Base(p))
	pkg.MarkComplete()
	return pkg, nil
}

func readSource(t *testing.T) *source {
	t.Helper()
	s := &source{files: token.NewFileSet(), imports: map[string][]string{}}
	names, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(s.files, name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		s.syntax = append(s.syntax, file)
		for _, i := range file.Imports {
			s.imports[s.node(file)] = append(s.imports[s.node(file)], strings.Trim(i.Path.Value, `"`))
		}
	}
	s.info = types.Info{Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}
	unresolved := func(error) {} // what is imported
	s.pkg, _ = (&types.Config{Importer: empty{}, Error: unresolved}).Check("breaker", s.files, s.syntax, &s.info)
	return s
}

// node returns the file that something is in, without its extension.
func (s *source) node(at interface{ Pos() token.Pos }) string {
	name := strings.TrimSuffix(s.files.Position(at.Pos()).Filename, ".go")
	for _, many := range []string{"group", "simulation"} {
		if strings.HasPrefix(name, many) {
			return many
		}
	}
	return name
}

// uses calls f with every use that one file makes of a declaration in another.
func (s *source) uses(f func(e edge, declared string)) {
	for ident, object := range s.info.Uses {
		if object.Parent() == s.pkg.Scope() && s.node(ident) != s.node(object) {
			f(edge{s.node(ident), s.node(object)}, object.Name())
		}
	}
}

// placeOf returns the place of a file, empty if it has none.
func placeOf(file string) (p place) {
	if i := slices.IndexFunc(layout, func(p place) bool { return p.file == file }); i >= 0 {
		return layout[i]
	}
	return p
}

func TestLayoutOfFiles(t *testing.T) {
	s := readSource(t)
	allowed := map[edge]bool{}
	for _, l := range layout {
		for _, other := range strings.Fields(l.uses) {
			allowed[edge{l.file, other}] = true
		}
	}
	used := map[edge]bool{}
	s.uses(func(e edge, declared string) {
		used[e] = true
		assert.True(t, allowed[e], "%s uses %s of %s", e.from, declared, e.to)
	})
	for e := range allowed {
		assert.True(t, used[e], "%s may use %s and does not: take it out of the layout", e.from, e.to)
	}
	for _, file := range s.syntax {
		assert.NotEmpty(t, placeOf(s.node(file)).file, "%s is not in the layout", s.node(file))
	}
}

// The files form a hierarchy: each uses only those above it in the layout.
func TestLayoutHasNoCycle(t *testing.T) {
	seen := map[string]bool{}
	for _, l := range layout {
		for _, other := range strings.Fields(l.uses) {
			assert.True(t, seen[other] || forced == edge{l.file, other}, "%s uses %s, which comes later", l.file, other)
		}
		seen[l.file] = true
	}
}

// The root needs one module besides the standard library.
func TestLayoutOfImports(t *testing.T) {
	s := readSource(t)
	for _, l := range layout {
		for _, path := range s.imports[l.file] {
			isStandard := !strings.Contains(strings.Split(path, "/")[0], ".")
			assert.True(t, isStandard || path == "github.com/benbjohnson/clock", "%s imports %s", l.file, path)
			if l.pure != "" {
				assert.Contains(t, strings.Fields(l.pure), path, "%s imports %s", l.file, path)
			}
		}
	}
}

// What pure files take from package time: types and units, never a reading of the clock.
var timeWords = []string{"Duration", "Time", "Microsecond", "Millisecond", "Second", "Minute", "Hour"}

func TestPureFilesAreJustData(t *testing.T) {
	s := readSource(t)
	for _, file := range s.syntax {
		name := s.node(file)
		if placeOf(name).pure == "" {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if selector, ok := n.(*ast.SelectorExpr); ok {
				if from, ok := selector.X.(*ast.Ident); ok && from.Name == "time" {
					assert.Contains(t, timeWords, selector.Sel.Name, "%s", name)
				}
				if selection := s.info.Selections[selector]; selection != nil && selection.Kind() == types.FieldVal {
					_, isFunc := selection.Type().Underlying().(*types.Signature)
					assert.False(t, isFunc, "%s: %s is user code", name, selector.Sel.Name)
				}
			}
			return true
		})
	}
}

// No background work: one place starts a goroutine, and waits for it; no place starts a timer of its own.
func TestNoBackgroundWork(t *testing.T) {
	s := readSource(t)
	for _, file := range s.syntax {
		name := s.node(file)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				assert.Equal(t, "events", name, "a go statement")
			case *ast.SelectorExpr:
				from, ok := n.X.(*ast.Ident)
				timers := []string{"Now", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"}
				assert.False(t, ok && from.Name == "time" && slices.Contains(timers, n.Sel.Name), "%s: time.%s", name, n.Sel.Name)
			}
			return true
		})
	}
}

// Which files touch what is unexported in a Breaker, where that is limited.
func TestLayoutOfTheBreakersInsides(t *testing.T) {
	s := readSource(t)
	onTop := []string{"monitor", "group", "simulation"}
	holdsTheLock := []string{"breaker", "observe", "waiting"}
	for selector, selection := range s.info.Selections {
		name := s.node(selector)
		if !strings.HasSuffix(strings.TrimPrefix(selection.Recv().String(), "*"), "breaker.Breaker") {
			continue
		}
		if inside := selector.Sel.Name; slices.Contains(onTop, name) && !token.IsExported(inside) {
			assert.Contains(t, []string{"unbind", "isAtRest"}, inside, "%s", name)
		}
		if selector.Sel.Name == "mu" {
			assert.Contains(t, holdsTheLock, name, "the mutex")
		}
	}
}
