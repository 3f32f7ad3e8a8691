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

// layout lists the files from the bottom up: each may use what those before it declare, be it a type, a function, a method or a
// field, and nothing of those behind it. So every file can be read with only those before it in mind, and a call is followed down
// once and up once. A pure file lists its imports: it is plain data and takes the time as an argument. The files of the simulation
// are one room, and so are those of groups.
var layout = []place{
	// Words, and leaves: numbers in, values out.
	{"enum", "fmt slices"},
	{"state", "log/slog time"},
	{"outcome", "-"},
	{"errors", ""},
	{"registry", ""},
	{"jitter", "math time"},
	{"window", "math time"},
	{"latency", "math math/bits time"},
	{"recovery", "cmp math time"},
	{"settings", ""},
	{"validate", ""},
	{"sequential", "math time"},
	{"flights", "math/bits sync/atomic time"},
	{"probes", "math slices time"},
	{"break", "time"},
	{"snapshot", "time"},
	{"encoding", ""},
	{"word", "-"},
	{"queue", "-"},
	{"events", ""},
	{"timeline", ""},
	// The machine: the states, and what each operation does to them.
	{"machine", "math time"},
	{"trip", "math time"},
	{"machine_admit", "math time"},
	{"machine_settle", "time"},
	{"view", "time"},
	// The shell: the lock, the clock, code of the user.
	{"breaker", ""},
	{"user", ""},
	{"new", ""},
	{"refusal", ""},
	{"commit", ""},
	{"deliver", ""},
	// The way in, and the way out.
	{"admit", ""},
	{"waiting", ""},
	{"door", ""},
	{"classify", ""},
	{"settle", ""},
	{"execute", ""},
	{"permit", ""},
	// Beside it.
	{"read", ""},
	{"control", ""},
	// On top.
	{"monitor", ""},
	{"group", ""},
	{"simulation", ""},
	{"doc", "-"},
}

// place is one file in the layout.
type place struct {
	file string
	pure string // imports; empty: any
}

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

// uses calls f with every use that one file makes of a declaration in another: of the package, or of a type in it.
func (s *source) uses(f func(from, to, declared string)) {
	for ident, object := range s.info.Uses {
		isLocal := object.Parent() != nil && object.Parent() != s.pkg.Scope()
		if object.Pkg() == s.pkg && !isLocal && s.node(ident) != s.node(object) {
			f(s.node(ident), s.node(object), object.Name())
		}
	}
}

// heightOf returns the place of a file counted from the bottom, -1 if it has none.
func heightOf(file string) int {
	return slices.IndexFunc(layout, func(p place) bool { return p.file == file })
}

// placeOf returns the place of a file, empty if it has none.
func placeOf(file string) (p place) {
	if i := heightOf(file); i >= 0 {
		return layout[i]
	}
	return p
}

func TestLayoutOfFiles(t *testing.T) {
	s := readSource(t)
	found := map[string]bool{}
	for _, file := range s.syntax {
		found[s.node(file)] = true
		assert.NotEmpty(t, placeOf(s.node(file)).file, "%s is not in the layout", s.node(file))
	}
	for _, p := range layout {
		assert.True(t, found[p.file], "there is no %s", p.file)
	}
	references := 0
	s.uses(func(from, to, declared string) {
		references++
		assert.Greater(t, heightOf(from), heightOf(to), "%s uses %s of %s", from, declared, to)
	})
	assert.Greater(t, references, 1000, "what is checked")
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
				assert.Equal(t, "user", name, "a go statement")
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
	holdsTheLock := []string{"breaker", "user", "refusal", "deliver", "admit", "settle", "permit", "read", "control"}
	for selector, selection := range s.info.Selections {
		name := s.node(selector)
		if !strings.HasSuffix(strings.TrimPrefix(selection.Recv().String(), "*"), "breaker.Breaker") {
			continue
		}
		if inside := selector.Sel.Name; slices.Contains(onTop, name) && !token.IsExported(inside) {
			assert.Contains(t, []string{"unbind", "isAtRest", "isRecovering", "mustBeMade", "evidence"}, inside, "%s", name)
		}
		if selector.Sel.Name == "mu" {
			assert.Contains(t, holdsTheLock, name, "the mutex")
		}
	}
}
