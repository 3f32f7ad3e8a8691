package breaker

import (
	"fmt"
	"slices"
)

// enum holds the texts of an enumerated type, indexed by value.
type enum struct {
	kind  string
	texts []string
}

func (e *enum) has(v uint8) bool { return int(v) < len(e.texts) }

func (e *enum) text(v uint8) string {
	if !e.has(v) {
		return fmt.Sprintf("%s(%d)", e.kind, v)
	}
	return e.texts[v]
}

func (e *enum) marshal(v uint8) ([]byte, error) {
	if !e.has(v) {
		return nil, fmt.Errorf("breaker: unknown %s %d", e.kind, v)
	}
	return []byte(e.texts[v]), nil
}

func (e *enum) parse(text []byte) (uint8, error) {
	if i := slices.Index(e.texts, string(text)); i >= 0 {
		return uint8(i), nil
	}
	return 0, fmt.Errorf("breaker: unknown %s %q", e.kind, text)
}
