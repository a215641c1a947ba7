package explain

import (
	"slices"
	"strconv"
	"strings"

	"github.com/yuin/gopher-lua/ast"

	"obelus/host/internal/luac"
	"obelus/host/internal/luatext"
)

// argument returns the argument of a call of a function, if it is a name.
func (n *Names) argument(function, number string) string {
	i, _ := strconv.Atoi(number)
	var found []string
	n.each(func(e ast.Expr) {
		call, ok := e.(*ast.FuncCallExpr)
		if !ok || i < 1 || i > len(call.Args) {
			return
		}
		name := calledText(call)
		if name != function && !strings.HasSuffix(name, "."+function) && call.Method != function {
			return
		}
		switch arg := call.Args[i-1].(type) {
		case *ast.IdentExpr, *ast.AttrGetExpr:
			found = append(found, ExprText(arg))
		default:
			found = append(found, "")
		}
	})
	return agreed(found)
}

// negated returns the operand of a minus.
func (n *Names) negated() string {
	return n.operandText(func(e ast.Expr) ast.Expr {
		if e, ok := e.(*ast.UnaryMinusOpExpr); ok {
			return e.Expr
		}
		return nil
	})
}

// measured returns the operand of #.
func (n *Names) measured() string {
	return n.operandText(func(e ast.Expr) ast.Expr {
		if e, ok := e.(*ast.UnaryLenOpExpr); ok {
			return e.Expr
		}
		return nil
	})
}

// operandText returns the text of the one operand in the line's expressions, or "" if there are none or
// several.
func (n *Names) operandText(operand func(e ast.Expr) ast.Expr) string {
	var found []string
	n.each(func(e ast.Expr) {
		if operand := operand(e); operand != nil {
			found = append(found, ExprText(operand))
		}
	})
	return agreed(found)
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

func (n *Names) each(see func(e ast.Expr)) {
	if n != nil {
		for _, e := range n.exprs {
			see(e)
		}
	}
}

func (n *Names) indexed(key string) string {
	var found []string
	n.each(func(e ast.Expr) {
		switch e := e.(type) {
		case *ast.AttrGetExpr:
			if k, ok := e.Key.(*ast.StringExpr); !ok || k.Value == key {
				found = append(found, ExprText(e.Object))
			}
		case *ast.FuncCallExpr:
			if e.Receiver != nil && e.Method == key {
				found = append(found, ExprText(e.Receiver))
			}
		}
	})
	return agreed(found)
}

func (n *Names) operands(operator string) (left, right string) {
	var lefts, rights []string
	n.each(func(e ast.Expr) {
		if e, ok := e.(*ast.ArithmeticOpExpr); ok && e.Operator == operator {
			lefts, rights = append(lefts, ExprText(e.Lhs)), append(rights, ExprText(e.Rhs))
		}
	})
	return agreed(lefts), agreed(rights)
}

func (n *Names) compared() (left, right string) {
	var lefts, rights []string
	n.each(func(e ast.Expr) {
		if e, ok := e.(*ast.RelationalOpExpr); ok && e.Operator != "==" && e.Operator != "~=" {
			left, right := ExprText(e.Lhs), ExprText(e.Rhs)
			if strings.HasPrefix(e.Operator, ">") {
				left, right = right, left // compiled with its operands swapped
			}
			lefts, rights = append(lefts, left), append(rights, right)
		}
	})
	return agreed(lefts), agreed(rights)
}

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

// calledNames returns the called expressions that may not be functions.
func (n *Names) calledNames() []string {
	var found []string
	n.each(func(e ast.Expr) {
		if call, ok := e.(*ast.FuncCallExpr); ok && !n.isFunction(calledText(call)) {
			found = append(found, calledText(call))
		}
	})
	return found
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

// qualify returns the name of a called function with the library before it: "table.insert" for insert.
func (n *Names) qualify(name string) string {
	found := []string{}
	n.each(func(e ast.Expr) {
		if call, ok := e.(*ast.FuncCallExpr); ok && call.Func != nil && strings.HasSuffix(ExprText(call.Func), "."+name) {
			found = append(found, ExprText(call.Func))
		}
	})
	if text := agreed(found); text != "" {
		return text
	}
	return name
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
