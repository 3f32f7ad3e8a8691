package docs

import (
	"encoding"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/brownout-go/breaker"
)

// setting is a field of Settings or of a struct in it.
type setting struct {
	owner, name string
	value       reflect.Value // the default
}

func (s setting) path() string { return s.owner + "." + s.name }

// isNumber reports whether the setting is a number, a duration or an enumerated value.
func (s setting) isNumber() bool { return s.value.CanInt() || s.value.CanUint() || s.value.CanFloat() }

// settings returns every setting by its path.
func settings() map[string]setting {
	found := make(map[string]setting)
	defaults := breaker.Settings{Recovery: breaker.Recovery{Fraction: 1}}.WithDefaults()
	add := func(owner string, v reflect.Value) {
		for i := range v.NumField() {
			s := setting{owner, v.Type().Field(i).Name, v.Field(i)}
			found[s.path()] = s
		}
	}
	add("Settings", reflect.ValueOf(defaults))
	for _, part := range []any{defaults.Failures, defaults.SlowCalls, defaults.Recovery} {
		add(reflect.TypeOf(part).Name(), reflect.ValueOf(part))
	}
	fraction := found["Recovery.Fraction"] // written above so that the others have a default
	fraction.value = reflect.ValueOf(breaker.Recovery{}.Fraction)
	found[fraction.path()] = fraction
	return found
}

// agrees reports whether text states the default of a setting: a number, a duration such as 30s, 30 s or 5 min, the text of an
// enumerated value, nil for a function, or "off" and "no limit" for a zero; for a setting that follows another, the name of
// that one.
func (s setting) agrees(text string, all map[string]setting) bool {
	if other, ok := all[s.owner+"."+text]; ok && other.value.Type() == s.value.Type() {
		return s.value.Equal(other.value)
	}
	if text == "off" || text == "nil" || text == "measured" || text == "by evidence alone" || strings.HasPrefix(text, "no ") {
		return s.value.IsZero()
	}
	want, err := s.parse(text)
	return err == nil && s.value.Interface() == want
}

var units = strings.NewReplacer("30 days", "720h", " min", "m", " ms", "ms", " s", "s", " h", "h")

// parse reads text as a value of the setting's type.
func (s setting) parse(text string) (any, error) {
	switch s.value.Interface().(type) {
	case int:
		return strconv.Atoi(text)
	case float64:
		return strconv.ParseFloat(text, 64)
	case bool:
		return strconv.ParseBool(text)
	case string:
		return strconv.Unquote(text)
	case time.Duration:
		return time.ParseDuration(units.Replace(text))
	}
	pointer := reflect.New(s.value.Type())
	if target, ok := pointer.Interface().(encoding.TextUnmarshaler); ok {
		err := target.UnmarshalText([]byte(text))
		return pointer.Elem().Interface(), err
	}
	return nil, fmt.Errorf("%s is not written as text", s.path())
}

// Every number, duration and enumerated value has a row with its default in the page of settings, and no row states a wrong one.
func TestDefaultsInPage(t *testing.T) {
	const path = "docs/settings.md"
	dir := root(t)
	if _, err := os.Stat(filepath.Join(dir, path)); errors.Is(err, fs.ErrNotExist) {
		t.Skip(path + " does not exist")
	}
	for _, problem := range wrongDefaults(readPage(t, dir, path), settings()) {
		assert.Fail(t, "wrong default", problem)
	}
}

var (
	tableRow = regexp.MustCompile("^\\|\\s*`((?:Settings|Failures|SlowCalls|Recovery)\\.\\w+)`\\s*\\|([^|]*)\\|")
	codeSpan = regexp.MustCompile("`([^`]*)`")
)

// wrongDefaults reads the tables of a page whose second column is headed "default". It returns the rows that disagree with the
// settings, and the settings without a row.
func wrongDefaults(p page, all map[string]setting) (problems []string) {
	missing := make(map[string]bool)
	for path, s := range all {
		missing[path] = s.isNumber()
	}
	_, prose := p.split()
	stating := false
	for i, line := range prose {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			stating = false
			continue
		}
		stating = stating || strings.EqualFold(strings.TrimSpace(cells[2]), "default")
		row := tableRow.FindStringSubmatch(line)
		if !stating || row == nil {
			continue
		}
		missing[row[1]] = false
		if problem := wrongRow(row[1], row[2], all); problem != "" {
			problems = append(problems, fmt.Sprintf("%s:%d: %s", p.path, i+1, problem))
		}
	}
	for _, path := range slices.Sorted(maps.Keys(missing)) {
		if missing[path] {
			problems = append(problems, fmt.Sprintf("%s: %s has no row", p.path, path))
		}
	}
	return problems
}

func wrongRow(path, cell string, all map[string]setting) string {
	s, ok := all[path]
	if !ok {
		return path + " does not exist"
	}
	code := codeSpan.FindStringSubmatch(cell)
	if code == nil {
		return path + " states no default in code quotes"
	}
	if !s.agrees(code[1], all) {
		return fmt.Sprintf("%s is %v by default, not %s", path, s.value, code[1])
	}
	return ""
}

// Every number, duration and enumerated value states its default in its comment, or in that of its type, as it is.
func TestDefaultsInComments(t *testing.T) {
	comments, all := comments(t, root(t)), settings()
	for path, s := range all {
		switch {
		case !s.isNumber():
		case s.value.CanUint():
			name := stated(zeroValue, comments[s.value.Type().Name()])
			assert.True(t, strings.HasSuffix(strings.ToLower(name), fmt.Sprint(s.value)),
				"the zero value of %s is %v, its comment says %q", s.value.Type(), s.value, name)
		default:
			text := stated(zeroMeans, comments[path])
			assert.True(t, s.agrees(text, all), "%s is %v by default, its comment says %q", path, s.value, text)
		}
	}
}

