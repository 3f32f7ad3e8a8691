package ledger

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	unnamed  = "unnamed" // the label of a breaker without a name
	maxRunes = 128       // of a label, with the mark of one that is cut off
	cutOff   = "…"
)

// Label returns a name as it may be put into any metric, span or page: valid UTF-8 without control characters, neither empty nor
// longer than 128 characters. Names that differ in nothing else have the same label.
func Label(name string) string {
	if name == "" {
		return unnamed
	}
	label := strings.Map(printable, name)
	if utf8.RuneCountInString(label) > maxRunes {
		label = string([]rune(label)[:maxRunes-1]) + cutOff
	}
	return label
}

// printable returns r, or the replacement character for one that cannot be printed. Bytes that are no UTF-8 come as that already.
func printable(r rune) rune {
	if unicode.IsPrint(r) || unicode.IsMark(r) {
		return r
	}
	return utf8.RuneError
}
