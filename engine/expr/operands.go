package expr

import (
	"slices"

	"github.com/expr-lang/expr/ast"

	"obelus/store"
)

// LiteralOperand is a reference that an expression combines with a literal by an operator, in
// either order.
type LiteralOperand struct {
	Operator string
	Path     store.Path
	Literal  any   // a string, an int, a float64 or a bool; of in, the first of Among
	Among    []any // of in: the literals among which the reference is looked for
}

// LiteralOperands lists the references of the expression that stand beside a literal. Of in the
// reference is the one of an element where a literal is looked for in it.
func (e *Expr) LiteralOperands() (all []LiteralOperand) {
	e.eachBinary(func(s *source, n *ast.BinaryNode) {
		left, leftIsRef := s.reference(n.Left)
		right, rightIsRef := s.reference(n.Right)
		if literal, ok := literalValue(n.Right); ok && leftIsRef {
			all = append(all, LiteralOperand{Operator: n.Operator, Path: left, Literal: literal})
		}
		if among := literalValues(n.Right); leftIsRef && n.Operator == "in" && len(among) > 0 {
			all = append(all, LiteralOperand{n.Operator, left, among[0], among})
		}
		literal, ok := literalValue(n.Left)
		switch {
		case !ok || !rightIsRef:
		case n.Operator == "in":
			all = append(all, LiteralOperand{n.Operator, right.Child("0"), literal, []any{literal}})
		default:
			all = append(all, LiteralOperand{Operator: n.Operator, Path: right, Literal: literal})
		}
	})
	return all
}

// Equated lists the pairs of references that the expression compares by == or !=.
func (e *Expr) Equated() (all [][2]store.Path) {
	e.eachBinary(func(s *source, n *ast.BinaryNode) {
		left, ok := s.reference(n.Left)
		right, ok2 := s.reference(n.Right)
		if ok && ok2 && (n.Operator == "==" || n.Operator == "!=") {
			all = append(all, [2]store.Path{left, right})
		}
	})
	return all
}

// Ends lists the references one of which may be the value of the expression as it stands.
func (e *Expr) Ends() []store.Path { return endsOf(e.root) }

func endsOf(u unit) []store.Path {
	switch u := u.(type) {
	case refUnit:
		return []store.Path{u.path}
	case orUnit:
		return append(endsOf(u.left), endsOf(u.right)...)
	case andUnit:
		return endsOf(u.right)
	case condUnit:
		return append(endsOf(u.then), endsOf(u.otherwise)...)
	}
	return nil
}

// eachBinary calls f for each binary operator of the expression.
func (e *Expr) eachBinary(f func(s *source, n *ast.BinaryNode)) {
	s, err := readSource(e.String())
	if err != nil {
		return
	}
	tree, err := s.parse(newConfig())
	if err != nil {
		return
	}
	ast.Walk(&tree.Node, visitor(func(node ast.Node) {
		if n, ok := node.(*ast.BinaryNode); ok {
			f(s, n)
		}
	}))
}

// reference returns the path that a node is a reference to.
func (s *source) reference(node ast.Node) (path store.Path, ok bool) {
	name, ok := node.(*ast.IdentifierNode)
	if !ok {
		return path, false
	}
	i, ok := s.path(name.Value)
	if !ok {
		return path, false
	}
	return s.paths[i], true
}

type visitor func(node ast.Node)

func (v visitor) Visit(node *ast.Node) { v(*node) }

func literalValue(node ast.Node) (v any, ok bool) {
	switch n := node.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.IntegerNode:
		return n.Value, true
	case *ast.FloatNode:
		return n.Value, true
	case *ast.BoolNode:
		return n.Value, true
	}
	return nil, false
}

// literalValues lists the elements of an array, if all of them are literals.
func literalValues(node ast.Node) (all []any) {
	array, ok := node.(*ast.ArrayNode)
	if !ok {
		return nil
	}
	for _, e := range array.Nodes {
		v, ok := literalValue(e)
		if !ok {
			return nil
		}
		all = append(all, v)
	}
	return all
}

// literalKind returns the type of the value of literals and of arithmetic with them, texts or
// integers; 0 for what has another, or may.
func literalKind(node ast.Node) kinds {
	switch n := node.(type) {
	case *ast.StringNode:
		return texts
	case *ast.IntegerNode, *ast.FloatNode:
		return integers
	case *ast.UnaryNode:
		return literalKind(n.Node)
	case *ast.BinaryNode:
		if slices.Contains([]string{"+", "-", "*", "/", "%", "**", "^"}, n.Operator) {
			if left := literalKind(n.Left); left == literalKind(n.Right) {
				return left
			}
		}
	}
	return 0
}

// unlikeLiterals returns the types of a literal text and a literal number that an operator
// compares; 0 where it compares none. Of in all elements of an array are compared.
func unlikeLiterals(n *ast.BinaryNode) (left, right kinds) {
	others := []ast.Node{n.Right}
	if array, ok := n.Right.(*ast.ArrayNode); ok && n.Operator == "in" {
		others = array.Nodes
	} else if !isComparison(n.Operator) {
		return 0, 0
	}
	left = literalKind(n.Left)
	for _, other := range others {
		if right = literalKind(other); right == 0 || right == left {
			return 0, 0
		}
	}
	if right == 0 {
		return 0, 0
	}
	return left, right
}
