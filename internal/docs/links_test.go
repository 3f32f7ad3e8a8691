package docs

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every link within the repository leads to a file that exists and to a heading or line in it.
func TestLinks(t *testing.T) {
	dir := root(t)
	for _, p := range pages(t) {
		for _, problem := range brokenLinks(t, dir, p) {
			assert.Fail(t, "broken link", problem)
		}
	}
}

var (
	inlineCode = regexp.MustCompile("(`+)[^`]+(`+)")
	linkTarget = regexp.MustCompile(
		`\]\(\s*<?([^)\s>]+)>?[^)]*\)` + // [text](target "title"), ![text](target)
			`|^\s*\[[^\]^][^\]]*\]:\s*(\S+)` + // [reference]: target
			`|\s(?:src|srcset|href)="([^"]*)"`) // HTML
	linkReference = regexp.MustCompile(`\]\[([^\]]+)\]`)
	heading       = regexp.MustCompile(`^ {0,3}#{1,6}\s+(.*?)[\s#]*$`)
	htmlAnchor    = regexp.MustCompile(`\s(?:id|name)="([^"]+)"`)
	headingMarkup = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
)

// brokenLinks returns what is wrong with the links of a page.
func brokenLinks(t *testing.T, dir string, p page) (problems []string) {
	t.Helper()
	_, prose := p.split()
	defined := strings.ToLower(strings.Join(prose, "\n"))
	for i, line := range prose {
		line = inlineCode.ReplaceAllString(line, "code")
		for _, match := range linkTarget.FindAllStringSubmatch(line, -1) {
			target := match[1] + match[2] + match[3]
			if problem := checkLink(t, dir, p, target); problem != "" {
				problems = append(problems, fmt.Sprintf("%s:%d: %s: %s", p.path, i+1, target, problem))
			}
		}
		for _, match := range linkReference.FindAllStringSubmatch(line, -1) {
			if !strings.Contains(defined, "["+strings.ToLower(match[1])+"]:") {
				problems = append(problems, fmt.Sprintf("%s:%d: [%s] is not defined", p.path, i+1, match[1]))
			}
		}
	}
	return problems
}

// checkLink returns what is wrong with a link, "" if nothing is or if it leads out of the repository.
func checkLink(t *testing.T, dir string, from page, target string) string {
	t.Helper()
	link, err := url.Parse(target)
	switch {
	case err != nil:
		return err.Error()
	case link.Scheme == "https" || link.Scheme == "mailto":
		return ""
	case link.Scheme != "" || link.Host != "" || filepath.IsAbs(link.Path):
		return "neither https nor relative"
	}
	path := from.path
	if link.Path != "" {
		path = filepath.Join(filepath.Dir(from.path), link.Path)
	}
	if !filepath.IsLocal(path) {
		return "leads out of the repository"
	}
	if _, err := os.Stat(filepath.Join(dir, path)); err != nil {
		return "no such file"
	}
	return checkFragment(t, dir, path, link.Fragment)
}

func checkFragment(t *testing.T, dir, path, fragment string) string {
	t.Helper()
	switch {
	case fragment == "":
		return ""
	case filepath.Ext(path) == ".md":
		if !anchors(readPage(t, dir, path))[fragment] {
			return "no such heading"
		}
		return ""
	}
	line, err := strconv.Atoi(strings.TrimPrefix(fragment, "L"))
	if err != nil {
		return "neither a heading nor a line"
	}
	text, err := os.ReadFile(filepath.Join(dir, path))
	require.NoError(t, err)
	if line < 1 || line > bytes.Count(text, []byte("\n")) {
		return "no such line"
	}
	return ""
}

// anchors returns the anchors of a page as GitHub makes them.
func anchors(p page) map[string]bool {
	found := make(map[string]bool)
	_, prose := p.split()
	for _, line := range prose {
		if match := heading.FindStringSubmatch(line); match != nil {
			anchor := slug(match[1])
			unique := anchor
			for n := 1; found[unique]; n++ {
				unique = fmt.Sprintf("%s-%d", anchor, n)
			}
			found[unique] = true
		}
		for _, match := range htmlAnchor.FindAllStringSubmatch(line, -1) {
			found[match[1]] = true
		}
	}
	return found
}

// slug is the anchor of a heading: its text in lower case, without punctuation, with hyphens for spaces.
func slug(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r) || unicode.IsNumber(r) || r == '-' || r == '_':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		default:
			return -1
		}
	}, headingMarkup.ReplaceAllString(text, "$1"))
}

func TestBrokenLinks(t *testing.T) {
	p := readPage(t, "testdata", "links.md")
	problems := brokenLinks(t, "testdata", p)
	for i, want := range []string{
		"links.md:9: missing.md: no such file",
		"links.md:10: #no-heading: no such heading",
		"links.md:11: sub/other.md#again-2: no such heading",
		"links.md:12: ../../doc.go: leads out of the repository",
		"links.md:13: /links.md: neither https nor relative",
		"links.md:14: http://example.com: neither https nor relative",
		"links.md:15: missing.png: no such file",
		"links.md:15: missing.svg: no such file",
		"links.md:16: links.md#L99: no such heading",
		"links.md:17: [nowhere] is not defined",
		"links.md:18: missing/: no such file",
		"links.md:19: sub/code.txt#L3: no such line",
		"links.md:20: gone.svg: no such file",
	} {
		if assert.Less(t, i, len(problems), "not found: %s", want) {
			assert.Equal(t, want, problems[i])
		}
	}
	assert.Len(t, problems, 13)
}

func TestSlug(t *testing.T) {
	for text, want := range map[string]string{
		"Half-open":                       "half-open",
		"What `HalfOpenProbes` cannot do": "what-halfopenprobes-cannot-do",
		"States, outcomes & events":       "states-outcomes--events",
		"The [ramp](recovery.md)":         "the-ramp",
		"1. *Why*?":                       "1-why",
	} {
		assert.Equal(t, want, slug(text))
	}
}
