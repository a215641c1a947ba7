package expr

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/checker"
	"github.com/expr-lang/expr/compiler"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"

	"obelus/engine/lazyregexp"
	"obelus/store"
)

// Expr is a compiled expression (protocol §4), immutable and safe for
// concurrent use. References and || and && are Obelus's own; all else is a
// program of expr-lang/expr.
type Expr struct {
	source *source
	root   unit
	units  []unit // what programs call back into, by number
}

// IsExpr reports whether a string parameter is an expression, and not text.
func IsExpr(text string) bool {
	return strings.HasPrefix(text, store.Dagger) && !strings.HasPrefix(text, store.Dagger+store.Dagger)
}

// Parse compiles an expression, which begins with †. The error is an
// [*Error].
func Parse(text string) (*Expr, error) {
	if !IsExpr(text) {
		return nil, &Error{Source: text, Column: 1, Message: "an expression begins with " + store.Dagger}
	}
	return compile(text)
}

// compile compiles an expression, however it begins.
func compile(text string) (*Expr, error) {
	// The usual case.
	if path, err := store.ParsePath(text); err == nil && len(text) <= MaxExpression {
		return &Expr{source: &source{given: text, paths: []store.Path{path}}, root: refUnit{0, path}}, nil
	}
	s, err := readSource(text)
	if err != nil {
		return nil, err
	}
	c := &exprCompiler{source: s, config: newConfig()}
	tree, err := s.parse(c.config)
	if err != nil {
		return nil, s.withHint(err)
	}
	c.tree = tree
	root, err := c.unit(tree.Node, false)
	if err != nil {
		return nil, err
	}
	return &Expr{source: s, root: root, units: c.units}, nil
}

// operatorHints say what operators of other languages, and | and & alone, may be meant for.
var operatorHints = map[string]string{
	"|": "|| gives the first that exists; behind one | stands a function: | upper()",
	"&": "&& asks whether both exist; conditions are joined by and",
	"=": "== asks whether values are equal", "===": "== asks whether values are equal", "!==": "!= asks whether they differ", "<>": "!= asks whether they differ", "~=": "!= asks whether they differ",
}

// operators finds the operators of an expression once strings, || and && are left out of it.
var (
	stringsAndPairs = lazyregexp.New(`"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\|{2,}|&{2,}`)
	operators       = lazyregexp.New(`[|&]|===|!==|<>|~=|[=!<>]=|=`)
)

// withHint adds to the error of an expression what its first operator of another language
// may be meant for.
func (s *source) withHint(err error) error {
	bad, ok := errors.AsType[*Error](err)
	if !ok {
		return err
	}
	for _, operator := range operators().FindAllString(stringsAndPairs().ReplaceAllString(s.text, " "), -1) {
		if hint := operatorHints[operator]; hint != "" {
			bad.Message += " (" + hint + ")"
			break
		}
	}
	return bad
}

// String is the expression as written.
func (e *Expr) String() string { return e.source.given }

// Reads lists the paths that the expression refers to, in order, each once.
func (e *Expr) Reads() []store.Path { return e.source.paths }

// exprCompiler takes an expression's tree apart into units: references, || and
// && and conditions, which know missing from null, and between them programs.
type exprCompiler struct {
	source *source
	config *conf.Config
	tree   *parser.Tree
	units  []unit

	indexed bool // the predicate that is being compiled may use #index
}

// builtins are expr's own functions by their names. To gather them takes longer
// than to compile most expressions.
var builtins = conf.CreateNew().Builtins

// newConfig is what expr may know: one variable, through which programs reach
// the evaluation, and the functions that do.
func newConfig() *conf.Config {
	c := &conf.Config{ShortCircuit: true, MaxNodes: conf.DefaultMaxNodes, Functions: programFunctions, Builtins: builtins}
	c.WithEnv(map[string]any{evalName: (*evaluation)(nil)})
	return c
}

func (c *exprCompiler) unit(node ast.Node, inPredicate bool) (unit, error) {
	switch n := node.(type) {
	case *ast.IdentifierNode:
		if i, ok := c.source.path(n.Value); ok {
			return refUnit{i, c.source.paths[i]}, nil
		}
	case *ast.BinaryNode:
		if n.Operator == "||" || n.Operator == "&&" {
			return c.existence(n, inPredicate)
		}
	case *ast.ConditionalNode:
		return c.condition(n, inPredicate)
	}
	return c.program(node, inPredicate)
}

