package expr

import (
	"fmt"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"

	"obelus/engine/lazyregexp"
	"obelus/engine/spell"
	"obelus/store"
)

// ParseCondition compiles a text that is an expression however it begins, as an output path is. One
// without a reference is refused: it would always give the same.
func ParseCondition(text string) (*Expr, error) {
	if !strings.Contains(text, store.Dagger) {
		return nil, fmt.Errorf("%q has no reference%s", text, meantCondition(text))
	}
	e, err := compile(text)
	if err == nil && len(e.Reads()) == 0 {
		err = fmt.Errorf("%q has no reference: its † stands in a text", text)
	}
	if err != nil {
		return nil, err
	}
	return e, nil
}

// opposites maps comparisons to those that hold where they do not.
var opposites = map[string]string{"!=": "==", ">=": "<", "<=": ">"}

// Unnegated returns the expression as text in one form, without the negation around it: of two that
// give the same text, one negated and the other not, never do both hold.
func (e *Expr) Unnegated() (text string, negated bool) {
	s, err := readSource(e.String())
	if err != nil {
		return e.String(), false
	}
	tree, err := s.parse(newConfig())
	if err != nil {
		return e.String(), false
	}
	node := tree.Node
	for not, ok := node.(*ast.UnaryNode); ok && (not.Operator == "!" || not.Operator == "not"); not, ok = node.(*ast.UnaryNode) {
		node, negated = not.Node, !negated
	}
	if n, ok := node.(*ast.BinaryNode); ok && opposites[n.Operator] != "" {
		node, negated = &ast.BinaryNode{Operator: opposites[n.Operator], Left: n.Left, Right: n.Right}, !negated
	}
	text = names().ReplaceAllStringFunc(node.String(), func(name string) string {
		if i, ok := s.path(name); ok {
			return s.paths[i].String()
		}
		return name
	})
	return text, negated
}

// bareName finds the names in a condition without daggers that may be meant as references.
var bareName = lazyregexp.New(`"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[\p{L}_][\p{L}\p{N}_]*(?:\.[\p{L}\p{N}_]+)+`)

// meantCondition returns a hint to the condition that may be meant by a text without references.
func meantCondition(text string) string {
	word := strings.ToLower(strings.TrimSpace(text))
	switch {
	case slices.Contains([]string{"true", "yes", "on"}, word):
		return " (did you mean true, which is no text?)"
	case slices.Contains([]string{"false", "no", "off"}, word), spell.Nearest(word, []string{"false"}) != "":
		return " (did you mean false, which is no text?)"
	}
	if made, err := WithDaggers(text); err == nil {
		return fmt.Sprintf(" (did you mean %q?)", made)
	}
	made := bareName().ReplaceAllStringFunc(text, func(name string) string {
		if strings.ContainsAny(name[:1], `"'`) {
			return name
		}
		return store.Dagger + name
	})
	if _, err := compile(made); err == nil && made != text {
		return fmt.Sprintf(" (did you mean %q?)", made)
	}
	return ", and so is always the same: a reference begins with †"
}
