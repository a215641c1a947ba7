package expr

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/conf"

	"obelus/engine/internal/regex"
	"obelus/engine/spell"
	"obelus/store"
)

// exprCompiler makes units of the tree that expr has parsed. It refuses every node that it does not
// list: protocol §4 bounds what an expression costs, and a new function of expr is not to enter
// plans by an update.
type exprCompiler struct {
	source  *source
	indexed bool // the predicate that is being compiled may use #index
}

// clockFunctions are functions of expr that depend on the time or on a zone's rules.
var clockFunctions = []string{"date", "duration", "now", "timezone"}

// builtins are expr's own functions by their names, as its parser needs them. To gather them takes
// longer than to compile most expressions.
var builtins = conf.CreateNew().Builtins

// newConfig is the configuration of expr's parser.
func newConfig() *conf.Config {
	return &conf.Config{MaxNodes: conf.DefaultMaxNodes, Builtins: builtins}
}

func (c *exprCompiler) refuse(node ast.Node, format string, args ...any) (unit, error) {
	return nil, c.source.errorIn(node, format, args...)
}

// units compiles several nodes.
func (c *exprCompiler) units(nodes []ast.Node, inPredicate bool) ([]unit, error) {
	all := make([]unit, len(nodes))
	for i, node := range nodes {
		var err error
		if all[i], err = c.unit(node, inPredicate); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// unit compiles a node, perhaps of a predicate.
func (c *exprCompiler) unit(node ast.Node, inPredicate bool) (unit, error) {
	switch n := node.(type) {
	case *ast.NilNode:
		return literalUnit{nil}, nil
	case *ast.IntegerNode:
		return literalUnit{n.Value}, nil
	case *ast.FloatNode:
		return literalUnit{n.Value}, nil
	case *ast.BoolNode:
		return literalUnit{n.Value}, nil
	case *ast.StringNode:
		// Expr takes the name of a path for a word.
		if i, ok := c.source.path(n.Value); ok && string([]rune(c.source.text)[n.Location().From]) == standIn {
			return c.refuse(n, "%s stands where a name belongs: a key that is a reference stands in parentheses, a member in brackets", c.source.paths[i])
		}
		return literalUnit{n.Value}, nil
	case *ast.IdentifierNode:
		if n.Value == "null" { // JSON's word for expr's nil
			return literalUnit{nil}, nil
		}
		if i, ok := c.source.path(n.Value); ok {
			return refUnit{i, c.source.paths[i]}, nil
		}
		return c.refuse(n, "unknown name %s%s", n.Value, c.source.meant(n))
	case *ast.PointerNode:
		if n.Name != "" && (n.Name != "index" || !c.indexed) {
			return c.refuse(n, "unknown name #%s (# is the element, and #index its place, in map only)", n.Name)
		}
		return elementUnit{n.Name == "index"}, nil
	case *ast.ChainNode:
		return c.unit(n.Node, inPredicate)
	case *ast.UnaryNode:
		if unaryOperators[n.Operator] == nil {
			return c.refuse(n, "the operator %s is not allowed", n.Operator)
		}
		return c.function(n, n.Operator, unaryOperators[n.Operator], []ast.Node{n.Node}, inPredicate)
	case *ast.BinaryNode:
		return c.binary(n, inPredicate)
	case *ast.ConditionalNode:
		parts, err := c.units([]ast.Node{n.Cond, n.Exp1, n.Exp2}, inPredicate)
		if err != nil {
			return nil, err
		}
		return condUnit{parts[0], parts[1], parts[2]}, nil
	case *ast.MemberNode:
		switch {
		case n.Method:
			return c.refuse(n, "values have no methods")
		case n.Optional:
			return c.function(n, "?.", optionalMember, []ast.Node{n.Node, n.Property}, inPredicate)
		}
		return c.function(n, ".", memberOf, []ast.Node{n.Node, n.Property}, inPredicate)
	case *ast.SliceNode:
		return c.slice(n, inPredicate)
	case *ast.ArrayNode:
		return c.function(n, "[]", newArray, n.Nodes, inPredicate)
	case *ast.MapNode:
		var members []ast.Node
		for _, pair := range n.Pairs {
			members = append(members, pair.(*ast.PairNode).Key, pair.(*ast.PairNode).Value)
		}
		return c.function(n, "{}", newObject, members, inPredicate)
	case *ast.BuiltinNode:
		return c.builtin(n, inPredicate)
	case *ast.CallNode:
		return c.call(n, inPredicate)
	}
	return c.refuse(node, "this is not allowed in an expression")
}

// place is where errors of the unit of a node stand.
func (c *exprCompiler) place(node ast.Node) place {
	return place{c.source, node.Location().From + 1}
}

func (c *exprCompiler) binary(n *ast.BinaryNode, inPredicate bool) (unit, error) {
	operator := operators[n.Operator]
	switch {
	case n.Operator == "||", n.Operator == "&&":
		return c.existence(n, inPredicate)
	case n.Operator == "..":
		return c.refuse(n, "ranges are not allowed")
	case operator == nil && !slices.Contains(lazyOperators, n.Operator):
		return c.refuse(n, "the operator %s is not allowed", n.Operator)
	}
	if left, right := unlikeLiterals(n); left != 0 {
		return c.refuse(n, "%s %s, not %s and %s", n.Operator, operator.needs, left.describe(), right.describe())
	}
	sides, err := c.units([]ast.Node{n.Left, n.Right}, inPredicate)
	if err != nil {
		return nil, err
	}
	left, right := kindsOf(sides[0]), kindsOf(sides[1])
	switch {
	case n.Operator == "??":
		return lazyUnit{c.place(n), n.Operator, sides[0], sides[1]}, nil
	case operator == nil && left&booleans == 0:
		return c.refuse(n, "%s", conditions.accepts(n.Operator, left, right))
	case operator == nil && right&booleans == 0:
		return c.refuse(n.Right, "%s", needsCondition(right))
	case operator == nil:
		return lazyUnit{c.place(n), n.Operator, sides[0], sides[1]}, nil
	}
	if wrong := operator.accepts(n.Operator, left, right); wrong != "" {
		return c.refuse(n, "%s", wrong)
	}
	if pattern, ok := n.Right.(*ast.StringNode); ok && n.Operator == "matches" {
		if _, err := regex.Compile(pattern.Value); err != nil {
			return c.refuse(n, "%s", reworded(err.Error()))
		}
	}
	return &binaryUnit{c.place(n), n.Operator, operator, sides[0], sides[1]}, nil
}

// conditions describes the sides of and and or, for errors.
var conditions = operator{sides: booleans, needs: "takes true or false"}

func (c *exprCompiler) existence(n *ast.BinaryNode, inPredicate bool) (unit, error) {
	if isChained(n) {
		return c.refuse(n, "a comparison has two sides: write two of them, as in 1 < †a and †a < 3")
	}
	word := map[string]string{"||": "or", "&&": "and"}[n.Operator]
	if inPredicate {
		return c.refuse(n, "%s asks which reference exists; inside a predicate write %q", n.Operator, word)
	}
	operands, err := c.units([]ast.Node{n.Left, n.Right}, false)
	if err != nil {
		return nil, err
	}
	for _, u := range operands {
		if _, isLiteral := u.(literalUnit); !isLiteral && kindsOf(u) == booleans {
			return c.refuse(n, "%s asks which reference exists, and one side is always true or false; between conditions write %q", n.Operator, word)
		}
	}
	if n.Operator == "||" {
		return orUnit{operands[0], operands[1]}, nil
	}
	return andUnit{operands[0], operands[1]}, nil
}

// isChained reports whether a node is what expr makes of 1 < a < 3: two comparisons, joined by &&,
// that share an operand.
func isChained(n *ast.BinaryNode) bool {
	left, ok := n.Left.(*ast.BinaryNode)
	if ok && left.Operator == "&&" {
		left, ok = left.Right.(*ast.BinaryNode)
	}
	right, ok2 := n.Right.(*ast.BinaryNode)
	return ok && ok2 && left.Right == right.Left
}

// slice compiles v[from:to], whose bounds may be left out.
func (c *exprCompiler) slice(n *ast.SliceNode, inPredicate bool) (unit, error) {
	bounds := []ast.Node{n.From, n.To}
	for i, otherwise := range []int{0, math.MaxInt} {
		if bounds[i] == nil {
			bounds[i] = &ast.IntegerNode{Value: otherwise}
		}
	}
	return c.function(n, "[:]", sliceOf, append([]ast.Node{n.Node}, bounds...), inPredicate)
}

// builtin compiles a call of one of expr's functions.
func (c *exprCompiler) builtin(n *ast.BuiltinNode, inPredicate bool) (unit, error) {
	if do := predicates[n.Name]; do != nil {
		return c.predicate(n, do, inPredicate)
	}
	if slices.Contains(clockFunctions, n.Name) {
		return c.refuse(n, "the function %s is not allowed: an expression gives the same whenever it is evaluated, so times come from activities or the input", n.Name)
	}
	if functions[n.Name] == nil {
		return c.refuse(n, "the function %s is not allowed (allowed are %s)", n.Name, strings.Join(Functions(), ", "))
	}
	return c.function(n, n.Name, functions[n.Name], n.Arguments, inPredicate)
}

// call compiles a call of a name that expr does not know as a function.
func (c *exprCompiler) call(n *ast.CallNode, inPredicate bool) (unit, error) {
	name, ok := n.Callee.(*ast.IdentifierNode)
	if !ok {
		return c.refuse(n, "values have no methods")
	}
	if i, ok := c.source.path(name.Value); ok {
		hint, near := "", spell.Nearest(strings.TrimPrefix(c.source.paths[i].String(), store.Dagger), Functions())
		switch {
		case near == "":
		case name.Location().From == 0:
			hint = fmt.Sprintf(" (an expression that begins with a function is written †(%s(…)))", near)
		default:
			hint = fmt.Sprintf(" (a function has no †: %s(…))", near)
		}
		return c.refuse(n, "%s is a reference, and no function%s", name.Value, hint)
	}
	if functions[name.Value] == nil {
		return c.refuse(n, "unknown function %s%s", name.Value, spell.DidYouMean(name.Value, Functions()))
	}
	return c.function(n, name.Value, functions[name.Value], n.Arguments, inPredicate)
}

// function compiles a call of a function.
func (c *exprCompiler) function(n ast.Node, name string, f *function, arguments []ast.Node, inPredicate bool) (unit, error) {
	args, err := c.units(arguments, inPredicate)
	if err != nil {
		return nil, err
	}
	wrong := f.acceptsCount(name, len(args))
	for i, arg := range args {
		wrong = cmp.Or(wrong, f.accepts(name, i, kindsOf(arg)))
	}
	if wrong != "" {
		return c.refuse(n, "%s", wrong)
	}
	return &functionUnit{c.place(n), name, f, args}, nil
}

// predicate compiles a function with a predicate, to which each element of an array is handed.
func (c *exprCompiler) predicate(n *ast.BuiltinNode, do predicate, inPredicate bool) (unit, error) {
	if inPredicate {
		return c.refuse(n, "%s inside a predicate is not allowed: predicates do not nest", n.Name)
	}
	u := &predicateUnit{place: c.place(n), arrayAt: c.place(n.Arguments[0]), name: n.Name, do: do}
	for i, arg := range n.Arguments {
		part, err := c.argument(n, arg)
		switch {
		case err != nil:
			return nil, err
		case i == 0:
			u.array = part
		case i == 1:
			u.body = part
		default:
			u.order = part
		}
	}
	if kinds := kindsOf(u.array); kinds&arrays == 0 {
		return c.refuse(n.Arguments[0], "%s takes an array, not %s", n.Name, kinds.describe())
	}
	return u, nil
}

// argument compiles an argument of a function with a predicate.
func (c *exprCompiler) argument(n *ast.BuiltinNode, arg ast.Node) (unit, error) {
	body, ok := arg.(*ast.PredicateNode)
	if !ok {
		return c.unit(arg, false)
	}
	if name, ok := body.Node.(*ast.StringNode); ok && strings.HasSuffix(n.Name, "By") {
		return c.refuse(name, "%s goes by what each element has, and %q is the same for all (a field is written with a dot: .name)", n.Name, name.Value)
	}
	c.indexed = n.Name == "map" // expr has an index in no other
	return c.unit(body.Node, true)
}
