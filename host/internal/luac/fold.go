package luac

import (
	"math"
	"slices"
	"strconv"

	"github.com/yuin/gopher-lua/ast"
)

// fold computes the parts of a condition that literals decide.
func fold(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.LogicalOpExpr:
		e.Lhs, e.Rhs = fold(e.Lhs), fold(e.Rhs)
		return foldTop(e)
	case *ast.UnaryNotOpExpr:
		e.Expr = fold(e.Expr)
		if known, truth := literalTruth(e.Expr); known {
			return newBoolean(!truth, e)
		}
	}
	return e
}

// foldTop decides a and b, a or b if a is a literal. It keeps the value of the expression, not only
// its truth.
func foldTop(e *ast.LogicalOpExpr) ast.Expr {
	known, truth := literalTruth(e.Lhs)
	switch {
	case !known:
		return e
	case truth == (e.Operator == "and"):
		return toSingleValue(e.Rhs)
	}
	return e.Lhs
}

func literalTruth(e ast.Expr) (known, truth bool) {
	switch e.(type) {
	case *ast.TrueExpr, *ast.NumberExpr, *ast.StringExpr:
		return true, true
	case *ast.FalseExpr, *ast.NilExpr:
		return true, false
	}
	return false, false
}

func newBoolean(truth bool, at ast.PositionHolder) ast.Expr {
	var e ast.Expr = &ast.FalseExpr{}
	if truth {
		e = &ast.TrueExpr{}
	}
	e.SetLine(at.Line())
	return e
}

// operationNames are the names in [Arithmetic] of the operators.
var operationNames = map[string]string{"+": "add", "-": "sub", "*": "mul", "/": "div", "%": "mod", "^": "pow"}

// foldNumbers computes arithmetic with literal numbers, as the compiler itself would, so that the
// compiler finds none to compute: it would take placeholders of constants for numbers.
func foldNumbers(e ast.Expr) ast.Expr {
	var value float64
	switch e := e.(type) {
	case *ast.UnaryMinusOpExpr:
		n, ok := literalNumber(e.Expr)
		if !ok {
			return e
		}
		value = -n
	case *ast.ArithmeticOpExpr:
		a, ok := literalNumber(e.Lhs)
		b, ok2 := literalNumber(e.Rhs)
		if !ok || !ok2 {
			return e
		}
		value = Arithmetic[operationNames[e.Operator]](a, b)
	default:
		return e
	}
	folded := &ast.NumberExpr{Value: formatNumeral(value)}
	folded.SetLine(e.Line())
	return folded
}

// formatNumeral writes a number for the compiler.
func formatNumeral(n float64) string {
	if n == 0 && math.Signbit(n) {
		n = negativeZero
	}
	return strconv.FormatFloat(n, 'g', -1, 64)
}

// literalNumber returns the number that a literal stands for, as formatNumeral wrote it.
func literalNumber(e ast.Expr) (float64, bool) {
	number, ok := e.(*ast.NumberExpr)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseFloat(number.Value, 64)
	if n == negativeZero {
		n = math.Copysign(0, -1)
	}
	return n, err == nil
}

// coerceBounds converts the bounds of a loop to numbers, as Lua does, if they may be text.
func coerceBounds(s *ast.NumberForStmt) {
	for _, bound := range []struct {
		at   *ast.Expr
		name string
	}{{&s.Init, "init"}, {&s.Limit, "limit"}, {&s.Step, "step"}} {
		if *bound.at == nil {
			continue
		}
		if _, ok := literalNumber(*bound.at); !ok {
			*bound.at = newCall(CallBound, *bound.at, toSingleValue(*bound.at), &ast.StringExpr{Value: bound.name})
		}
	}
}

// adaptAssignedOperators makes a function of a callable object that is assigned to a field such as
// __add.
func adaptAssignedOperators(s *ast.AssignStmt) {
	for i, e := range s.Lhs {
		field, ok := e.(*ast.AttrGetExpr)
		// Several of its results are wanted.
		if !ok || i >= len(s.Rhs) || i == len(s.Rhs)-1 && len(s.Lhs) > len(s.Rhs) {
			continue
		}
		if key, ok := field.Key.(*ast.StringExpr); ok && slices.Contains(OperatorEvents, key.Value) {
			if _, ok := s.Rhs[i].(*ast.FunctionExpr); !ok {
				s.Rhs[i] = newCall(CallAdapt, s.Rhs[i], toSingleValue(s.Rhs[i]))
			}
		}
	}
}

// OperatorEvents are the metamethods that the interpreter calls only if they are functions. Lua
// calls any callable object.
var OperatorEvents = []string{"__add", "__div", "__eq", "__le", "__lt", "__mod", "__mul", "__pow", "__sub"}

// Arithmetic has the operations on numbers by the names of their metamethods.
var Arithmetic = map[string]func(a, b float64) float64{
	"add": func(a, b float64) float64 { return a + b },
	"sub": func(a, b float64) float64 { return a - b },
	"mul": func(a, b float64) float64 { return a * b },
	"div": func(a, b float64) float64 { return a / b },
	"mod": func(a, b float64) float64 { return a - math.Floor(a/b)*b },
	"pow": math.Pow,
}
