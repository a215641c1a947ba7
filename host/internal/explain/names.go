package explain

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/yuin/gopher-lua/ast"

	"obelus/host/internal/luac"
	"obelus/host/internal/luatext"
)

// Environment has the names that a message may be about, beside the source.
type Environment interface {
	// HasGlobal reports whether scripts have a global of the name.
	HasGlobal(name string) bool
	// DeclaresFunction reports whether the script that runs has a global function of the name.
	DeclaresFunction(name string) bool
	// Library returns the names of a library's fields, or nil if there is no such library.
	Library(name string) []string
	// Globals returns the names of globals that a misspelt name may mean.
	Globals() []string
}

// Names are the expressions on one line of a file.
type Names struct {
	env     Environment
	exprs   []ast.Expr
	loops   []*ast.GenericForStmt // loops that begin on the line
	counted []*ast.NumberForStmt  // numeric loops that begin on the line
	local   []string              // functions declared before the line, visible to the whole file
}

// NamesAt returns the expressions on a line of a file's source, for [Message], or nil if the file
// cannot be parsed.
func NamesAt(env Environment, file string, source []byte, line int) *Names {
	chunk, err := luac.ParseChunk(file, source)
	if err != nil {
		return nil
	}
	n := &Names{env: env}
	luac.Walker{
		See: func(e ast.Expr) {
			if e.Line() == line {
				n.exprs = append(n.exprs, e)
			}
		},
		Loop: func(s ast.Stmt) {
			if s.Line() != line {
				return
			}
			switch s := s.(type) {
			case *ast.GenericForStmt:
				n.loops = append(n.loops, s)
			case *ast.NumberForStmt:
				n.counted = append(n.counted, s)
			}
		},
	}.Stmts(chunk, 0)
	for _, stmt := range chunk {
		if declared, ok := stmt.(*ast.LocalAssignStmt); ok && declared.LastLine() < line && len(declared.Exprs) == 1 {
			if _, ok := declared.Exprs[0].(*ast.FunctionExpr); ok {
				n.local = append(n.local, declared.Names[0])
			}
		}
	}
	return n
}

// agreed returns the text that all found expressions share, or "".
func agreed(found []string) string {
	slices.Sort(found)
	if found = slices.Compact(found); len(found) == 1 {
		return found[0]
	}
	return ""
}

// each calls see for each of the line's expressions.
func (n *Names) each(see func(e ast.Expr)) {
	if n != nil {
		for _, e := range n.exprs {
			see(e)
		}
	}
}

// collect returns the texts that of finds in the line's expressions of one type.
func collect[E ast.Expr](n *Names, of func(e E) (text string, found bool)) (texts []string) {
	n.each(func(e ast.Expr) {
		if e, ok := e.(E); ok {
			if text, found := of(e); found {
				texts = append(texts, text)
			}
		}
	})
	return texts
}

// argument returns the argument of a call of a function, if it is a name.
func (n *Names) argument(function, number string) string {
	i, _ := strconv.Atoi(number)
	return agreed(collect(n, func(call *ast.FuncCallExpr) (text string, found bool) {
		if i < 1 || i > len(call.Args) {
			return "", false
		}
		switch arg := call.Args[i-1].(type) {
		case *ast.IdentExpr, *ast.AttrGetExpr:
			text = ExprText(arg)
		}
		name := calledText(call)
		return text, name == function || strings.HasSuffix(name, "."+function) || call.Method == function
	}))
}

// negated returns the operand of a minus.
func (n *Names) negated() string {
	return agreed(collect(n, func(e *ast.UnaryMinusOpExpr) (string, bool) { return ExprText(e.Expr), true }))
}

// measured returns the operand of #.
func (n *Names) measured() string {
	return agreed(collect(n, func(e *ast.UnaryLenOpExpr) (string, bool) { return ExprText(e.Expr), true }))
}

// bound returns a bound of a numeric loop: its init, limit or step.
func (n *Names) bound(which string) string {
	if n == nil {
		return ""
	}
	var found []string
	for _, loop := range n.counted {
		if e := map[string]ast.Expr{"init": loop.Init, "limit": loop.Limit, "step": loop.Step}[which]; e != nil {
			found = append(found, ExprText(e))
		}
	}
	return agreed(found)
}

// indexed returns the expression whose field is read, or whose method is called.
func (n *Names) indexed(key string) string {
	fields := collect(n, func(e *ast.AttrGetExpr) (string, bool) {
		k, ok := e.Key.(*ast.StringExpr)
		return ExprText(e.Object), !ok || k.Value == key
	})
	methods := collect(n, func(e *ast.FuncCallExpr) (string, bool) {
		return ExprText(e.Receiver), e.Receiver != nil && e.Method == key
	})
	return agreed(append(fields, methods...))
}

