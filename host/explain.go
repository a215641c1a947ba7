package host

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/yuin/gopher-lua/ast"

	"obelus/engine"
	"obelus/host/internal/luatext"
)

// The interpreter's messages name no variables. explain puts them into Lua's
// words and finds in the source what was nil.

var (
	faultIndex   = regexp.MustCompile(`^attempt to index a non-table object\((\w+)\) with key '(.*)'$`)
	faultArith   = regexp.MustCompile(`^cannot perform (\w+) operation between (\w+) and (\w+)$`)
	faultConcat  = regexp.MustCompile(`^attempt to concatenate a (\w+) value \(operand (\d+)\)$`)
	faultCompare = regexp.MustCompile(`^attempt to compare (\w+) with (\w+)$`)
	faultFor     = regexp.MustCompile(`^for statement (\w+) must be a number(?:, not (\w+))?$`)
	faultMinus   = regexp.MustCompile(`^cannot perform unm operation between \w+ and (\w+)$`)
	faultLength  = regexp.MustCompile(`^attempt to get the length of a (\w+) value$`)
	faultNoValue = regexp.MustCompile(`^(\w+(?: or \w+)* expected, got )nil$`)
	faultOptions = regexp.MustCompile(`^bad argument #(\d+) to (\S+|main chunk) \(((?s:.*))\)$`)

	// What gopher-luar says of objects of the host, in types of Go.
	faultUse   = regexp.MustCompile(`^cannot use (?s:(nil|.* \(type (.+)\))) as type (.*)$`)
	faultField = regexp.MustCompile(`^(?:type \S+ has no|unknown) field (\w+)$`)
)

// absent are the globals of Lua 5.1 that scripts do not have.
var absent = []string{
	"collectgarbage", "debug.getlocal", "debug.getupvalue", "debug.setlocal", "debug.setupvalue", "dofile", "io.popen", "loadfile", "module", "newproxy",
	"os.execute", "os.remove", "os.rename", "os.tmpname", "package.loadlib", "string.dump",
}

var (
	operators      = map[string]string{"add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%", "pow": "^"}
	operationNames = map[string]string{"+": "add", "-": "sub", "*": "mul", "/": "div", "%": "mod", "^": "pow"}
)

// mostExplained is how long a message may be to be rewritten. One that is longer
// holds a text of the script.
const mostExplained = 4 << 10

// explain rewrites a message of the interpreter; names may be nil.
func explain(message string, names *names) string {
	if len(message) > mostExplained {
		return message
	}
	if m := faultIndex.FindStringSubmatch(message); m != nil {
		if name := names.indexed(m[2]); slices.Contains(absent, name) {
			return name + " is not available in scripts"
		}
		name := names.indexed(m[2])
		return "attempt to index " + named(name, m[1]) + ", key " + strconv.Quote(m[2]) + names.meant(name)
	}
	if m := faultMinus.FindStringSubmatch(message); m != nil {
		return "attempt to perform arithmetic on " + named(names.negated(), m[1])
	}
	if m := faultLength.FindStringSubmatch(message); m != nil {
		return "attempt to get the length of " + named(names.measured(), m[1])
	}
	if m := faultArith.FindStringSubmatch(message); m != nil {
		left, right := names.operands(operators[m[1]])
		if m[2] != "number" && !(m[2] == "string" && m[3] != "number" && m[3] != "string") {
			return "attempt to perform arithmetic on " + named(left, m[2])
		}
		return "attempt to perform arithmetic on " + named(right, m[3])
	}
	if m := faultConcat.FindStringSubmatch(message); m != nil {
		n, _ := strconv.Atoi(m[2])
		return "attempt to concatenate " + named(names.joined(n), m[1])
	}
	if m := faultCompare.FindStringSubmatch(message); m != nil {
		left, right := names.compared()
		return "attempt to compare " + named(left, m[1]) + " with " + named(right, m[2])
	}
	if m := faultFor.FindStringSubmatch(message); m != nil {
		text := "the " + m[1] + " of a for loop must be a number"
		if m[2] != "" {
			text += ", not " + named(names.bound(m[1]), m[2])
		}
		return text
	}
	if m := faultOptions.FindStringSubmatch(message); m != nil {
		return names.badArgument(m[1], m[2], m[3])
	}
	if m := faultField.FindStringSubmatch(message); m != nil {
		return "the object has no field " + strconv.Quote(m[1])
	}
	switch message {
	case "attempt to call a non-function object":
		return names.uncallable()
	case "registry overflow":
		return "stack overflow"
	}
	return message
}

