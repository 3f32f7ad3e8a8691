package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every block of Go in the documentation is a complete file, which is built and vetted, and run if it states its output; or it
// stands, word for word but for its indentation, in an example of the repository, where it is compiled and run.
func TestCode(t *testing.T) {
	sources := exampleSources(t)
	programs := newPrograms(t)
	for _, p := range pages(t) {
		blocks, _ := p.split()
		for _, b := range blocks {
			switch {
			case b.language == "":
				assert.Fail(t, "a block names no language", "%s:%d", b.page, b.line)
			case b.language != "go":
			case b.isFile():
				programs.add(t, b)
			default:
				assert.True(t, b.isIn(sources), "%s:%d: this block is in no example", b.page, b.line)
			}
		}
	}
	programs.check(t)
}

// exampleSources returns the files whose code is compiled and run because it is an example.
func exampleSources(t *testing.T) []string {
	t.Helper()
	dir := root(t)
	var sources []string
	walk(t, dir, func(path string) {
		name := filepath.Base(path)
		isExample := strings.HasSuffix(name, "_test.go") && strings.Contains(name, "example") ||
			strings.HasSuffix(name, ".go") && strings.HasPrefix(filepath.ToSlash(path), "examples/")
		if isExample {
			text, err := os.ReadFile(filepath.Join(dir, path))
			require.NoError(t, err)
			sources = append(sources, withoutIndentation(strings.Split(string(text), "\n")))
		}
	})
	require.NotEmpty(t, sources)
	return sources
}

// withoutIndentation joins lines so that only whole lines match whole lines.
func withoutIndentation(lines []string) string {
	var text strings.Builder
	text.WriteByte('\n')
	for _, line := range lines {
		text.WriteString(strings.TrimSpace(line))
		text.WriteByte('\n')
	}
	return text.String()
}

func (b block) text() string { return strings.Join(b.lines, "\n") + "\n" }

// isFile reports whether the block is a whole Go file rather than a fragment.
func (b block) isFile() bool {
	_, err := parser.ParseFile(token.NewFileSet(), "", b.text(), parser.PackageClauseOnly)
	return err == nil
}

func (b block) isIn(sources []string) bool {
	fragment := withoutIndentation(b.lines)
	for _, source := range sources {
		if strings.TrimSpace(fragment) != "" && strings.Contains(source, fragment) {
			return true
		}
	}
	return false
}

// programs is a module of complete files, each in a folder of its own, that finds this repository by a replace line.
type programs struct {
	dir   string
	names []string
	want  map[string]string // what a program prints, by its name, if it says so
}

func newPrograms(t *testing.T) *programs {
	t.Helper()
	dir, repository := t.TempDir(), root(t)
	module, err := os.ReadFile(filepath.Join(repository, "go.mod"))
	require.NoError(t, err)
	const path = "github.com/brownout-go/breaker"
	text := strings.Replace(string(module), "module "+path, "module documented", 1)
	text += fmt.Sprintf("\nrequire %s v0.0.0\n\nreplace %s => %s\n", path, path, repository)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text), 0o644))
	sums, err := os.ReadFile(filepath.Join(repository, "go.sum"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o644))
	return &programs{dir: dir, want: make(map[string]string)}
}

// add writes a file so that what the tools say about it names the line of the page.
func (p *programs) add(t *testing.T, b block) {
	t.Helper()
	name := fmt.Sprintf("block%d", len(p.names))
	folder := filepath.Join(p.dir, name)
	require.NoError(t, os.Mkdir(folder, 0o755))
	text := fmt.Sprintf("//line %s:%d\n%s", filepath.Join(root(t), b.page), b.line, b.text())
	file, err := parser.ParseFile(token.NewFileSet(), "", b.text(), parser.ParseComments)
	if !assert.NoError(t, err, "%s:%d", b.page, b.line) {
		return
	}
	require.NoError(t, os.WriteFile(filepath.Join(folder, "main.go"), []byte(text), 0o644))
	p.names = append(p.names, name)
	if output, ok := statedOutput(file); ok {
		p.want[name] = output
	}
}

// statedOutput returns what the last comment of a file says it prints.
func statedOutput(file *ast.File) (string, bool) {
	if len(file.Comments) == 0 {
		return "", false
	}
	return strings.CutPrefix(file.Comments[len(file.Comments)-1].Text(), "Output:")
}

// check vets and builds every program and runs those that state their output. The module cache must suffice.
func (p *programs) check(t *testing.T) {
	t.Helper()
	if len(p.names) == 0 {
		return
	}
	p.run(t, "go", "vet", "./...")
	for _, name := range p.names {
		program := filepath.Join(p.dir, name, "program")
		p.run(t, "go", "build", "-o", program, "./"+name)
		if want, ok := p.want[name]; ok {
			assert.Equal(t, strings.TrimSpace(want), strings.TrimSpace(p.run(t, program)))
		}
	}
}

func (p *programs) run(t *testing.T, name string, arguments ...string) (output string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, arguments...)
	command.Dir = p.dir
	command.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod", "GOPROXY=off")
	text, err := command.CombinedOutput()
	assert.NoError(t, err, "%s %v\n%s", name, arguments, text)
	return string(text)
}

func TestBlocks(t *testing.T) {
	text := "text\n```go\nb := f()\n\n\tg(b)\n```\n~~~text\n```go\n~~~\n  ```go title\n  package p\n  ```"
	p := page{"page.md", strings.Split(text, "\n")}
	blocks, prose := p.split()
	assert.Equal(t, []block{
		{"page.md", 3, "go", []string{"b := f()", "", "\tg(b)"}},
		{"page.md", 8, "text", []string{"```go"}},
		{"page.md", 11, "go", []string{"  package p"}},
	}, blocks)
	assert.Equal(t, "text", strings.TrimSpace(strings.Join(prose, "\n")))
	assert.Len(t, prose, len(p.lines))

	sources := []string{withoutIndentation([]string{"func F() {", "\tb := f()", "", "\t\tg(b)", "}"})}
	assert.True(t, blocks[0].isIn(sources))
	assert.False(t, blocks[1].isIn(sources))
	assert.False(t, block{lines: []string{"b := f"}}.isIn(sources), "a part of a line")
	assert.False(t, block{lines: []string{"b := f()", "g(b)"}}.isIn(sources), "a line left out")
	assert.False(t, block{}.isIn(sources), "nothing")
	assert.True(t, blocks[2].isFile())
	assert.False(t, blocks[0].isFile())
}
