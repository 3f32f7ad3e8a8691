package main

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strings"
)

// mutant is one fault in the sources.
type mutant struct {
	number    int
	file      string
	line      int
	was, text string
}

func (m mutant) String() string {
	return fmt.Sprintf("%s:%d: %s, was %s:", m.file, m.line, m.text, m.was)
}

// sources are the mutated files of a package.
type sources struct {
	name    string
	texts   map[string]string
	mutants []mutant

	files *token.FileSet
	info  types.Info
	file  string
	text  string // of the file, as it is
}

// mutateAll writes every mutant of the files named.
func mutateAll(dir string, names []string) (*sources, error) {
	s := &sources{texts: map[string]string{}, files: token.NewFileSet(), info: types.Info{Types: map[ast.Expr]types.TypeAndValue{}}}
	all, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	parsed := map[string]*ast.File{}
	var syntax []*ast.File
	for _, path := range all {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(s.files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		parsed[filepath.Base(path)] = file
		syntax = append(syntax, file)
	}
	// What cannot be imported leaves its expressions without a type; those are not mutated.
	config := types.Config{Importer: importer.ForCompiler(s.files, "source", nil), Error: func(error) {}}
	_, _ = config.Check("", s.files, syntax, &s.info)
	for _, name := range names {
		if parsed[name] == nil {
			return nil, fmt.Errorf("no file %s", name)
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		s.name, s.file, s.text = parsed[name].Name.Name, name, string(text)
		s.texts[name] = s.rewrite(parsed[name])
	}
	return s, nil
}

// edit replaces a part of a file.
type edit struct {
	from, to int
	text     string
}

// rewrite returns the file with its mutants: those of functions, since constants cannot be switched.
func (s *sources) rewrite(file *ast.File) string {
	var edits []edit
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
			edits = append(edits, s.editsIn(f.Body)...)
		}
	}
	return apply(s.text, 0, edits)
}

// editsIn returns the edits of the outermost expressions with mutants below a node.
func (s *sources) editsIn(root ast.Node) (edits []edit) {
	ast.Inspect(root, func(n ast.Node) bool {
		if d, ok := n.(*ast.GenDecl); ok && d.Tok == token.CONST {
			return false
		}
		e, ok := n.(ast.Expr)
		if !ok || n == root {
			return true
		}
		text, ok := s.mutated(e)
		if ok {
			edits = append(edits, edit{s.offset(e.Pos()), s.offset(e.End()), text})
		}
		return !ok
	})
	return edits
}

// mutated returns an expression with its mutants and those below it; false if it has none of its own.
func (s *sources) mutated(e ast.Expr) (string, bool) {
	b, ok := e.(*ast.BinaryExpr)
	if !ok || s.info.Types[e].Type == nil || s.info.Types[e].Value != nil {
		return "", false
	}
	if call := arithmetic[b.Op]; call != "" && s.isNumber(b.X) && s.isNumber(b.Y) {
		n := s.add(b, strings.Replace(s.source(b), b.Op.String(), opposite[b.Op].String(), 1))
		return fmt.Sprintf("%s(%d, %s, %s)", call, n, s.inner(b.X), s.inner(b.Y)), true
	}
	alternatives := s.alternatives(b)
	if len(alternatives) == 0 {
		return "", false
	}
	var text, none strings.Builder
	for _, a := range alternatives {
		n := s.add(b, a)
		fmt.Fprintf(&text, "mutant == %d && (%s) || ", n, a)
		fmt.Fprintf(&none, "mutant != %d && ", n)
	}
	return fmt.Sprintf("(%s%s(%s %s %s))", text.String(), none.String(), s.inner(b.X), b.Op, s.inner(b.Y)), true
}

var arithmetic = map[token.Token]string{token.ADD: "mutantAdd", token.SUB: "mutantSub", token.MUL: "mutantMul", token.QUO: "mutantDiv"}

var opposite = map[token.Token]token.Token{
	token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO, token.QUO: token.MUL,
	token.LAND: token.LOR, token.LOR: token.LAND, token.EQL: token.NEQ, token.NEQ: token.EQL,
	token.LSS: token.GEQ, token.GEQ: token.LSS, token.GTR: token.LEQ, token.LEQ: token.GTR,
}

var boundary = map[token.Token]token.Token{
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
}

// alternatives returns the mutants of a condition.
func (s *sources) alternatives(b *ast.BinaryExpr) (texts []string) {
	for _, table := range []map[token.Token]token.Token{boundary, opposite} {
		if op, ok := table[b.Op]; ok && arithmetic[b.Op] == "" {
			texts = append(texts, fmt.Sprintf("%s %s %s", s.operand(b.X), op, s.operand(b.Y)))
		}
	}
	return texts
}

// operand returns an operand so that another operator may stand beside it.
func (s *sources) operand(e ast.Expr) string {
	if _, ok := e.(*ast.BinaryExpr); ok {
		return "(" + s.source(e) + ")"
	}
	return s.source(e)
}

// inner returns an operand with the mutants in it.
func (s *sources) inner(e ast.Expr) string {
	if text, ok := s.mutated(e); ok {
		return text
	}
	return apply(s.source(e), s.offset(e.Pos()), s.editsIn(e))
}

// isNumber reports whether an operand has a type of numbers that is known and no constant's.
func (s *sources) isNumber(e ast.Expr) bool {
	t := s.info.Types[e].Type
	if t == nil {
		return false
	}
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&types.IsNumeric != 0
}

func (s *sources) add(e ast.Expr, text string) (number int) {
	number = len(s.mutants) + 1
	line := s.files.Position(e.Pos()).Line
	s.mutants = append(s.mutants, mutant{number, s.file, line, s.source(e), text})
	return number
}

func (s *sources) offset(p token.Pos) int   { return s.files.Position(p).Offset }
func (s *sources) source(e ast.Expr) string { return s.text[s.offset(e.Pos()):s.offset(e.End())] }

// apply applies edits, in order, to a text that begins at an offset of its file.
func apply(text string, offset int, edits []edit) string {
	var out strings.Builder
	at := 0
	for _, e := range edits {
		out.WriteString(text[at : e.from-offset])
		out.WriteString(e.text)
		at = e.to - offset
	}
	out.WriteString(text[at:])
	return out.String()
}
