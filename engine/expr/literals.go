package expr

import (
	"github.com/expr-lang/expr/ast"

	"obelus/store"
)

// LiteralOperand is a reference that an expression combines with a literal by an operator, in
// either order.
type LiteralOperand struct {
	Operator string
	Path     store.Path
	Literal  any // a string, an int, a float64 or a bool
}

// LiteralOperands lists the references of the expression that stand beside a literal.
func (e *Expr) LiteralOperands() (all []LiteralOperand) {
	s, err := readSource(e.String())
	if err != nil {
		return nil
	}
	tree, err := s.parse(newConfig())
	if err != nil {
		return nil
	}
	ast.Walk(&tree.Node, visitor(func(node ast.Node) {
		n, ok := node.(*ast.BinaryNode)
		if !ok {
			return
		}
		for _, sides := range [][2]ast.Node{{n.Left, n.Right}, {n.Right, n.Left}} {
			name, ok := sides[0].(*ast.IdentifierNode)
			if !ok {
				continue
			}
			i, isRef := s.path(name.Value)
			literal, isLiteral := literalValue(sides[1])
			if isRef && isLiteral {
				all = append(all, LiteralOperand{n.Operator, s.paths[i], literal})
			}
		}
	}))
	return all
}

// Reference returns the path of an expression that is a reference alone.
func (e *Expr) Reference() (path store.Path, ok bool) {
	ref, ok := e.root.(refUnit)
	return ref.path, ok
}

// Needs lists the references without which the expression has no value.
func (e *Expr) Needs() []store.Path { return e.root.needs() }

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
