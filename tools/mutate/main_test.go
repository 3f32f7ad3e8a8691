package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const subject = `package subject

func Adult(age int, licensed bool) bool { return age+0 >= 18 && licensed }

func Twice(n int) int { return 2 * n }
`

const subjectTest = `package subject

import "testing"

func TestAdult(t *testing.T) {
	if !Adult(19, true) || Adult(17, true) || Adult(19, false) {
		t.Fatal()
	}
}
`

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// The tests of the subject see everything but the boundary, the zero that is added, and what they do not call.
func TestMutants(t *testing.T) {
	dir, work := t.TempDir(), t.TempDir()
	write(t, dir, map[string]string{"go.mod": "module subject\n\ngo 1.26\n", "subject.go": subject, "subject_test.go": subjectTest})
	s, err := mutateAll(dir, []string{"subject.go"})
	if err != nil {
		t.Fatal(err)
	}
	tests := &suite{dir: dir, binary: filepath.Join(work, "subject.test"), limit: time.Minute}
	if err := tests.build(work, s); err != nil {
		t.Fatal(err)
	}
	if f, output := tests.try(t.Context(), 0); f != survived {
		t.Fatal(f, output)
	}
	var got []string
	for i, f := range tests.tryAll(s.mutants, 2) {
		if f == survived {
			got = append(got, s.mutants[i].text)
		}
	}
	if want := "(age+0) > 18; age-0; 2 / n"; strings.Join(got, "; ") != want {
		t.Fatalf("got %s, want %s", got, want)
	}
}

func TestMutants_NoSuchFile(t *testing.T) {
	if _, err := mutateAll(t.TempDir(), []string{"absent.go"}); err == nil {
		t.Fatal("no error")
	}
}
