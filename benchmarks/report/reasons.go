package main

import (
	_ "embed"
	"strings"
)

// written holds the reasons, written by hand: keys of losses, a line "| blame", and the text; a blank line ends each.
//
//go:embed reasons.txt
var written string

// reason explains losses that have one cause.
type reason struct {
	keys  []string
	blame string // the rule, the default, or neither: then the first pays for it in another row
	text  string
}

func readReasons(written string) []reason {
	var reasons []reason
	for block := range strings.SplitSeq(strings.TrimSpace(written), "\n\n") {
		keys, rest, _ := strings.Cut(block, "\n| ")
		blame, text, _ := strings.Cut(rest, "\n")
		reasons = append(reasons, reason{strings.Split(keys, "\n"), blame, text})
	}
	return reasons
}

// blames tells, by the key of a loss, what is to blame.
func blames(reasons []reason) map[string]string {
	blames := map[string]string{}
	for _, r := range reasons {
		for _, key := range r.keys {
			blames[key] = r.blame
		}
	}
	return blames
}
