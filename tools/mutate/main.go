// Command mutate tells how many small faults the tests of a package notice. It writes every fault, a mutant, into one copy of the
// sources, each behind a switch, builds the tests once, and runs them once for each mutant. The package itself is left alone.
//
//	go run . -dir ../.. -skip 'Slow|Layout' machine.go trip.go
//
// A mutant is a comparison made strict, lax, or its contrary; && for || and the other way round; + for - and * for /, and the
// other way round. It is killed if a test fails or panics, or if the tests take too long.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

func main() {
	dir := flag.String("dir", ".", "folder of the package")
	skip := flag.String("skip", "", "tests to leave out, as for go test -skip")
	limit := flag.Duration("timeout", time.Minute, "for the tests of one mutant")
	workers := flag.Int("workers", 2, "mutants at once")
	flag.Parse()
	if err := run(*dir, *skip, *limit, *workers, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// run prints the mutants that survive, and the sums for each file.
func run(dir, skip string, limit time.Duration, workers int, files []string) error {
	work, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	s, err := mutateAll(dir, files)
	if err != nil {
		return err
	}
	tests := &suite{dir: dir, binary: filepath.Join(work, "package.test"), skip: skip, limit: limit}
	if err := tests.build(work, s); err != nil {
		return err
	}
	if f, output := tests.try(context.Background(), 0); f != survived {
		return fmt.Errorf("without a mutant: %v\n%s", f, output)
	}
	total := map[string]map[fate]int{}
	for i, f := range tests.tryAll(s.mutants, workers) {
		m := s.mutants[i]
		if f == survived {
			fmt.Println(m, f)
		}
		if total[m.file] == nil {
			total[m.file] = map[fate]int{}
		}
		total[m.file][f]++
	}
	for _, file := range files {
		fmt.Println(file, total[file])
	}
	return nil
}

// tryAll runs the tests for every mutant and tells what became of each.
func (t *suite) tryAll(mutants []mutant, workers int) []fate {
	fates := make([]fate, len(mutants))
	next := make(chan int)
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for i := range next {
				fates[i], _ = t.try(context.Background(), mutants[i].number)
				fmt.Fprintf(os.Stderr, "%d of %d: %v %s\n", i+1, len(mutants), mutants[i], fates[i])
			}
		})
	}
	for i := range mutants {
		next <- i
	}
	close(next)
	all.Wait()
	return fates
}
