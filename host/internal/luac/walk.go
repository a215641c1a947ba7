package luac

import (
	"cmp"
	"slices"

	"github.com/yuin/gopher-lua/ast"
)

// Walker visits the parts of a syntax tree, outer ones first.
type Walker struct {
	See  func(e ast.Expr)
	Loop func(s ast.Stmt) // may be nil
	// Called in place of walking through a function; may be nil.
	function func(body []ast.Stmt, depth int)
}

// walk calls see for every expression of a syntax tree, outer ones first.
func walk(chunk []ast.Stmt, see func(e ast.Expr)) { Walker{See: see}.Stmts(chunk, 0) }

func (w Walker) body(list []ast.Stmt, depth int) {
	if w.function != nil {
		w.function(list, depth)
		return
	}
	w.Stmts(list, depth)
}

// Stmts visits statements at a depth of the tree. It stops at parts that are too deep to be
// compiled.
func (w Walker) Stmts(list []ast.Stmt, depth int) {
	if depth > maxDepth*2 {
		return
	}
	for _, s := range list {
		switch s := s.(type) {
		case *ast.AssignStmt:
			w.exprs(depth, s.Lhs...)
			w.exprs(depth, s.Rhs...)
		case *ast.LocalAssignStmt:
			w.exprs(depth, s.Exprs...)
		case *ast.FuncCallStmt:
			w.exprs(depth, s.Expr)
		case *ast.DoBlockStmt:
			w.Stmts(s.Stmts, depth+perLevel)
		case *ast.WhileStmt:
			w.exprs(depth, s.Condition)
			w.Stmts(s.Stmts, depth+perLevel)
		case *ast.RepeatStmt:
			w.exprs(depth, s.Condition)
			w.Stmts(s.Stmts, depth+perLevel)
		case *ast.IfStmt:
			w.exprs(depth, s.Condition)
			w.Stmts(s.Then, depth+perLevel)
			w.Stmts(s.Else, depth+perLevel)
		case *ast.NumberForStmt:
			if w.Loop != nil {
				w.Loop(s)
			}
			w.exprs(depth, s.Init, s.Limit, s.Step)
			w.Stmts(s.Stmts, depth+perLevel)
		case *ast.GenericForStmt:
			if w.Loop != nil {
				w.Loop(s)
			}
			w.exprs(depth, s.Exprs...)
			w.Stmts(s.Stmts, depth+perLevel)
		case *ast.FuncDefStmt:
			w.exprs(depth, s.Name.Func, s.Name.Receiver)
			w.body(s.Func.Stmts, depth+perLevel)
		case *ast.ReturnStmt:
			w.exprs(depth, s.Exprs...)
		}
	}
}

func (w Walker) exprs(depth int, list ...ast.Expr) {
	for _, e := range list {
		if e == nil || depth > maxDepth*2 {
			continue
		}
		w.See(e)
		switch e := e.(type) {
		case *ast.AttrGetExpr:
			w.exprs(depth+1, e.Object)
			w.exprs(depth+perLevel, e.Key)
		case *ast.TableExpr:
			for _, field := range e.Fields {
				w.exprs(depth+perLevel, field.Key, field.Value)
			}
		case *ast.FuncCallExpr:
			w.exprs(depth+1, e.Func, e.Receiver)
			w.exprs(depth+perLevel, e.Args...)
		case *ast.LogicalOpExpr:
			w.exprs(depth+1, e.Lhs)
			w.exprs(depth+perLevel, e.Rhs)
		case *ast.RelationalOpExpr:
			w.exprs(depth+1, e.Lhs)
			w.exprs(depth+perLevel, e.Rhs)
		case *ast.StringConcatOpExpr:
			w.exprs(depth+perLevel, e.Lhs, e.Rhs)
		case *ast.ArithmeticOpExpr:
			w.exprs(depth+1, e.Lhs)
			w.exprs(depth+perLevel, e.Rhs)
		case *ast.UnaryMinusOpExpr:
			w.exprs(depth+perLevel, e.Expr)
		case *ast.UnaryNotOpExpr:
			w.exprs(depth+perLevel, e.Expr)
		case *ast.UnaryLenOpExpr:
			w.exprs(depth+perLevel, e.Expr)
		case *ast.FunctionExpr:
			w.body(e.Stmts, depth+perLevel)
		}
	}
}

// FieldLine returns the line of the field that keys lead to, as far as they do, in the table
// constructor nearest to the file's return that has a field with the first key; 0 if none has.
func FieldLine(chunk []ast.Stmt, keys ...string) (line int) {
	for i := len(chunk) - 1; i >= 0 && line == 0; i-- {
		walk(chunk[i:i+1], func(e ast.Expr) {
			if line == 0 {
				line = fieldLineIn(e, keys)
			}
		})
	}
	return line
}

func fieldLineIn(e ast.Expr, keys []string) int {
	t, ok := e.(*ast.TableExpr)
	if !ok || len(keys) == 0 {
		return 0
	}
	for _, field := range t.Fields {
		if k, ok := field.Key.(*ast.StringExpr); ok && k.Value == keys[0] {
			return cmp.Or(fieldLineIn(field.Value, keys[1:]), max(k.Line(), 1))
		}
	}
	return 0
}

// IsConstant reports whether a file does nothing but return a value that is written out in it: each
// run of it gives the same.
func IsConstant(chunk []ast.Stmt) bool {
	if len(chunk) != 1 {
		return false
	}
	s, ok := chunk[0].(*ast.ReturnStmt)
	return ok && len(s.Exprs) == 1 && isConstant(s.Exprs[0], 0)
}

// isConstant reports whether an expression is a literal, a negative number, a string in parts, or a
// table of such.
func isConstant(e ast.Expr, depth int) bool {
	switch e := e.(type) {
	case *ast.StringExpr, *ast.NumberExpr, *ast.TrueExpr, *ast.FalseExpr, *ast.NilExpr:
		return true
	case *ast.UnaryMinusOpExpr:
		_, number := e.Expr.(*ast.NumberExpr)
		return number
	case *ast.StringConcatOpExpr:
		return isText(e.Lhs, depth) && isText(e.Rhs, depth)
	case *ast.TableExpr:
		return depth < maxNesting && !slices.ContainsFunc(e.Fields, func(f *ast.Field) bool {
			return f.Key != nil && !isConstant(f.Key, depth+1) || !isConstant(f.Value, depth+1)
		})
	}
	return false
}

// isText reports whether an expression is a string that is written out, in parts or not.
func isText(e ast.Expr, depth int) bool {
	switch e.(type) {
	case *ast.StringExpr, *ast.StringConcatOpExpr:
		return depth < maxNesting && isConstant(e, depth+1)
	}
	return false
}
