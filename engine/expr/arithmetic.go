package expr

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/vm/runtime"

	"obelus/engine/internal/phrase"
	"obelus/engine/internal/regex"
)

// errTooLarge is the result that no int holds. Integers are refused before
// they are rounded or wrap around.
const errTooLarge ownError = "the result is an integer too large to calculate with"

// exactly puts functions of ours where expr would let an integer wrap around
// or make a float of it, or count the bytes of a string and not its characters.
// It comes after the types were checked, for expr does that as long as the
// operators are its own.
type exactly struct{}

func (exactly) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.UnaryNode:
		if n.Operator == "-" && !isSmall(n.Node) {
			ast.Patch(node, exactCall("negate", n.Node))
		}
	case *ast.BinaryNode:
		if text, ok := n.Right.(*ast.StringNode); ok && n.Operator == "matches" {
			if p, err := regex.Compile(text.Value); err == nil { // the rewriter refuses all others
				n.Right = &ast.ConstantNode{Value: p}
			}
		}
		if slices.Contains([]string{"contains", "startsWith", "endsWith"}, n.Operator) {
			n.Left, n.Right = exactCall("costOfText", n.Left), exactCall("costOfText", n.Right)
		}
		if isExact(n.Operator) && !(isComparison(n.Operator) && (leavesToExpr(n.Operator, n.Left) || leavesToExpr(n.Operator, n.Right))) {
			ast.Patch(node, exactCall(n.Operator, n.Left, n.Right))
		}
	case *ast.SliceNode:
		ast.Patch(node, exactCall("slice", exactCall("costOfText", n.Node), orInteger(n.From, 0), orInteger(n.To, math.MaxInt)))
	case *ast.BuiltinNode:
		if slices.Contains(plainBuiltins, n.Name) {
			cost := "costOfText"
			if slices.Contains([]string{"max", "mean", "median", "min", "reverse"}, n.Name) {
				cost = "costOfAll"
			}
			for i, arg := range n.Arguments {
				if !isSmall(arg) {
					n.Arguments[i] = exactCall(cost, arg)
				}
			}
		}
		if isExact(n.Name) {
			ast.Patch(node, exactCall(n.Name, n.Arguments...))
		}
	}
}

func isExact(name string) bool { return exactFunctions[name] != nil || countedFunctions[name] != nil }

func exactCall(name string, args ...ast.Node) ast.Node {
	if countedFunctions[name] != nil {
		args = append([]ast.Node{&ast.IdentifierNode{Value: evalName}}, args...)
	}
	return &ast.CallNode{Callee: &ast.IdentifierNode{Value: evalName + name}, Arguments: args}
}

func orInteger(node ast.Node, i int) ast.Node {
	if node == nil {
		return &ast.IntegerNode{Value: i}
	}
	return node
}

// maxSmall bounds the integers that a float64 distinguishes.
const maxSmall = 1 << 53

// isSmall reports whether a node is a literal that expr compares correctly with any number.
func isSmall(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.UnaryNode:
		return isSmall(n.Node)
	case *ast.IntegerNode:
		return n.Value < maxSmall
	case *ast.FloatNode:
		return n.Value < maxSmall
	case *ast.StringNode, *ast.BoolNode, *ast.NilNode:
		return true
	}
	return false
}

// leavesToExpr reports whether expr compares correctly with a node, and nothing is to be noted of
// the values: a text is never equal to a number.
func leavesToExpr(operator string, node ast.Node) bool {
	if operator == "==" || operator == "!=" {
		switch node.(type) {
		case *ast.BoolNode, *ast.NilNode:
			return true
		}
		return false
	}
	return isSmall(node)
}

func isComparison(operator string) bool {
	return slices.Contains([]string{"==", "!=", "<", "<=", ">", ">="}, operator)
}

// exactFunctions replace expr's operators and functions on numbers. Operands that they do not
// handle go to expr's own.
var exactFunctions = map[string]func(args ...any) (any, error){
	"negate": func(args ...any) (any, error) {
		if i, ok := args[0].(int); ok {
			return minus(0, i)
		}
		return runtime.Negate(args[0]), nil
	},
	"-":  onIntegers(minus, func(a, b any) any { return runtime.Subtract(a, b) }),
	"*":  onIntegers(times, func(a, b any) any { return runtime.Multiply(a, b) }),
	"/":  onIntegers(quotient, func(a, b any) any { return runtime.Divide(a, b) }),
	"**": onIntegers(power, exponent),
	"^":  onIntegers(power, exponent),
	"abs": func(args ...any) (any, error) {
		if i, ok := args[0].(int); ok && i < 0 {
			return minus(0, i)
		}
		return builtin.Abs(args[0]), nil
	},
	"ceil":        whole(builtin.Ceil),
	"first":       endOf("first", 0),
	"float":       toFloat,
	"floor":       whole(builtin.Floor),
	"indexOf":     indexBy(strings.Index),
	"int":         toInteger,
	"last":        endOf("last", -1),
	"lastIndexOf": indexBy(strings.LastIndex),
	"max":         largest("max", less),
	"mean":        mean,
	"median":      median,
	"min":         largest("min", func(a, b any) bool { return less(b, a) }),
	"round":       whole(builtin.Round),
	"slice":       slice,
	"take":        take,
}

func onIntegers(exact func(a, b int) (any, error), others func(a, b any) any) func(args ...any) (any, error) {
	return func(args ...any) (any, error) {
		if a, ok := args[0].(int); ok {
			if b, ok := args[1].(int); ok {
				return exact(a, b)
			}
		}
		return others(args[0], args[1]), nil
	}
}

