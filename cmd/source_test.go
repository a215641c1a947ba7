package cmd

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// sources parses all files of Go in the module, with their comments, and calls f with each.
func sources(t *testing.T, f func(path string, fset *token.FileSet, file *ast.File)) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err == nil {
			f(path, fset, file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestSource_CommentsAreNarrow holds that no line of a comment outside of tests and generated code
// has more than 100 columns, where a tab counts as one. A comment behind code is not looked at.
func TestSource_CommentsAreNarrow(t *testing.T) {
	sources(t, func(path string, fset *token.FileSet, file *ast.File) {
		if strings.HasSuffix(path, "_test.go") || ast.IsGenerated(file) {
			return
		}
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, group := range file.Comments {
			for _, comment := range group.List {
				at := fset.Position(comment.Pos())
				if strings.TrimSpace(string(source[at.Offset-at.Column+1:at.Offset])) != "" {
					continue
				}
				for i, line := range strings.Split(comment.Text, "\n") {
					indent := 0
					if i == 0 {
						indent = at.Column - 1
					}
					if width := indent + utf8.RuneCountInString(line); width > 100 && !strings.HasPrefix(line, "//go:") {
						t.Errorf("%s:%d: the comment has %d columns", path, at.Line+i, width)
					}
				}
			}
		}
	})
}

// TestSource_ImportsAreInGroups holds that a group of imports holds either packages of the standard
// library alone, or none of them.
func TestSource_ImportsAreInGroups(t *testing.T) {
	sources(t, func(path string, fset *token.FileSet, file *ast.File) {
		line, group := 0, false
		for i, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			first, _, _ := strings.Cut(imported, "/")
			standard := first != "obelus" && !strings.Contains(first, ".") && first != "C"
			at := fset.Position(spec.Pos()).Line
			if i > 0 && at == line+1 && standard != group {
				t.Errorf("%s:%d: the import of %s stands in the group of another kind", path, at, imported)
			}
			line, group = at, standard
		}
	})
}

// conventional are methods of interfaces that every reader knows.
var conventional = []string{"Error", "Is", "MarshalJSON", "String", "UnmarshalJSON", "Unwrap"}

// TestSource_ExportsHaveComments holds that exported functions, and exported methods of exported
// types, have a comment that begins with their name.
func TestSource_ExportsHaveComments(t *testing.T) {
	sources(t, func(path string, fset *token.FileSet, file *ast.File) {
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || !f.Name.IsExported() || f.Recv != nil && (!isOfExported(f) || slices.Contains(conventional, f.Name.Name)) {
				continue
			}
			if !strings.HasPrefix(f.Doc.Text(), f.Name.Name+" ") {
				t.Errorf("%s: the comment of %s does not begin with its name", fset.Position(f.Pos()), f.Name.Name)
			}
		}
	})
}

// isOfExported reports whether a method is of an exported type.
func isOfExported(f *ast.FuncDecl) bool {
	for at := f.Recv.List[0].Type; ; {
		switch of := at.(type) {
		case *ast.StarExpr:
			at = of.X
		case *ast.IndexExpr:
			at = of.X
		case *ast.IndexListExpr:
			at = of.X
		case *ast.Ident:
			return of.IsExported()
		default:
			return false
		}
	}
}

// TestSource_PatternsCompile holds that each pattern that is compiled when it is first used is a
// constant, and compiles.
func TestSource_PatternsCompile(t *testing.T) {
	patterns := 0
	sources(t, func(path string, fset *token.FileSet, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || !isLazyPattern(call.Fun) {
				return true
			}
			patterns++
			pattern, ok := constantIn(file, call.Args[0])
			if _, err := regexp.Compile(pattern); err != nil || !ok {
				t.Errorf("%v: %q: %v", fset.Position(call.Pos()), pattern, err)
			}
			return true
		})
	})
	if patterns < 10 {
		t.Errorf("there are %d patterns", patterns)
	}
}

func isLazyPattern(e ast.Expr) bool {
	selector, ok := e.(*ast.SelectorExpr)
	if !ok || selector.Sel.Name != "New" {
		return false
	}
	of, ok := selector.X.(*ast.Ident)
	return ok && of.Name == "lazyregexp"
}

// constantIn is the text of literals and of constants of the file, joined by +.
func constantIn(file *ast.File, e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		left, leftOK := constantIn(file, e.X)
		right, rightOK := constantIn(file, e.Y)
		return left + right, leftOK && rightOK
	case *ast.Ident:
		for _, d := range file.Decls {
			declared, ok := d.(*ast.GenDecl)
			if !ok || declared.Tok != token.CONST {
				continue
			}
			for _, spec := range declared.Specs {
				if spec := spec.(*ast.ValueSpec); len(spec.Values) == 1 && spec.Names[0].Name == e.Name {
					return constantIn(file, spec.Values[0])
				}
			}
		}
	}
	return "", false
}