// The package comment states some of them in parentheses: Window (30 s).
func TestDefaultsInPackageComment(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root(t), "doc.go"), nil, parser.ParseComments)
	require.NoError(t, err)
	all := settings()
	statements := inParentheses.FindAllStringSubmatch(oneLine(file.Doc), -1)
	require.NotEmpty(t, statements)
	for _, match := range statements {
		path := match[1]
		if !strings.Contains(path, ".") {
			path = "Settings." + path
		}
		if s, ok := all[path]; assert.True(t, ok, "%s does not exist", path) {
			assert.True(t, s.agrees(match[2], all), "%s is %v by default, not %s", path, s.value, match[2])
		}
	}
}

var (
	inParentheses = regexp.MustCompile(`\b([A-Z]\w+(?:\.\w+)?) \(([^)]+)\)`)

	zeroMeans = regexp.MustCompile(`\b0: (.+?)(?:[.;,](?:\s|$)| or | with | where )`)
	zeroValue = regexp.MustCompile(`\bzero value is \[(\w+)\]`)
)

// stated returns what a comment says about the zero, "" if nothing.
func stated(about *regexp.Regexp, comment string) string {
	if match := about.FindStringSubmatch(comment); match != nil {
		return match[1]
	}
	return ""
}

// comments returns the comments of the types of the root package, and those of the fields of its structs by "Type.Field", each
// in one line.
func comments(t *testing.T, dir string) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	found := make(map[string]string)
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			declaration, ok := n.(*ast.GenDecl)
			if !ok {
				return true
			}
			for _, spec := range declaration.Specs {
				if spec, ok := spec.(*ast.TypeSpec); ok {
					found[spec.Name.Name] = oneLine(declaration.Doc)
					addFields(found, spec)
				}
			}
			return false
		})
	}
	return found
}

func addFields(found map[string]string, spec *ast.TypeSpec) {
	structure, ok := spec.Type.(*ast.StructType)
	if !ok {
		return
	}
	for _, field := range structure.Fields.List {
		for _, name := range field.Names {
			found[spec.Name.Name+"."+name.Name] = oneLine(field.Doc)
		}
	}
}

func oneLine(comment *ast.CommentGroup) string {
	return strings.Join(strings.Fields(comment.Text()), " ")
}

func TestAgrees(t *testing.T) {
	all := settings()
	for _, test := range []struct {
		path, text string
		want       bool
	}{
		{"Settings.Window", "30s", true},
		{"Settings.Window", "30 s", true},
		{"Settings.Window", "31s", false},
		{"Settings.Window", "30", false},
		{"Settings.MaxBreakDuration", "30 s", true},
		{"Settings.MinCalls", "20", true},
		{"Settings.MinCalls", "20.0", false},
		{"Settings.SlowCallRatio", "0.50", true},
		{"Settings.FailureRatio", "off", true},
		{"Settings.SlowCallRatio", "off", false},
		{"Settings.BreakJitter", "equal", true},
		{"Settings.BreakJitter", "none", false},
		{"Settings.WhenOpen", "wait", false},
		{"Settings.ProbeTimeout", "MaxBreakDuration", true},
		{"Settings.ProbeTimeout", "BreakDuration", false},
		{"Settings.ObserveOnly", "false", true},
		{"Settings.Name", `""`, true},
		{"Settings.Classify", "nil", true},
		{"Settings.Classify", "0", false},
		{"Recovery.Fraction", "no ramp", true},
		{"Recovery.Initial", "0.05", true},
	} {
		assert.Equal(t, test.want, all[test.path].agrees(test.text, all), "%s: %s", test.path, test.text)
	}
}

func TestWrongDefaults(t *testing.T) {
	all := settings()
	for path := range all {
		switch path {
		case "Settings.Window", "Settings.MinCalls", "Settings.Name":
		default:
			delete(all, path)
		}
	}
	lines := []string{
		"| field | default |",
		"|---|---|",
		"| `Settings.Window` | `20s` |",
		"| `Settings.Widow` | `30s` |",
		"| `Settings.Name` | none |",
		"",
		"| field | in a fleet |",
		"|---|---|",
		"| `Settings.Window` | `1m` |",
	}
	assert.Equal(t, []string{
		"page.md:3: Settings.Window is 30s by default, not 20s",
		"page.md:4: Settings.Widow does not exist",
		"page.md:5: Settings.Name states no default in code quotes",
		"page.md: Settings.MinCalls has no row",
	}, wrongDefaults(page{"page.md", lines}, all))
}

func TestStated(t *testing.T) {
	for comment, want := range map[string]string{
		"Window is long. 0: 30 s.":                   "30 s",
		"Ratio, in (0, 1]. 0: 0.05. More.":           "0.05",
		"Duration. 0: 15 s, or Other if shorter.":    "15 s",
		"Min is the least; 0: 1 s or Max.":           "1 s",
		"Every. 0: off; at least 1 h.":               "off",
		"Limit. 0: no limit.":                        "no limit",
		"At least 10: 3. No default is stated here.": "",
	} {
		assert.Equal(t, want, stated(zeroMeans, comment))
	}
}
