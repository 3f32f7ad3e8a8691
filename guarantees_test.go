package breaker

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// testName matches the name of a test as docs/guarantees.md gives it: in code, after its folder if that is not the root.
var testName = regexp.MustCompile("`(?:([a-z/]+)\\.)?((?:Test|Fuzz|Example)[A-Za-z0-9_]+)`")

// testsOf returns the tests, fuzz targets and examples of a folder.
func testsOf(t *testing.T, folder string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	require.NoError(t, err)
	require.NotEmpty(t, files, "folder %s", folder)
	tests := map[string]bool{}
	for _, file := range files {
		syntax, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range syntax.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				tests[f.Name.Name] = true
			}
		}
	}
	return tests
}

// Every promise names the tests that would fail if it were broken, and those exist.
func TestGuaranteesNameTheirTests(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("docs", "guarantees.md"))
	require.NoError(t, err)
	folders := map[string]map[string]bool{}
	promises := 0
	for number, line := range strings.Split(string(text), "\n") {
		if !strings.HasPrefix(line, "| ") || strings.HasSuffix(line, "| test |") {
			continue
		}
		promises++
		cells := strings.Split(strings.Trim(line, "| "), "|")
		named := testName.FindAllStringSubmatch(cells[len(cells)-1], -1)
		assert.NotEmpty(t, named, "line %d names no test", number+1)
		for _, name := range named {
			folder := path.Clean(name[1])
			if folders[folder] == nil {
				folders[folder] = testsOf(t, folder)
			}
			assert.True(t, folders[folder][name[2]], "line %d: there is no %s in %s", number+1, name[2], folder)
		}
	}
	assert.Greater(t, promises, 100)
}