// badArgument is what a function says of an argument. The object of a method is none, as in
// Lua.
func (n *names) badArgument(number, function, why string) string {
	if m := faultUse.FindStringSubmatch(why); m != nil {
		why = luaTypeOf(m[3]) + " expected, got " + luaTypeOf(cmp.Or(m[2], "nil"))
	}
	if function == "main chunk" { // which no line of Lua called, but pcall
		return "bad argument #" + number + " to ?: " + why
	}
	name := n.full(function)
	if i, err := strconv.Atoi(number); err == nil && name == function && n.isMethod(function) {
		if number = strconv.Itoa(i - 1); i == 1 {
			return "bad object of the method " + name + ": " + why
		}
	}
	if strings.HasPrefix(name, "(") { // (anonymous): an object's field is set, or a key is looked for
		return "bad value: " + why
	}
	if m := faultNoValue.FindStringSubmatch(why); m != nil {
		why = m[1] + named(n.argument(function, number), "nil")
		why = strings.Replace(why, "got a nil value", "got nil", 1)
	}
	return "bad argument #" + number + " to " + name + ": " + why
}

// argument is the argument of a call of a function, if it is a name.
func (n *names) argument(function, number string) string {
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
			found = append(found, exprText(arg))
		default:
			found = append(found, "")
		}
	})
	return only(found)
}

// negated is the operand of a minus.
func (n *names) negated() string {
	return n.only(func(e ast.Expr) ast.Expr {
		if e, ok := e.(*ast.UnaryMinusOpExpr); ok {
			return e.Expr
		}
		return nil
	})
}

// measured is the operand of #.
func (n *names) measured() string {
	return n.only(func(e ast.Expr) ast.Expr {
		if e, ok := e.(*ast.UnaryLenOpExpr); ok {
			return e.Expr
		}
		return nil
	})
}

// only is the one operand that a function finds in the line's expressions, nil for none.
func (n *names) only(operand func(e ast.Expr) ast.Expr) string {
	var found []string
	n.each(func(e ast.Expr) {
		if operand := operand(e); operand != nil {
			found = append(found, exprText(operand))
		}
	})
	return only(found)
}

// bound is a bound of a numeric loop: its init, limit or step.
func (n *names) bound(which string) string {
	if n == nil {
		return ""
	}
	var found []string
	for _, loop := range n.counted {
		if e := map[string]ast.Expr{"init": loop.Init, "limit": loop.Limit, "step": loop.Step}[which]; e != nil {
			found = append(found, exprText(e))
		}
	}
	return only(found)
}

// isMethod tells whether a function is called as a method, object:name(…), and in no other
// way.
func (n *names) isMethod(name string) (is bool) {
	other := false
	n.each(func(e ast.Expr) {
		call, ok := e.(*ast.FuncCallExpr)
		switch {
		case !ok:
		case call.Func == nil:
			is = is || call.Method == name
		default:
			text := exprText(call.Func)
			other = other || text == name || strings.HasSuffix(text, "."+name)
		}
	})
	return is && !other
}

// luaTypeOf is what Lua calls what has a type of Go.
func luaTypeOf(goType string) string {
	name := strings.ToLower(strings.TrimPrefix(strings.TrimLeft(goType, "*"), "lua.L"))
	switch {
	case strings.HasPrefix(name, "int"), strings.HasPrefix(name, "uint"), strings.HasPrefix(name, "float"), name == "number":
		return "number"
	case strings.HasPrefix(name, "map["), strings.HasPrefix(name, "["), name == "table":
		return "table"
	case strings.HasPrefix(name, "func"):
		return "function"
	case name == "bool":
		return "boolean"
	case name == "string", name == "nil":
		return name
	}
	return "object"
}

