package expr

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"

	"obelus/engine/spell"
	"obelus/store"
)

// rewriter makes of an expression what expr can run: it refuses every node
// that is not on its list (protocol §4 bounds the cost), and puts calls back
// to the evaluation in place of references, members and what must be bounded.
type rewriter struct {
	c           *exprCompiler
	inPredicate bool
	refs        []store.Path // references in the program
	units       []unit       // units that it calls
	always      []unit       // those of both that are evaluated in any case
	perhaps     bool         // the part that is being rewritten may not be evaluated
	err         error
}

// plainBuiltins are the functions that are as cheap as their arguments are
// large. Left out are those that multiply (repeat, flatten), that depend on
// the clock (now) and reduce, whose sums of strings nothing bounds.
var plainBuiltins = []string{
	"abs", "ceil", "first", "float", "floor", "hasPrefix", "hasSuffix", "indexOf", "int", "last", "lastIndexOf",
	"len", "lower", "max", "mean", "median", "min", "reverse", "round", "string", "take", "trim",
	"trimPrefix", "trimSuffix", "upper",
}

// ownBuiltins are replaced by functions of this package: they charge for the values that they make,
// give the members of an object in the order of its keys (expr's order differs at every
// evaluation), or name types as JSON does.
var ownBuiltins = []string{"concat", "fromJSON", "join", "keys", "replace", "sort", "split", "toJSON", "type", "uniq", "values"}

// addedFunctions are functions of this package that expr has none of.
var addedFunctions = []string{"format"}

// clockFunctions are functions of expr that depend on the time or on a zone's rules.
var clockFunctions = []string{"date", "duration", "now", "timezone"}

// predicateBuiltins take a condition, mappingBuiltins a value for each element.
var (
	predicateBuiltins = []string{"all", "any", "count", "filter", "find", "findIndex", "findLast", "findLastIndex", "none", "one"}
	mappingBuiltins   = []string{"groupBy", "map", "sortBy", "sum"}
)

// Functions lists the functions that an expression may call, sorted.
func Functions() []string {
	return slices.Sorted(slices.Values(slices.Concat(plainBuiltins, ownBuiltins, addedFunctions, predicateBuiltins, mappingBuiltins)))
}

var unaryOperators = []string{"!", "not", "+", "-"}

var binaryOperators = []string{
	"!=", "%", "*", "**", "+", "-", "/", "<", "<=", "==", ">", ">=", "??", "^", "and", "contains", "endsWith", "in", "matches",
	"or", "startsWith",
}

// lazyOperators may do without what stands on their right.
var lazyOperators = []string{"??", "and", "or"}

func (w *rewriter) refuse(node ast.Node, format string, args ...any) ast.Node {
	if w.err == nil {
		w.err = w.c.source.errorIn(node, format, args...)
	}
	return node
}

// call makes a call back to the evaluation that stands where node stood.
func (w *rewriter) call(node ast.Node, function string, args ...ast.Node) ast.Node {
	call := &ast.CallNode{
		Callee:    &ast.IdentifierNode{Value: function},
		Arguments: append([]ast.Node{&ast.IdentifierNode{Value: evalName}}, args...),
	}
	for _, n := range append([]ast.Node{call, call.Callee}, call.Arguments[0]) {
		n.SetLocation(node.Location())
	}
	return call
}

func (w *rewriter) rewrite(node ast.Node) ast.Node {
	if w.err != nil {
		return node
	}
	switch n := node.(type) {
	case *ast.NilNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return node
	case *ast.StringNode:
		source := w.c.source
		// Expr takes the name for a word.
		if i, ok := source.path(n.Value); ok && string([]rune(source.text)[n.Location().From]) == standIn {
			return w.refuse(n, "%s stands where a name belongs: a key that is a reference stands in parentheses, a member in brackets", source.paths[i])
		}
	case *ast.IdentifierNode:
		return w.identifier(n)
	case *ast.UnaryNode:
		if !slices.Contains(unaryOperators, n.Operator) {
			return w.refuse(n, "the operator %s is not allowed", n.Operator)
		}
		n.Node = w.rewrite(n.Node)
	case *ast.BinaryNode:
		return w.binary(n)
	case *ast.ConditionalNode:
		return w.nested(n)
	case *ast.ChainNode:
		n.Node = w.rewrite(n.Node)
		return n.Node
	case *ast.MemberNode:
		return w.member(n)
	case *ast.SliceNode:
		n.Node, n.From, n.To = w.rewrite(n.Node), w.optional(n.From), w.optional(n.To)
	case *ast.BuiltinNode:
		return w.builtin(n)
	case *ast.CallNode:
		return w.function(n)
	case *ast.PointerNode:
		return w.pointer(n)
	case *ast.ArrayNode:
		w.all(n.Nodes)
	case *ast.MapNode:
		w.all(n.Pairs)
	case *ast.PairNode:
		n.Key, n.Value = w.rewrite(n.Key), w.rewrite(n.Value)
	default:
		return w.refuse(node, "this is not allowed in an expression")
	}
	return node
}

