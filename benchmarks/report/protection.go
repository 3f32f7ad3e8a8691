package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/brownout-go/breaker/benchmarks/internal/protect"
)

// measureProtection runs the scenarios in a test of their package, because a bubble of testing/synctest needs a test.
func measureProtection(scenarios []protect.Scenario, short bool) (protect.Results, error) {
	dir, err := os.MkdirTemp("", "report")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "results.json")
	test := exec.Command("go", "test", "-count=1", "-timeout=30m", "-run=^TestField$", "-args", "-field.out="+file,
		fmt.Sprintf("-field.short=%t", short))
	test.Dir = filepath.Join("internal", "protect")
	counter := &runCounter{}
	for _, s := range scenarios {
		counter.total += len(s.Entries())
	}
	test.Stdout, test.Stderr = counter, counter
	if err := test.Run(); err != nil {
		return nil, fmt.Errorf("the scenarios: %w\n%s", err, counter.other.String())
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var results protect.Results
	return results, json.Unmarshal(text, &results)
}

// runCounter reads the output of the test: a line "scenario: entry" for each that has been measured. The rest is kept for
// the case that it fails.
type runCounter struct {
	done, total int
	line        bytes.Buffer
	other       bytes.Buffer
}

func (c *runCounter) Write(p []byte) (int, error) {
	for _, b := range p {
		if b != '\n' {
			c.line.WriteByte(b)
			continue
		}
		c.end(c.line.String())
		c.line.Reset()
	}
	return len(p), nil
}

func (c *runCounter) end(line string) {
	if scenario, entry, found := strings.Cut(line, ": "); found && !strings.HasPrefix(line, " ") {
		c.done++
		progress("protection: %d of %d: %s, %s", c.done, c.total, scenario, entry)
		return
	}
	fmt.Fprintln(&c.other, line)
}
