package model_test

import (
	"fmt"
	"strings"
	"testing"
)

// FuzzModel runs a breaker and its model through the same operations. The first bytes of an input are settings, the others
// operations. Minimising what is merely interesting takes most of the time unless it is bounded: -fuzzminimizetime 20x.
func FuzzModel(f *testing.F) {
	for seed := range uint64(16) {
		f.Add(randomInput(seed))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		if failure, valid := play(input); !valid {
			t.Skip("the settings are not valid")
		} else if failure != "" {
			t.Fatal(failure)
		}
	})
}

// play returns how breaker and model differ on an input, and whether its settings are valid.
func play(input []byte) (failure string, valid bool) {
	r, ops := prepare(input)
	if r == nil {
		return "", false
	}
	if r.run(ops) {
		return "", true
	}
	return r.describe(), true
}

func prepare(input []byte) (*rig, []op) {
	s := &source{input}
	flags := s.next()
	settings := s.settings()
	if settings.Validate() != nil {
		return nil, nil
	}
	return newRig(settings, flags&3 == 3, flags&4 != 0), s.ops()
}

func (r *rig) describe() string {
	var s strings.Builder
	fmt.Fprintf(&s, "settings %+v, dynamic break: %v, readers on demand: %v\n",
		r.settings.WithDefaults(), r.breaker.Settings().BreakDurationFunc != nil, r.quiet)
	for i, line := range r.log {
		fmt.Fprintf(&s, "step %d: %s\n", i, line)
	}
	s.WriteString("breaker (got) and model (want) differ after the last step:\n\t")
	s.WriteString(strings.Join(r.faults, "\n\t"))
	return s.String()
}