func (w *rewriter) all(nodes []ast.Node) {
	for i := range nodes {
		nodes[i] = w.rewrite(nodes[i])
	}
}

func (w *rewriter) optional(node ast.Node) ast.Node {
	if node == nil {
		return nil
	}
	return w.rewrite(node)
}

func (w *rewriter) identifier(n *ast.IdentifierNode) ast.Node {
	if n.Value == "null" { // JSON's word for expr's nil
		null := &ast.NilNode{}
		null.SetLocation(n.Location())
		return null
	}
	i, ok := w.c.source.path(n.Value)
	if !ok {
		return w.refuse(n, "unknown name %s%s", n.Value, w.c.source.meant(n))
	}
	w.refs = append(w.refs, w.c.source.paths[i])
	w.evaluates(refUnit{i, w.c.source.paths[i]})
	return w.call(n, refName, &ast.IntegerNode{Value: i})
}

func (w *rewriter) binary(n *ast.BinaryNode) ast.Node {
	switch {
	case n.Operator == "||" || n.Operator == "&&":
		return w.nested(n)
	case n.Operator == "..":
		return w.refuse(n, "ranges are not allowed")
	case !slices.Contains(binaryOperators, n.Operator):
		return w.refuse(n, "the operator %s is not allowed", n.Operator)
	}
	if left, right := unlikeLiterals(n); left != "" {
		return w.refuse(n, "%s", takes(n.Operator, left, right))
	}
	n.Left = w.rewrite(n.Left)
	before := w.perhaps
	w.perhaps = before || slices.Contains(lazyOperators, n.Operator)
	n.Right = w.rewrite(n.Right)
	w.perhaps = before
	switch n.Operator {
	case "+":
		return w.call(n, addName, n.Left, n.Right)
	case "and", "or":
		if !isLiteral(n.Right) { // expr checks a literal before it runs
			n.Right = w.call(n.Right, truthName, n.Right)
		}
	case "in":
		return w.call(n, inName, n.Left, n.Right)
	case "matches": // expr uses its error about a pattern as a format
		if pattern, ok := n.Right.(*ast.StringNode); ok {
			if _, err := regexp.Compile(pattern.Value); err != nil {
				return w.refuse(n, "%s", reworded(err.Error()))
			}
		}
	}
	return n
}

// isLiteral reports whether a node is a literal.
func isLiteral(n ast.Node) bool {
	switch n.(type) {
	case *ast.NilNode, *ast.BoolNode, *ast.IntegerNode, *ast.FloatNode, *ast.StringNode, *ast.ArrayNode, *ast.MapNode:
		return true
	}
	return false
}

// nested makes a unit of what knows missing from null, and calls it.
func (w *rewriter) nested(n ast.Node) ast.Node {
	u, err := w.c.unit(n, w.inPredicate)
	if err != nil {
		w.err = err
		return n
	}
	w.evaluates(u)
	return w.call(n, unitName, w.number(u))
}

// evaluates keeps a unit that the program evaluates in any case.
func (w *rewriter) evaluates(u unit) {
	if !w.perhaps {
		w.always = append(w.always, u)
	}
}

// number keeps a unit for the program to call by its number.
func (w *rewriter) number(u unit) ast.Node {
	w.units = append(w.units, u)
	return &ast.IntegerNode{Value: w.c.add(u)}
}

func (w *rewriter) member(n *ast.MemberNode) ast.Node {
	if n.Method {
		return w.refuse(n, "values have no methods")
	}
	name := memberName
	if n.Optional {
		name = optionalName
	}
	return w.call(n, name, w.rewrite(n.Node), w.rewrite(n.Property))
}