// named is "order.total (a nil value)", or "a nil value"; a literal stands for
// itself.
func named(name, typ string) string {
	switch {
	case name == "" || name == typ:
		return "a " + typ + " value"
	case name[0] == '"' || name[0] >= '0' && name[0] <= '9':
		return name
	}
	return name + " (a " + typ + " value)"
}

// environment is what a message may be about besides the source.
type environment interface {
	// HasGlobal reports whether scripts have a global of the name.
	HasGlobal(name string) bool
	// DeclaresFunction reports whether the script that runs has a global function of the name.
	DeclaresFunction(name string) bool
	// Library returns the names of a library's fields, or nil if there is no such library.
	Library(name string) []string
	// Globals returns the names of globals that may be meant by another.
	Globals() []string
}

// names are the expressions on one line of a file.
type names struct {
	env     environment
	exprs   []ast.Expr
	loops   []*ast.GenericForStmt // that begin there
	counted []*ast.NumberForStmt  // the same of numeric ones
	local   []string              // functions declared before, which all of the file sees
}

// namesAt reads a line of a file's source, for [explain]. It is nil if the file cannot be parsed.
func namesAt(env environment, file string, source []byte, line int) *names {
	chunk, err := parseChunk(file, source)
	if err != nil {
		return nil
	}
	n := &names{env: env}
	walker{
		see: func(e ast.Expr) {
			if e.Line() == line {
				n.exprs = append(n.exprs, e)
			}
		},
		loop: func(s ast.Stmt) {
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
	}.stmts(chunk, 0)
	for _, stmt := range chunk {
		if declared, ok := stmt.(*ast.LocalAssignStmt); ok && declared.LastLine() < line && len(declared.Exprs) == 1 {
			if _, ok := declared.Exprs[0].(*ast.FunctionExpr); ok {
				n.local = append(n.local, declared.Names[0])
			}
		}
	}
	return n
}

// only is the one text that all the expressions found have, or "".
func only(found []string) string {
	slices.Sort(found)
	if found = slices.Compact(found); len(found) == 1 {
		return found[0]
	}
	return ""
}

func (n *names) each(see func(e ast.Expr)) {
	if n != nil {
		for _, e := range n.exprs {
			see(e)
		}
	}
}

func (n *names) indexed(key string) string {
	var found []string
	n.each(func(e ast.Expr) {
		switch e := e.(type) {
		case *ast.AttrGetExpr:
			if k, ok := e.Key.(*ast.StringExpr); !ok || k.Value == key {
				found = append(found, exprText(e.Object))
			}
		case *ast.FuncCallExpr:
			if e.Receiver != nil && e.Method == key {
				found = append(found, exprText(e.Receiver))
			}
		}
	})
	return only(found)
}

func (n *names) operands(operator string) (left, right string) {
	var lefts, rights []string
	n.each(func(e ast.Expr) {
		if e, ok := e.(*ast.ArithmeticOpExpr); ok && e.Operator == operator {
			lefts, rights = append(lefts, exprText(e.Lhs)), append(rights, exprText(e.Rhs))
		}
	})
	return only(lefts), only(rights)
}

func (n *names) compared() (left, right string) {
	var lefts, rights []string
	n.each(func(e ast.Expr) {
		if e, ok := e.(*ast.RelationalOpExpr); ok && e.Operator != "==" && e.Operator != "~=" {
			left, right := exprText(e.Lhs), exprText(e.Rhs)
			if strings.HasPrefix(e.Operator, ">") {
				left, right = right, left // it is compiled the other way round
			}
			lefts, rights = append(lefts, left), append(rights, right)
		}
	})
	return only(lefts), only(rights)
}

func (n *names) joined(operand int) string {
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
			found = append(found, exprText(operands[operand-1]))
		}
	})
	return only(found)
}

