package breaker

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// How a group names its breakers.

// keyText returns the text of a key, and whether no other key of its type has the same.
func keyText[K comparable](key K) (text string, certain bool) {
	w := keyWriter{certain: true}
	v := reflect.ValueOf(&key).Elem()
	if v.Kind() == reflect.String && !prints(v.Type()) {
		return v.String(), true
	}
	w.write(v)
	return w.String(), w.certain
}

// keyWriter writes a key so that it could be read again.
type keyWriter struct {
	strings.Builder
	certain bool
}

func (w *keyWriter) write(v reflect.Value) {
	switch {
	case prints(v.Type()) && v.CanInterface() && v.Kind() != reflect.Interface:
		w.writePrinted(v)
	case v.Kind() == reflect.String:
		w.writeString(v.String())
	case v.Kind() == reflect.Struct:
		w.writeAll('{', '}', v.NumField(), v.Field)
	case v.Kind() == reflect.Array:
		w.writeAll('[', ']', v.Len(), v.Index)
	case v.Kind() == reflect.Interface && !v.IsNil():
		w.writeDynamic(v.Elem())
	default:
		w.writePlain(v)
	}
}

// writeAll writes the parts of a struct or an array.
func (w *keyWriter) writeAll(open, end byte, n int, part func(int) reflect.Value) {
	w.WriteByte(open)
	for i := range n {
		if i > 0 {
			w.WriteByte(' ')
		}
		w.write(part(i))
	}
	w.WriteByte(end)
}

// writeString writes a string, in quotes unless it reads as one word.
func (w *keyWriter) writeString(s string) {
	quoted := strconv.Quote(s)
	if s != "" && len(quoted) == len(s)+2 && !strings.ContainsAny(s, " (){}[]<>") {
		quoted = s
	}
	w.WriteString(quoted)
}

// writeDynamic writes what an interface holds. Two types may have one text.
func (w *keyWriter) writeDynamic(v reflect.Value) {
	t := v.Type()
	if t == reflect.TypeFor[string]() {
		w.writeString(v.String())
		return
	}
	w.certain = w.certain && t.PkgPath() == "" && t.Name() != ""
	w.WriteString(t.String() + "(")
	w.write(v)
	w.WriteByte(')')
}

// writePrinted writes what a key prints itself as, which may be the same for two.
func (w *keyWriter) writePrinted(v reflect.Value) {
	text := fmt.Sprint(v.Interface())
	w.certain = false
	if w.Len() == 0 {
		w.WriteString(text)
	} else {
		w.writeString(text)
	}
}

// writePlain writes a number, a bool or an address, which stands for itself and not for what is there.
func (w *keyWriter) writePlain(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Chan, reflect.UnsafePointer:
		fmt.Fprintf(w, "%#x", v.Pointer())
	default:
		fmt.Fprint(w, v)
	}
}

var printers = []reflect.Type{reflect.TypeFor[fmt.Stringer](), reflect.TypeFor[error](), reflect.TypeFor[fmt.Formatter]()}

// prints reports whether fmt lets values of a type print themselves.
func prints(t reflect.Type) bool { return slices.ContainsFunc(printers, t.Implements) }

// claim returns a name for a member that no other has, made from a text that may not be its own.
func (g *Group[K]) claim(m *member[K], text string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	name := text
	for n := g.names[text] + 1; g.names[name] > 0; n++ {
		name = fmt.Sprintf("%s#%d", text, n)
		g.names[text] = n
	}
	if m.making != nil { // otherwise it has been deleted meanwhile, and nobody would give the name back
		g.names[name], m.name = max(g.names[name], 1), name
	}
	return name
}

// releaseLocked gives the name of a member back.
func (g *Group[K]) releaseLocked(m *member[K]) {
	if m.name != "" {
		delete(g.names, m.name)
	}
}