func (w *rewriter) pointer(n *ast.PointerNode) ast.Node {
	if n.Name != "" && (n.Name != "index" || !w.c.indexed) {
		return w.refuse(n, "unknown name #%s (# is the element, and #index its place, in map only)", n.Name)
	}
	return w.call(n, elementName, &ast.BoolNode{Value: n.Name == "index"})
}

func (w *rewriter) builtin(n *ast.BuiltinNode) ast.Node {
	switch {
	case slices.Contains(plainBuiltins, n.Name):
		w.all(n.Arguments)
		return n
	case slices.Contains(ownBuiltins, n.Name):
		w.all(n.Arguments)
		return w.call(n, n.Name+ownSuffix, n.Arguments...)
	case slices.Contains(predicateBuiltins, n.Name):
		return w.closure(n, testName)
	case slices.Contains(mappingBuiltins, n.Name):
		return w.closure(n, mapName)
	}
	if slices.Contains(clockFunctions, n.Name) {
		return w.refuse(n, "the function %s is not allowed: an expression gives the same whenever it is evaluated, so times come from activities or the input", n.Name)
	}
	return w.refuse(n, "the function %s is not allowed (allowed are %s)", n.Name, strings.Join(Functions(), ", "))
}

// closure makes a unit of the predicate, to which each element is handed.
func (w *rewriter) closure(n *ast.BuiltinNode, callback string) ast.Node {
	if w.inPredicate {
		return w.refuse(n, "%s inside a predicate is not allowed: predicates do not nest", n.Name)
	}
	for i, arg := range n.Arguments {
		predicate, ok := arg.(*ast.PredicateNode)
		if !ok {
			rewritten := w.rewrite(arg)
			if n.Arguments[i] = rewritten; !isLiteral(arg) && !isOwnMapping(n.Name) {
				n.Arguments[i] = w.call(arg, elementsName, rewritten, &ast.StringNode{Value: n.Name})
			}
			continue
		}
		if name, ok := predicate.Node.(*ast.StringNode); ok && strings.HasSuffix(n.Name, "By") {
			return w.refuse(name, "%s goes by what each element has, and %q is the same for all (a field is written with a dot: .name)", n.Name, name.Value)
		}
		w.c.indexed = n.Name == "map" // expr has an index in no other
		u, err := w.c.unit(predicate.Node, true)
		if err != nil {
			w.err = err
			return n
		}
		if isOwnMapping(n.Name) {
			n.Arguments[i] = w.number(u)
			continue
		}
		args := []ast.Node{w.number(u), &ast.PointerNode{}}
		if w.c.indexed {
			args = append(args, &ast.PointerNode{Name: "index"})
		}
		predicate.Node = w.call(predicate.Node, callback, args...)
	}
	if isOwnMapping(n.Name) {
		return w.call(n, n.Name+ownSuffix, n.Arguments...)
	}
	return n
}

// isOwnMapping reports whether a function is replaced: expr's sum and sortBy let integers wrap
// around or make floats of them, and after its findLast and findLastIndex another operation takes
// what their loop has left behind for an operand.
func isOwnMapping(name string) bool {
	return slices.Contains([]string{"findLast", "findLastIndex", "sortBy", "sum"}, name)
}

func (w *rewriter) function(n *ast.CallNode) ast.Node {
	name, ok := n.Callee.(*ast.IdentifierNode)
	if !ok {
		return w.refuse(n, "values have no methods")
	}
	if i, ok := w.c.source.path(name.Value); ok {
		hint, near := "", spell.Nearest(strings.TrimPrefix(w.c.source.paths[i].String(), store.Dagger), Functions())
		switch {
		case near == "":
		case name.Location().From == 0:
			hint = fmt.Sprintf(" (an expression that begins with a function is written †(%s(…)))", near)
		default:
			hint = fmt.Sprintf(" (a function has no †: %s(…))", near)
		}
		return w.refuse(n, "%s is a reference, and no function%s", name.Value, hint)
	}
	if slices.Contains(addedFunctions, name.Value) {
		w.all(n.Arguments)
		return w.call(n, name.Value+ownSuffix, n.Arguments...)
	}
	return w.refuse(n, "unknown function %s%s", name.Value, spell.DidYouMean(name.Value, Functions()))
}
