package host

import (
	"github.com/yuin/gopher-lua/ast"
)

// fold computes what the literals in a condition decide, all through it.
func fold(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.LogicalOpExpr:
		e.Lhs, e.Rhs = fold(e.Lhs), fold(e.Rhs)
		return foldTop(e)
	case *ast.UnaryNotOpExpr:
		e.Expr = fold(e.Expr)
		if known, truth := literal(e.Expr); known {
			return boolean(!truth, e)
		}
	}
	return e
}

// foldTop decides a and b, a or b where a is a literal. The value of the
// expression stays the same, not only its truth.
func foldTop(e *ast.LogicalOpExpr) ast.Expr {
	known, truth := literal(e.Lhs)
	switch {
	case !known:
		return e
	case truth == (e.Operator == "and"):
		return single(e.Rhs)
	}
	return e.Lhs
}

func literal(e ast.Expr) (known, truth bool) {
	switch e.(type) {
	case *ast.TrueExpr, *ast.NumberExpr, *ast.StringExpr:
		return true, true
	case *ast.FalseExpr, *ast.NilExpr:
		return true, false
	}
	return false, false
}

func boolean(truth bool, at ast.PositionHolder) ast.Expr {
	var e ast.Expr = &ast.FalseExpr{}
	if truth {
		e = &ast.TrueExpr{}
	}
	e.SetLine(at.Line())
	return e
}
