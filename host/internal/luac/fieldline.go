package luac

import (
	"cmp"

	"github.com/yuin/gopher-lua/ast"
)

// FieldLine returns the line of the field that keys lead to, as far as they do, in the table
// constructor nearest to the file's return that has a field with the first key; 0 if none has.
func FieldLine(chunk []ast.Stmt, keys ...string) (line int) {
	for i := len(chunk) - 1; i >= 0 && line == 0; i-- {
		walk(chunk[i:i+1], func(e ast.Expr) {
			if line == 0 {
				line = tableLine(e, keys)
			}
		})
	}
	return line
}

func tableLine(e ast.Expr, keys []string) int {
	t, ok := e.(*ast.TableExpr)
	if !ok || len(keys) == 0 {
		return 0
	}
	for _, field := range t.Fields {
		if k, ok := field.Key.(*ast.StringExpr); ok && k.Value == keys[0] {
			return cmp.Or(tableLine(field.Value, keys[1:]), max(k.Line(), 1))
		}
	}
	return 0
}
