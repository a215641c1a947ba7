package expr

import (
	"errors"
	"fmt"
	"strings"

	"obelus/engine/lazyregexp"
	"obelus/store"
)

// Expr is a compiled expression (protocol §4), immutable and safe for
// concurrent use. expr-lang/expr parses it; it is evaluated here (decisions/exact-expressions.md).
type Expr struct {
	source *source
	root   unit
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
	tree, err := s.parse(newConfig())
	if err != nil {
		return nil, s.withHint(err)
	}
	c := &exprCompiler{source: s}
	root, err := c.unit(tree.Node, false)
	if err != nil {
		return nil, err
	}
	return &Expr{source: s, root: settled(root)}, nil
}

// operatorHints say what operators of other languages, and | and & alone, may be meant for.
var operatorHints = map[string]string{
	"|": "|| gives the first that exists; behind one | stands a function: | upper()",
	"&": "&& asks whether both exist; conditions are joined by and",
	"=": "== asks whether values are equal", "===": "== asks whether values are equal", "!==": "!= asks whether they differ", "<>": "!= asks whether they differ", "~=": "!= asks whether they differ",
}

// otherOperators finds the operators of an expression once strings, || and && are left out of it.
var (
	stringsAndPairs = lazyregexp.New(`"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\|{2,}|&{2,}`)
	otherOperators  = lazyregexp.New(`[|&]|===|!==|<>|~=|[=!<>]=|=`)
)

// withHint adds to the error of an expression what its first operator of another language
// may be meant for.
func (s *source) withHint(err error) error {
	bad, ok := errors.AsType[*Error](err)
	if !ok {
		return err
	}
	for _, operator := range otherOperators().FindAllString(stringsAndPairs().ReplaceAllString(s.text, " "), -1) {
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
func (e *Expr) Needs() []store.Path { return needs(e.root) }