func (c *exprCompiler) existence(n *ast.BinaryNode, inPredicate bool) (unit, error) {
	if isChained(n) {
		return nil, c.source.errorIn(n, "a comparison has two sides: write two of them, as in 1 < †a and †a < 3")
	}
	word := map[string]string{"||": "or", "&&": "and"}[n.Operator]
	if inPredicate {
		return nil, c.source.errorIn(n, "%s asks which reference exists; inside a predicate write %q", n.Operator, word)
	}
	operands := make([]unit, 2)
	for i, operand := range []ast.Node{n.Left, n.Right} {
		u, err := c.unit(operand, false)
		if err != nil {
			return nil, err
		}
		if p, ok := u.(*programUnit); ok && p.boolean {
			return nil, c.source.errorIn(n, "%s asks which reference exists, and one side is always true or false; between conditions write %q", n.Operator, word)
		}
		operands[i] = u
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

func (c *exprCompiler) condition(n *ast.ConditionalNode, inPredicate bool) (unit, error) {
	parts := make([]unit, 3)
	for i, part := range []ast.Node{n.Cond, n.Exp1, n.Exp2} {
		u, err := c.unit(part, inPredicate)
		if err != nil {
			return nil, err
		}
		parts[i] = u
	}
	return condUnit{parts[0], parts[1], parts[2]}, nil
}

// program compiles what expr can evaluate by itself, once the references in it
// are calls back to the evaluation.
func (c *exprCompiler) program(node ast.Node, inPredicate bool) (unit, error) {
	w := &rewriter{c: c, inPredicate: inPredicate}
	node = w.rewrite(node)
	if w.err != nil {
		return nil, w.err
	}
	tree := &parser.Tree{Node: node, Source: c.tree.Source}
	typ, err := checker.Check(tree, c.config)
	if err != nil {
		return nil, c.source.wrap(err)
	}
	ast.Walk(&tree.Node, exactly{})
	program, err := compiler.Compile(tree, c.config)
	if err != nil {
		return nil, c.source.wrap(err)
	}
	_, literal := tree.Node.(*ast.BoolNode)
	boolean := !literal && typ != nil && typ.Kind() == reflect.Bool
	return &programUnit{program: program, boolean: boolean, refs: w.refs, units: w.units, always: w.always}, nil
}

// add keeps a unit for programs to call, and gives its number.
func (c *exprCompiler) add(u unit) int {
	c.units = append(c.units, u)
	return len(c.units) - 1
}

// unit is a part of an expression that has a value, or is missing.
type unit interface {
	eval(ev *evaluation) (any, *Missing, error)

	// possible reports whether the unit can have a value when only known paths can exist.
	possible(known func(store.Path) bool) bool

	// needs lists the paths without which it has no value.
	needs() []store.Path

	// hopeless returns the missing references without which the unit never has a value, whatever is
	// still to come; nil where it may have one. Only conditions are evaluated for that.
	hopeless(ev *evaluation) (*Missing, error)
}

type (
	refUnit struct {
		index int
		path  store.Path
	}
	orUnit      struct{ left, right unit }
	andUnit     struct{ left, right unit }
	condUnit    struct{ cond, then, otherwise unit }
	programUnit struct {
		program *vm.Program
		boolean bool         // its value can only be true or false
		refs    []store.Path // references in the program itself
		units   []unit       // units that the program calls
		always  []unit       // those of both that are evaluated whatever the values are
	}
)

func (u refUnit) possible(known func(store.Path) bool) bool { return known(u.path) }

func (u orUnit) possible(known func(store.Path) bool) bool {
	return u.left.possible(known) || u.right.possible(known)
}

func (u andUnit) possible(known func(store.Path) bool) bool {
	return u.left.possible(known) && u.right.possible(known)
}

func (u condUnit) possible(known func(store.Path) bool) bool {
	return u.cond.possible(known) && (u.then.possible(known) || u.otherwise.possible(known))
}

func (u *programUnit) possible(known func(store.Path) bool) bool {
	for _, path := range u.refs {
		if !known(path) {
			return false
		}
	}
	return !slices.ContainsFunc(u.units, func(inner unit) bool { return !inner.possible(known) })
}

func (u refUnit) needs() []store.Path { return []store.Path{u.path} }

func (u orUnit) needs() []store.Path { return nil }

func (u andUnit) needs() []store.Path { return append(u.left.needs(), u.right.needs()...) }

func (u condUnit) needs() []store.Path { return u.cond.needs() }

func (u *programUnit) needs() []store.Path {
	var all []store.Path
	for _, inner := range u.always {
		all = append(all, inner.needs()...)
	}
	return all
}

// WithDaggers writes the daggers of references: "state.a || input.b" becomes
// "†state.a || †input.b". Between the references may stand ||, && and parentheses, and
// literals; a reference that has its dagger keeps it.
func WithDaggers(text string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(text); {
		rest := text[i:]
		n := len(rest) - len(strings.TrimLeft(rest, " \t\n"))
		if n == 0 {
			n = len(betweenReferences().FindString(rest))
		}
		if n > 0 {
			b.WriteString(rest[:n])
			i += n
			continue
		}
		path := store.Dagger + strings.TrimPrefix(rest, store.Dagger)
		_, n, err := store.ScanPath(path)
		if err != nil {
			return "", fmt.Errorf("expected a path such as state.a, ||, && or a parenthesis, found %q%s", rest, store.QuoteHint(err))
		}
		b.WriteString(path[:n])
		i += n - (len(path) - len(rest))
	}
	made := strings.TrimSpace(b.String())
	if strings.HasPrefix(made, "(") {
		made = store.Dagger + made
	}
	if _, err := Parse(made); err != nil {
		return "", err
	}
	return made, nil
}

// betweenReferences is what stands between the references of [WithDaggers]: an operator, a
// parenthesis or a literal.
var betweenReferences = lazyregexp.New(`^(?:\|\||&&|[()]|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|-?[0-9]+(?:\.[0-9]+)?\b|(?:true|false|nil|null)\b)`)

// Reference returns the path of an expression that is a reference alone.
func (e *Expr) Reference() (path store.Path, ok bool) {
	ref, ok := e.root.(refUnit)
	return ref.path, ok
}

// Needs lists the references without which the expression has no value.
func (e *Expr) Needs() []store.Path { return e.root.needs() }
