package expr

import (
	"errors"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"

	"obelus/store"
)

// maxAlternatives bounds the alternatives of an output path once it is distributed.
const maxAlternatives = 64

// Output is a compiled output path (protocol §4): alternatives in order, each
// the paths to which one result is written.
type Output struct {
	Source       string
	Alternatives [][]store.Path
}

// ParseOutput compiles an output path: references joined by || (alternatives),
// && (fan-out) and parentheses.
func ParseOutput(text string) (*Output, error) {
	if len(text) <= MaxExpression { // the usual case
		if path, err := store.ParsePath(text); err == nil {
			return &Output{text, [][]store.Path{{path}}}, nil
		}
	}
	s, err := readSource(text)
	if err != nil {
		return nil, err
	}
	tree, err := s.parse(nil)
	if err != nil {
		return nil, s.howJoined(err)
	}
	alternatives, err := s.distribute(tree.Node)
	if err != nil {
		return nil, err
	}
	for _, paths := range alternatives {
		for i, path := range paths {
			if at := slices.IndexFunc(paths[:i], path.Overlaps); at >= 0 {
				return nil, s.errorAt(0, "%s and %s overlap: one result can't be written to both", paths[at], path)
			}
		}
	}
	return &Output{text, alternatives}, nil
}

// howJoined says what joins paths where an error is about what does elsewhere.
func (s *source) howJoined(err error) error {
	var bad *Error
	if !errors.As(err, &bad) {
		return err
	}
	// Expr has a single | too.
	between := strings.Contains(strings.ReplaceAll(s.text, "||", ""), "|")
	for _, found := range []string{",", "&", store.Dagger} {
		between = between || strings.HasPrefix(bad.Message, `unexpected "`+found)
	}
	if between {
		bad.Message += " (&& between paths writes to each of them, || to the first or else to the next)"
	}
	return bad
}

func (s *source) distribute(node ast.Node) ([][]store.Path, error) {
	switch n := node.(type) {
	case *ast.IdentifierNode:
		if i, ok := s.path(n.Value); ok {
			return [][]store.Path{{s.paths[i]}}, nil
		}
	case *ast.BinaryNode:
		return s.distributeBinary(n)
	}
	return nil, s.noPath(node)
}

func (s *source) noPath(node ast.Node) error {
	root := node
	for member, ok := root.(*ast.MemberNode); ok; member, ok = root.(*ast.MemberNode) {
		root = member.Node
	}
	if name, ok := root.(*ast.IdentifierNode); ok {
		if _, ok := s.path(name.Value); !ok {
			node = root
		}
	}
	return s.errorIn(node, "an output path is made of references, ||, && and parentheses only%s", s.meant(node))
}

func (s *source) distributeBinary(n *ast.BinaryNode) ([][]store.Path, error) {
	switch n.Operator {
	case "or":
		return nil, s.errorIn(n, "in an output path write || for alternatives, not or")
	case "and":
		return nil, s.errorIn(n, "in an output path write && for a fan-out, not and")
	case "||", "&&":
	default:
		return nil, s.noPath(n)
	}
	left, err := s.distribute(n.Left)
	if err != nil {
		return nil, err
	}
	right, err := s.distribute(n.Right)
	if err != nil {
		return nil, err
	}
	if n.Operator == "||" {
		left = append(left, right...)
	} else {
		left = product(left, right)
	}
	if len(left) > maxAlternatives {
		return nil, s.errorIn(n, "the output path has more than %d alternatives", maxAlternatives)
	}
	return left, nil
}

// product distributes && over ||.
func product(left, right [][]store.Path) [][]store.Path {
	var all [][]store.Path
	for _, l := range left {
		for _, r := range right {
			paths := slices.Clone(l)
			for _, path := range r {
				if !slices.Contains(paths, path) {
					paths = append(paths, path)
				}
			}
			all = append(all, paths)
		}
	}
	return all
}

// Writes lists every path that the output may write to, each once. The list may be shared, and must
// not be changed.
func (o *Output) Writes() []store.Path {
	switch {
	case o == nil:
		return nil
	case len(o.Alternatives) == 1: // no path is there twice
		return o.Alternatives[0]
	}
	var all []store.Path
	for _, paths := range o.Alternatives {
		for _, path := range paths {
			if !slices.Contains(all, path) {
				all = append(all, path)
			}
		}
	}
	return all
}

// AlternativeWith finds the first alternative that holds a path.
func (o *Output) AlternativeWith(path store.Path) ([]store.Path, bool) {
	for _, paths := range o.Alternatives {
		if slices.Contains(paths, path) {
			return paths, true
		}
	}
	return nil, false
}
