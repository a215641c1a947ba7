package lazyregexp_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"obelus/engine/lazyregexp"
)

var word = lazyregexp.New(`[a-z]+`)

func ExampleNew() {
	fmt.Println(word().FindString("12 apples"))
	// Output: apples
}

// TestPatterns_Compile holds that each pattern of this module that is compiled when it is first used
// is a constant, and compiles.
func TestPatterns_Compile(t *testing.T) {
	files, patterns := token.NewFileSet(), 0
	err := fs.WalkDir(os.DirFS("../.."), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		file, err := parser.ParseFile(files, filepath.Join("../..", path), nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || !isNew(call.Fun) {
				return true
			}
			patterns++
			pattern, ok := constantIn(file, call.Args[0])
			if _, err := regexp.Compile(pattern); err != nil || !ok {
				t.Errorf("%v: %q: %v", files.Position(call.Pos()), pattern, err)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if patterns < 10 {
		t.Errorf("there are %d patterns", patterns)
	}
}

func isNew(e ast.Expr) bool {
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
