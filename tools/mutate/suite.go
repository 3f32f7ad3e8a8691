package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// suite is the tests of a package, built with every mutant in it.
type suite struct {
	dir, binary, skip string
	limit             time.Duration
}

// build builds the tests with the mutated sources laid over the real ones.
func (t *suite) build(work string, s *sources) error {
	replace := map[string]string{}
	lay := func(name, text string) error {
		target, err := filepath.Abs(filepath.Join(t.dir, name))
		replace[target] = filepath.Join(work, name)
		if err != nil {
			return err
		}
		return os.WriteFile(replace[target], []byte(text), 0o600)
	}
	for name, text := range s.texts {
		if err := lay(name, text); err != nil {
			return err
		}
	}
	if err := lay("zz_mutant.go", fmt.Sprintf(switchSource, s.name, environment)); err != nil {
		return err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	path := filepath.Join(work, "overlay.json")
	if err := os.WriteFile(path, overlay, 0o600); err != nil {
		return err
	}
	build := exec.Command("go", "test", "-c", "-vet=off", "-overlay", path, "-o", t.binary, ".")
	build.Dir = t.dir
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, output)
	}
	return nil
}

// fate is what became of a mutant.
type fate string

const (
	survived fate = "survived"
	failed   fate = "failed"
	timedOut fate = "timed out"
)

// try runs the tests with one mutant on, none for 0.
func (t *suite) try(ctx context.Context, number int) (fate, string) {
	ctx, cancel := context.WithTimeout(ctx, t.limit)
	defer cancel()
	c := exec.CommandContext(ctx, t.binary, "-test.short", "-test.failfast", "-test.skip="+t.skip)
	c.Dir = t.dir
	c.Env = append(os.Environ(), environment+"="+strconv.Itoa(number), "GOMEMLIMIT=1GiB")
	output, err := c.CombinedOutput()
	switch {
	case ctx.Err() != nil:
		return timedOut, string(output)
	case err != nil:
		return failed, string(output)
	default:
		return survived, string(output)
	}
}

// environment names the variable that switches a mutant on.
const environment = "MUTANT"

// switchSource is the file that the mutants look into.
const switchSource = `package %s

import (
	"os"
	"strconv"
)

var mutant, _ = strconv.Atoi(os.Getenv(%q))

type mutable interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr | ~float32 | ~float64
}

func mutantAdd[T mutable](n int, a, b T) T { if mutant == n { return a - b }; return a + b }
func mutantSub[T mutable](n int, a, b T) T { if mutant == n { return a + b }; return a - b }
func mutantMul[T mutable](n int, a, b T) T { if mutant == n { return a / b }; return a * b }
func mutantDiv[T mutable](n int, a, b T) T { if mutant == n { return a * b }; return a / b }
`
