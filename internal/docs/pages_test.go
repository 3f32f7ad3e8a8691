package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is the repository.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	return dir
}

// page is a Markdown file.
type page struct {
	path  string // from the root of the repository
	lines []string
}

// pages returns the documentation: what stands at the root, in docs and in .github, and the README of any folder.
func pages(t *testing.T) []page {
	t.Helper()
	dir := root(t)
	var found []page
	walk(t, dir, func(path string) {
		folder := filepath.Dir(path)
		if filepath.Ext(path) != ".md" ||
			!slices.Contains([]string{".", "docs", ".github"}, folder) && filepath.Base(path) != "README.md" {
			return
		}
		found = append(found, readPage(t, dir, path))
	})
	require.NotEmpty(t, found)
	return found
}

func readPage(t *testing.T, dir, path string) page {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, path))
	require.NoError(t, err)
	return page{path, strings.Split(string(text), "\n")}
}

// walk calls f with the path of every file below dir that belongs to the repository, relative to dir.
func walk(t *testing.T, dir string, f func(path string)) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if entry.Name() == ".git" || entry.Name() == "testdata" {
				return filepath.SkipDir
			}
			return nil
		}
		relative, err := filepath.Rel(dir, path)
		f(relative)
		return err
	})
	require.NoError(t, err)
}

// block is a fenced block of a page.
type block struct {
	page     string
	line     int // of its first line of text, from 1
	language string
	lines    []string
}

// split returns the fenced blocks of a page, and its lines with those of the blocks blank.
func (p page) split() (blocks []block, prose []string) {
	var fence string
	for i, line := range p.lines {
		trimmed := strings.TrimSpace(line)
		switch {
		case fence == "" && (strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~")):
			info := strings.TrimLeft(trimmed, "`~")
			fence = trimmed[:len(trimmed)-len(info)]
			language, _, _ := strings.Cut(strings.TrimSpace(info), " ")
			blocks = append(blocks, block{page: p.path, line: i + 2, language: language})
			prose = append(prose, "")
		case fence == "":
			prose = append(prose, line)
		case trimmed == fence:
			fence = ""
			prose = append(prose, "")
		default:
			last := &blocks[len(blocks)-1]
			last.lines = append(last.lines, line)
			prose = append(prose, "")
		}
	}
	return blocks, prose
}