// exponent is expr's, whose error describes an operand as an argument of float.
func exponent(a, b any) any {
	if !isNumber(a) || !isNumber(b) {
		panic(fmt.Sprintf("invalid operation: %T ** %T", a, b))
	}
	return runtime.Exponent(a, b)
}

func isNumber(v any) bool {
	switch v.(type) {
	case int, float64:
		return true
	}
	return false
}

// whole leaves integers as they are.
func whole(rounded func(v any) any) func(args ...any) (any, error) {
	return func(args ...any) (any, error) {
		if _, ok := args[0].(int); ok {
			return args[0], nil
		}
		return rounded(args[0]), nil
	}
}

func plus(a, b int) (any, error) {
	if sum := a + b; (sum > a) == (b > 0) {
		return sum, nil
	}
	return nil, errTooLarge
}

func minus(a, b int) (any, error) {
	if difference := a - b; (difference < a) == (b > 0) {
		return difference, nil
	}
	return nil, errTooLarge
}

func times(a, b int) (any, error) {
	if p, ok := multiply(a, b); ok {
		return p, nil
	}
	return nil, errTooLarge
}

func multiply(a, b int) (int, bool) {
	if b == 0 || b == -1 {
		return a * b, b == 0 || a != math.MinInt
	}
	p := a * b
	return p, p/b == a
}

// quotient is an integer where it can be.
func quotient(a, b int) (any, error) {
	switch {
	case b == 0, max(a, b) < maxSmall && min(a, b) > -maxSmall && a%b != 0:
		return float64(a) / float64(b), nil
	case a%b == 0 && b != -1:
		return a / b, nil
	}
	return ofRatio(big.NewRat(int64(a), int64(b)))
}

func ofRatio(r *big.Rat) (any, error) {
	switch f, _ := r.Float64(); {
	case !r.IsInt():
		return f, nil
	case !r.Num().IsInt64():
		return nil, errTooLarge
	}
	return int(r.Num().Int64()), nil
}

func power(a, n int) (any, error) {
	if n < 0 {
		return math.Pow(float64(a), float64(n)), nil
	}
	result, ok := 1, true
	for ; n > 0 && ok; n >>= 1 {
		if n&1 == 1 {
			result, ok = multiply(result, a)
		}
		if n > 1 && ok {
			a, ok = multiply(a, a)
		}
	}
	if !ok {
		return nil, errTooLarge
	}
	return result, nil
}

// equal reports whether two values are the same, numbers by their values. Each element that it
// compares reduces the budget; once that is used up the result is false. It keeps the first text
// and number that it compares.
func (ev *evaluation) equal(a, b any) bool {
	within := func(a, b any) bool {
		ev.budget--
		return ev.budget >= 0 && ev.equal(a, b)
	}
	switch a := a.(type) {
	case []any:
		if b, ok := b.([]any); ok {
			return slices.EqualFunc(a, b, within)
		}
	case map[string]any:
		if b, ok := b.(map[string]any); ok {
			return maps.EqualFunc(a, b, within)
		}
	}
	ev.budget -= compared(a, b)
	if runtime.Equal(alike(a, b)) {
		return true
	}
	if ev.unlike == nil && (isText(a) && isAnyNumber(b) || isAnyNumber(a) && isText(b)) {
		ev.unlike = []any{a, b}
	}
	return false
}

// compared is the cost of comparing two texts.
func compared(a, b any) int {
	x, _ := a.(string)
	y, _ := b.(string)
	return min(extent(x), extent(y))
}

func less(a, b any) bool { return runtime.Less(alike(a, b)) }

// alike makes two numbers comparable. Of an integer and a float, expr would
// compare two floats.
func alike(a, b any) (any, any) { return likeInteger(a, b), likeInteger(b, a) }

// likeInteger makes an integer of a float from 2⁵³ on, as which it has no
// fraction, if the other is one.
func likeInteger(v, other any) any {
	f, ok := v.(float64)
	if !ok || !(math.Abs(f) >= maxSmall) {
		return v
	}
	switch other.(type) {
	case int:
		if f >= math.MinInt && f < -math.MinInt {
			return int(f)
		}
		return math.Copysign(math.Inf(1), f) // beyond any int, which 2⁶³ itself would not be
	case json.Number:
		return json.Number(strconv.FormatFloat(f, 'f', 0, 64))
	}
	return v
}

// toInteger is int, which cuts off a fraction.
func toInteger(args ...any) (any, error) {
	switch v := args[0].(type) {
	case float64:
		if !(v >= math.MinInt && v < -math.MinInt) {
			return nil, errTooLarge
		}
	case string:
		switch _, err := strconv.Atoi(v); {
		case errors.Is(err, strconv.ErrRange):
			return nil, errTooLarge
		case err != nil:
			return fail("int finds no integer in %q", phrase.Shorten(v))
		}
	case int:
	case json.Number:
		return nil, errTooLarge
	default:
		return fail("int takes a number or a string, not %s", describe(v))
	}
	return builtin.Int(args[0]), nil
}

func toFloat(args ...any) (any, error) {
	switch v := args[0].(type) {
	case string:
		if _, err := strconv.ParseFloat(v, 64); err != nil {
			return fail("float finds no number in %q", phrase.Shorten(v))
		}
	case int, float64:
	case json.Number:
		return nil, errTooLarge
	default:
		return fail("float takes a number or a string, not %s", describe(v))
	}
	return builtin.Float(args[0]), nil
}

// asText is string: a text as it is, and all else as JSON has it.
func asText(ev *evaluation, args []any) (any, error) {
	if text, ok := args[0].(string); ok {
		return text, nil
	}
	return jsonText(ev, args)
}