// uncallable says what was called that is not a function: by a call, or by a loop
// that has a table in the place of an iterator.
func (n *names) uncallable() string {
	calls, iterators := n.called(), n.iterators()
	call := only(calls)
	missing := slices.IndexFunc(calls, func(call string) bool { return slices.Contains(absent, call) })
	switch {
	case missing >= 0:
		return calls[missing] + " is not available in scripts"
	case len(iterators) == 0 && call != "":
		return "attempt to call " + call + ", which is not a function" + n.meant(call)
	case len(iterators) != 1:
		return "attempt to call a value that is not a function"
	}
	remedy := "put pairs(…) or ipairs(…) around " + iterators[0]
	if slices.ContainsFunc(calls, func(call string) bool { return !n.declared(call) }) {
		return "attempt to call a value that is not a function: if it is what for … in was given, " + remedy
	}
	return "for … in wants a function: " + remedy
}

// meant is a hint to the global, or to the field of a library, that may be meant by the name of
// what is nil; empty for none.
func (n *names) meant(name string) string {
	if n == nil {
		return ""
	}
	library, field, isField := strings.Cut(name, ".")
	near := ""
	if fields := n.env.Library(library); isField && fields != nil {
		slices.Sort(fields)
		if near = engine.Nearest(field, fields); near != "" {
			near = library + "." + near
		}
	} else if !isField {
		near = engine.Nearest(name, n.env.Globals())
	}
	if near == "" || near == name {
		return ""
	}
	return " (did you mean " + near + "?)"
}

// called are what the calls call, less what surely is a function.
func (n *names) called() []string {
	var found []string
	n.each(func(e ast.Expr) {
		if call, ok := e.(*ast.FuncCallExpr); ok && !n.isFunction(calledText(call)) {
			found = append(found, calledText(call))
		}
	})
	return found
}

// iterators are what loops got, less the calls that surely give a function.
func (n *names) iterators() []string {
	if n == nil {
		return nil
	}
	var found []string
	for _, loop := range n.loops {
		call, ok := loop.Exprs[0].(*ast.FuncCallExpr)
		if ok && (call.Method == "gmatch" || slices.Contains(giveIterators, calledText(call))) {
			continue
		}
		text := exprText(loop.Exprs[0])
		if _, ok := loop.Exprs[0].(*ast.TableExpr); ok {
			text = "the table"
		}
		found = append(found, text)
	}
	return found
}

// giveIterators are the functions of Lua's library that give a function.
var giveIterators = []string{"coroutine.wrap", "ipairs", "pairs", "string.gmatch"}

// declared tells whether a name is that of a function of the script.
func (n *names) declared(name string) bool {
	return slices.Contains(n.local, name) || n.env.DeclaresFunction(name)
}

func calledText(call *ast.FuncCallExpr) string {
	if call.Func == nil {
		return exprText(call.Receiver) + ":" + call.Method
	}
	return exprText(call.Func)
}

// full is the name of a called function with what stands before it:
// "table.insert" for insert.
func (n *names) full(name string) string {
	found := []string{}
	n.each(func(e ast.Expr) {
		if call, ok := e.(*ast.FuncCallExpr); ok && call.Func != nil && strings.HasSuffix(exprText(call.Func), "."+name) {
			found = append(found, exprText(call.Func))
		}
	})
	if text := only(found); text != "" {
		return text
	}
	return name
}

// isFunction reports whether a name is that of a function of Lua's library, which is not what
// could not be called.
func (n *names) isFunction(name string) bool {
	library, function, ok := strings.Cut(name, ".")
	if !ok {
		return n.env.HasGlobal(name)
	}
	return slices.Contains(n.env.Library(library), function)
}

// exprText writes an expression as its author did, shortened.
func exprText(e ast.Expr) string {
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
			return exprText(e.Object) + "." + key.Value
		}
		return exprText(e.Object) + "[" + exprText(e.Key) + "]"
	case *ast.FuncCallExpr:
		if e.Func == nil {
			return exprText(e.Receiver) + ":" + e.Method + "(…)"
		}
		return exprText(e.Func) + "(…)"
	}
	return "(…)"
}