// operands returns the operands of an arithmetic operator.
func (n *Names) operands(operator string) (left, right string) {
	is := func(e *ast.ArithmeticOpExpr) bool { return e.Operator == operator }
	return agreed(collect(n, func(e *ast.ArithmeticOpExpr) (string, bool) { return ExprText(e.Lhs), is(e) })),
		agreed(collect(n, func(e *ast.ArithmeticOpExpr) (string, bool) { return ExprText(e.Rhs), is(e) }))
}

// compared returns the operands of a comparison, as they are compiled: swapped for > and >=.
func (n *Names) compared() (left, right string) {
	operand := func(first bool) string {
		return agreed(collect(n, func(e *ast.RelationalOpExpr) (string, bool) {
			side := e.Rhs
			if first != strings.HasPrefix(e.Operator, ">") {
				side = e.Lhs
			}
			return ExprText(side), e.Operator != "==" && e.Operator != "~="
		}))
	}
	return operand(true), operand(false)
}

// concatenated returns an operand, from 1, of a chain of the operator "..".
func (n *Names) concatenated(operand int) string {
	var found []string
	inner := map[ast.Expr]bool{}
	n.each(func(e ast.Expr) {
		chain, ok := e.(*ast.StringConcatOpExpr)
		if !ok || inner[e] {
			return
		}
		operands := []ast.Expr{chain.Lhs}
		rest := chain.Rhs
		for {
			next, ok := rest.(*ast.StringConcatOpExpr)
			if !ok {
				break
			}
			inner[next] = true
			operands = append(operands, next.Lhs)
			rest = next.Rhs
		}
		if operands = append(operands, rest); operand <= len(operands) {
			found = append(found, ExprText(operands[operand-1]))
		}
	})
	return agreed(found)
}

// isMethod reports whether a function is called only as a method, object:name(…).
func (n *Names) isMethod(name string) (is bool) {
	other := false
	n.each(func(e ast.Expr) {
		call, ok := e.(*ast.FuncCallExpr)
		switch {
		case !ok:
		case call.Func == nil:
			is = is || call.Method == name
		default:
			text := ExprText(call.Func)
			other = other || text == name || strings.HasSuffix(text, "."+name)
		}
	})
	return is && !other
}

// calledNames returns the called expressions that may not be functions.
func (n *Names) calledNames() []string {
	return collect(n, func(call *ast.FuncCallExpr) (string, bool) { return calledText(call), !n.isFunction(calledText(call)) })
}

// iterators returns the expressions that loops iterate over, less calls that surely return a
// function.
func (n *Names) iterators() []string {
	if n == nil {
		return nil
	}
	var found []string
	for _, loop := range n.loops {
		call, ok := loop.Exprs[0].(*ast.FuncCallExpr)
		if ok && (call.Method == "gmatch" || slices.Contains(giveIterators, calledText(call))) {
			continue
		}
		text := ExprText(loop.Exprs[0])
		if _, ok := loop.Exprs[0].(*ast.TableExpr); ok {
			text = "the table"
		}
		found = append(found, text)
	}
	return found
}

// giveIterators are the functions of Lua's library that return a function.
var giveIterators = []string{"coroutine.wrap", "ipairs", "pairs", "string.gmatch"}

// declared reports whether a name is one of a function of the script.
func (n *Names) declared(name string) bool {
	return slices.Contains(n.local, name) || n.env.DeclaresFunction(name)
}

func calledText(call *ast.FuncCallExpr) string {
	if call.Func == nil {
		return ExprText(call.Receiver) + ":" + call.Method
	}
	return ExprText(call.Func)
}

// qualify returns the name of a called function with the library before it: "table.insert" for
// insert.
func (n *Names) qualify(name string) string {
	return cmp.Or(agreed(collect(n, func(call *ast.FuncCallExpr) (string, bool) {
		if call.Func == nil {
			return "", false
		}
		text := ExprText(call.Func)
		return text, strings.HasSuffix(text, "."+name)
	})), name)
}

// isFunction reports whether a name is one of a function of Lua's library.
func (n *Names) isFunction(name string) bool {
	library, function, ok := strings.Cut(name, ".")
	if !ok {
		return n.env.HasGlobal(name)
	}
	return slices.Contains(n.env.Library(library), function)
}

// ExprText returns an expression as its author wrote it, shortened.
func ExprText(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.IdentExpr:
		return e.Value
	case *ast.StringExpr:
		return strconv.Quote(e.Value)
	case *ast.NumberExpr:
		return e.Value
	case *ast.NilExpr:
		return "nil"
	case *ast.AttrGetExpr:
		if key, ok := e.Key.(*ast.StringExpr); ok && luatext.IsName(key.Value) {
			return ExprText(e.Object) + "." + key.Value
		}
		return ExprText(e.Object) + "[" + ExprText(e.Key) + "]"
	case *ast.FuncCallExpr:
		if e.Func == nil {
			return ExprText(e.Receiver) + ":" + e.Method + "(…)"
		}
		return ExprText(e.Func) + "(…)"
	}
	return "(…)"
}
