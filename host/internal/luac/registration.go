package luac

import (
	"slices"

	"github.com/yuin/gopher-lua/ast"
)

// guardRegistrations makes the registrations of tools at the top of a file conditional, where all
// arguments are constants: if CallRegisters() then Tool.register("name", { … }) end. A file runs
// again for each call of its activities, and then they have no effect. To build their tables took a
// fifth to a third of the time of a small call, 37 allocations and 2.9 KB (BenchmarkCallMemory). To
// switch it off, have the function CallRegisters return true.
func guardRegistrations(chunk []ast.Stmt) {
	for i, s := range chunk {
		switch s := s.(type) {
		case *ast.LocalAssignStmt:
			if slices.Contains(s.Names, "Tool") {
				return
			}
		case *ast.FuncCallStmt:
			if registersConstants(s) {
				guard := &ast.IfStmt{Condition: newCall(CallRegisters, s.Expr), Then: []ast.Stmt{s}}
				guard.SetLine(s.Line())
				guard.SetLastLine(s.LastLine())
				chunk[i] = guard
			}
		}
	}
}

// registersConstants reports whether a statement is Tool.register(…) with constants alone.
func registersConstants(s *ast.FuncCallStmt) bool {
	call, ok := s.Expr.(*ast.FuncCallExpr)
	if !ok || call.Receiver != nil || len(call.Args) == 0 {
		return false
	}
	field, ok := call.Func.(*ast.AttrGetExpr)
	if !ok {
		return false
	}
	library, ok := field.Object.(*ast.IdentExpr)
	name, named := field.Key.(*ast.StringExpr)
	if !ok || !named || library.Value != "Tool" || name.Value != "register" {
		return false
	}
	return !slices.ContainsFunc(call.Args, func(e ast.Expr) bool { return !isConstant(e, 0) })
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
