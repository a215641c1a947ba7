package expr

import (
	"errors"
	"reflect"
	"slices"
	"strings"

	exprlang "github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/checker"
	"github.com/expr-lang/expr/compiler"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/parser"

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

// alternatives is the type that expr has for an output path and for each part of it.
type alternatives [][]store.Path

// outputOperators are the functions with which expr evaluates || and &&. Were their sides declared
// as alternatives and not as any, expr would check a path again for each level of its nesting.
var outputOperators = map[string]*builtin.Function{
	"||": outputOperator("||", func(left, right alternatives) alternatives { return slices.Concat(left, right) }),
	"&&": outputOperator("&&", product),
}

func outputOperator(name string, join func(left, right alternatives) alternatives) *builtin.Function {
	return &builtin.Function{Name: name, Types: []reflect.Type{reflect.TypeFor[func(left, right any) alternatives]()}, Func: func(sides ...any) (any, error) {
		all := join(sides[0].(alternatives), sides[1].(alternatives))
		if len(all) > maxAlternatives {
			return fail("the output path has more than %d alternatives", maxAlternatives)
		}
		return all, nil
	}}
}

// ParseOutput compiles an output path: references joined by || (alternatives),
// && (fan-out) and parentheses.
func ParseOutput(text string) (*Output, error) {
	// A reference alone, the usual case, goes past expr, which takes some twenty times as long.
	if len(text) <= MaxExpression {
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
	names := map[string]any{}
	if err := s.checkOutput(tree.Node, names); err != nil {
		return nil, err
	}
	value, err := evaluateOutput(tree, names)
	if err != nil {
		return nil, s.wrap(err)
	}
	all := value.(alternatives)
	for _, paths := range all {
		for i, path := range paths {
			if at := slices.IndexFunc(paths[:i], path.Overlaps); at >= 0 {
				return nil, s.errorAt(0, "%s and %s overlap: one result can't be written to both", paths[at], path)
			}
		}
	}
	return &Output{text, all}, nil
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

// checkOutput refuses what protocol §4 does not allow in an output path, and gives each name in it
// its value: the path that it stands for, as the only alternative.
func (s *source) checkOutput(node ast.Node, names map[string]any) error {
	switch n := node.(type) {
	case *ast.IdentifierNode:
		if i, ok := s.path(n.Value); ok {
			names[n.Value] = alternatives{{s.paths[i]}}
			return nil
		}
	case *ast.BinaryNode:
		switch n.Operator {
		case "or":
			return s.errorIn(n, "in an output path write || for alternatives, not or")
		case "and":
			return s.errorIn(n, "in an output path write && for a fan-out, not and")
		case "||", "&&":
			if err := s.checkOutput(n.Left, names); err != nil {
				return err
			}
			return s.checkOutput(n.Right, names)
		}
	}
	return s.noPath(node)
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

// evaluateOutput has expr evaluate an output path that has been checked. The configuration is made
// without builtins: to gather them for DisableAllBuiltins takes longer than all the rest.
func evaluateOutput(tree *parser.Tree, names map[string]any) (any, error) {
	config := &conf.Config{Functions: outputOperators}
	config.WithEnv(names)
	for name := range outputOperators {
		exprlang.Operator(name, name)(config)
	}
	if _, err := new(checker.Checker).PatchAndCheck(tree, config); err != nil {
		return nil, err
	}
	program, err := compiler.Compile(tree, config)
	if err != nil {
		return nil, err
	}
	return exprlang.Run(program, names)
}

// product distributes && over ||.
func product(left, right alternatives) alternatives {
	var all alternatives
	for _, l := range left {
		for _, r := range right {
			rest := slices.DeleteFunc(slices.Clone(r), func(path store.Path) bool { return slices.Contains(l, path) })
			all = append(all, slices.Concat(l, rest))
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
