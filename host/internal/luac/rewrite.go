package luac

import (
	"fmt"
	"slices"
	"strings"

	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"

	"obelus/host/internal/luaerr"
	"obelus/host/internal/luatext"
)

// Names of functions that rewritten code calls. Scripts can't name them, and no environment has
// them: see loadFunctionsAsConstants.
const (
	CallAt     = "\x00at"     // (line, table): a call of a plan
	CallConcat = "\x00concat" // the operator .. with a limit
	CallLength = "\x00length" // the operator #, which fills tables
	CallFill   = "\x00fill"   // (table, elements, parts, …): a table with more fields
	CallBound  = "\x00bound"  // (value, which): a bound of a for loop: init, limit or step
	CallMinus  = "\x00minus"  // (value): -value
	CallAdapt  = "\x00adapt"  // (value): of a field such as __add
	CallGlobal = "\x00global" // (): the globals of the calling function
	CallSame   = "\x00same"   // (value): the value
	CallPack   = "\x00pack"   // (…): a part of the arguments of a call
	CallUnpack = "\x00unpack" // (part, …): the arguments in the parts
	nameTemp   = "\x00temp"   // a local
)

// rewriter changes a syntax tree in place, and refuses one that is too deep.
//
//   - x = a and b is miscompiled where x is a local; do local t = a and b;
//     x = t end is not. Conditions with literals are folded for the same
//     reason.
//   - -x is called, since the interpreter would call __unm with one argument; so is a bound
//     of a for loop, which may be text.
//   - a .. b can make gigabytes between two looks at the clock, so it is
//     called; so is #t, since it must see a table that fills itself.
//   - { _tool = … } is called with its line.
//   - 010 is ten, 1e400 is infinite and 3e is no number: the compiler would make
//     eight and NaN of them.
//   - a, b = b, a swaps by way of locals, a = (...) does not adjust what it takes,
//     {[k] = f()} takes one result, for k, v in next, t begins with nil, for k in f()()
//     with what f gives, and no loop with a jump, and no table has elements where they
//     don't belong (see splitElements): each is miscompiled otherwise.
//   - A method is defined as a field with a first parameter self.
//   - Where a file has very many globals, most are written as fields: see findGlobalFields.
//   - local f = function() … end is no local function f() … end, which alone sees
//     itself: the parser makes the same of both.
type rewriter struct {
	file string
	// For each local statement to come, in the order of the source: whether it is a local function.
	locals []bool
	fields map[string]bool // globals that are compiled as fields
	err    *luaerr.ScriptError
}

func newRewriter(file, text string) *rewriter {
	w := &rewriter{file: file}
	// The parser's own scanner misses no token.
	scanner, lexer, last := parse.NewScanner(strings.NewReader(text), file), &parse.Lexer{}, 0
	for last != parse.EOF {
		token, err := scanner.Scan(lexer)
		if err != nil {
			break // what can be parsed can be scanned
		}
		switch {
		case last == parse.TLocal:
			w.locals = append(w.locals, token.Type == parse.TFunction)
		// The parser accepts several.
		case (last == ',' || last == ';') && token.Type == ',' || last == ',' && token.Type == ';':
			if w.err == nil {
				w.err = &luaerr.ScriptError{File: file, Line: token.Pos.Line, Column: token.Pos.Column, Message: fmt.Sprintf("syntax error at %q", token.Str)}
			}
		}
		last = token.Type
	}
	return w
}

// preventLocalFunction keeps the compiler from compiling a statement as a local function.
func preventLocalFunction(s *ast.LocalAssignStmt) {
	if len(s.Names) != 1 || len(s.Exprs) != 1 {
		return
	}
	if _, ok := s.Exprs[0].(*ast.FunctionExpr); ok {
		none := &ast.NilExpr{}
		none.SetLine(s.Line())
		s.Exprs = append(s.Exprs, none)
	}
}

// padIterator gives a loop a function, a state and a control variable. The compiler would leave old
// values in the registers of those that are missing.
func padIterator(s *ast.GenericForStmt) {
	const all = 3
	if last := s.Exprs[len(s.Exprs)-1]; !hasManyValues(last) {
		for len(s.Exprs) < all {
			none := &ast.NilExpr{}
			none.SetLine(last.Line())
			s.Exprs = append(s.Exprs, none)
		}
		return
	}
	for len(s.Names) < min(len(s.Exprs), all) { // else a call would give all its results
		s.Names = append(s.Names, nameTemp)
	}
}

// evaluateIteratorFirst evaluates the expressions of a loop into locals first, if a call stands
// before a called, indexed or chosen value in them: the compiler would take the registers of the
// loop for the results of that call.
func evaluateIteratorFirst(s *ast.GenericForStmt) ast.Stmt {
	if !slices.ContainsFunc(s.Exprs, mayCallBefore) {
		return s
	}
	local := &ast.LocalAssignStmt{Exprs: s.Exprs}
	s.Exprs = nil
	for range 3 {
		s.Exprs = append(s.Exprs, addLocal(local, s))
	}
	block := &ast.DoBlockStmt{Stmts: []ast.Stmt{local, s}}
	for _, stmt := range []ast.Stmt{local, block} {
		stmt.SetLine(s.Line())
		stmt.SetLastLine(s.LastLine())
	}
	return block
}

// mayCallBefore reports whether a call may stand before the value of an expression.
func mayCallBefore(e ast.Expr) bool {
	call, ok := e.(*ast.FuncCallExpr)
	switch {
	case !ok:
		return !isSimple(e)
	case call.Func != nil:
		return !isSimple(call.Func)
	}
	return !isSimple(call.Receiver)
}

// isSimple reports whether an expression is a name, with fields, or simpler.
func isSimple(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.IdentExpr, *ast.Comma3Expr, *ast.FunctionExpr, *ast.NilExpr, *ast.TrueExpr, *ast.FalseExpr, *ast.NumberExpr, *ast.StringExpr:
		return true
	case *ast.AttrGetExpr:
		return isSimple(e.Object) && isSimple(e.Key)
	}
	return false
}

func hasManyValues(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.FuncCallExpr:
		return !e.AdjustRet
	case *ast.Comma3Expr:
		return !e.AdjustRet
	}
	return false
}

func (w *rewriter) checkDepth(depth int, at ast.PositionHolder) bool {
	if depth > maxDepth && w.err == nil {
		message := fmt.Sprintf("nested deeper than %d (of operators or calls in a row %d count as one level)", maxNesting, perLevel)
		w.err = &luaerr.ScriptError{File: w.file, Line: at.Line(), Message: message}
	}
	return w.err != nil
}

func (w *rewriter) stmts(list []ast.Stmt, depth int) {
	for i := range list {
		if w.checkDepth(depth, list[i]) {
			return
		}
		w.stmt(&list[i], depth)
	}
}

func (w *rewriter) stmt(at *ast.Stmt, depth int) {
	switch s := (*at).(type) {
	case *ast.AssignStmt:
		w.exprs(s.Lhs, depth)
		w.exprs(s.Rhs, depth)
		adaptAssignedOperators(s)
		*at = assignViaLocals(s)
	case *ast.LocalAssignStmt:
		function := w.locals[0]
		w.locals = w.locals[1:]
		w.exprs(s.Exprs, depth)
		if !function {
			preventLocalFunction(s)
		}
	case *ast.FuncCallStmt:
		w.expr(&s.Expr, depth)
	case *ast.DoBlockStmt:
		w.stmts(s.Stmts, depth+perLevel)
	case *ast.WhileStmt:
		w.condition(&s.Condition, depth)
		w.body(&s.Stmts, depth)
	case *ast.RepeatStmt:
		w.body(&s.Stmts, depth)
		w.condition(&s.Condition, depth)
	case *ast.IfStmt:
		w.ifs(s, depth)
	case *ast.NumberForStmt:
		w.expr(&s.Init, depth)
		w.expr(&s.Limit, depth)
		w.expr(&s.Step, depth)
		coerceBounds(s)
		w.body(&s.Stmts, depth)
	case *ast.GenericForStmt:
		w.exprs(s.Exprs, depth)
		padIterator(s)
		w.body(&s.Stmts, depth)
		*at = evaluateIteratorFirst(s)
	case *ast.FuncDefStmt:
		if s.Name.Func == nil {
			defineMethodAsField(s)
		}
		w.expr(&s.Name.Func, depth)
		w.stmts(s.Func.Stmts, depth+perLevel)
	case *ast.ReturnStmt:
		w.exprs(s.Exprs, depth)
	}
}

// defineMethodAsField writes function object:name(…) as function object.name(self, …), whose name a
// constantPool can hide.
func defineMethodAsField(s *ast.FuncDefStmt) {
	key := &ast.StringExpr{Value: s.Name.Method}
	field := &ast.AttrGetExpr{Object: s.Name.Receiver, Key: key}
	for _, e := range []ast.Expr{key, field} {
		e.SetLine(s.Name.Receiver.Line())
		e.SetLastLine(s.Name.Receiver.LastLine())
	}
	s.Name = &ast.FuncName{Func: field}
	s.Func.ParList.Names = append([]string{"self"}, s.Func.ParList.Names...)
}

// body rewrites the body of a loop. It puts a statement before a body that begins with a jump: the
// compiler would take the distance of that jump for a label when a later one leads back to the
// start of the loop.
func (w *rewriter) body(list *[]ast.Stmt, depth int) {
	w.stmts(*list, depth+perLevel)
	if len(*list) == 0 || !beginsWithJump((*list)[0]) {
		return
	}
	first := &ast.LocalAssignStmt{Names: []string{nameTemp}, Exprs: []ast.Expr{newBoolean(false, (*list)[0])}}
	first.SetLine((*list)[0].Line())
	*list = append([]ast.Stmt{first}, *list...)
}

func beginsWithJump(s ast.Stmt) bool {
	switch s := s.(type) {
	case *ast.AssignStmt, *ast.LocalAssignStmt, *ast.FuncCallStmt, *ast.FuncDefStmt, *ast.ReturnStmt, *ast.NumberForStmt, *ast.GenericForStmt:
		return false
	case *ast.IfStmt:
		known, _ := literalTruth(s.Condition)
		return known
	}
	return true
}

// ifs follows a chain of elseif, which the parser nests, at one depth.
func (w *rewriter) ifs(s *ast.IfStmt, depth int) {
	for {
		w.condition(&s.Condition, depth)
		w.stmts(s.Then, depth+perLevel)
		if len(s.Else) != 1 {
			break
		}
		next, ok := s.Else[0].(*ast.IfStmt)
		if !ok {
			break
		}
		s = next
	}
	w.stmts(s.Else, depth+perLevel)
}

func (w *rewriter) condition(at *ast.Expr, depth int) {
	w.expr(at, depth)
	if w.err == nil {
		*at = fold(*at)
	}
}

func (w *rewriter) exprs(list []ast.Expr, depth int) {
	for i := range list {
		w.expr(&list[i], depth)
	}
}

func (w *rewriter) expr(at *ast.Expr, depth int) {
	if *at == nil || w.checkDepth(depth, *at) {
		return
	}
	row := depth + 1
	depth += perLevel
	switch e := (*at).(type) {
	case *ast.IdentExpr:
		if w.fields[e.Value] {
			*at = fieldOfGlobal(e)
		}
	case *ast.AttrGetExpr:
		w.expr(&e.Object, row)
		w.expr(&e.Key, depth)
	case *ast.NumberExpr:
		n, ok := luatext.ParseNumber(e.Value, 10)
		if !ok && w.err == nil {
			w.err = &luaerr.ScriptError{File: w.file, Line: e.Line(), Message: fmt.Sprintf("malformed number %q", strings.TrimSpace(e.Value))}
		}
		e.Value = formatNumeral(float64(n))
	case *ast.TableExpr:
		for _, field := range e.Fields {
			w.expr(&field.Key, depth)
			w.expr(&field.Value, depth)
			if field.Key != nil { // else all results of a last call would become elements
				field.Value = toSingleValue(field.Value)
			}
		}
		isCall := hasField(e, "_tool")
		if *at = splitElements(e); isCall {
			*at = newCall(CallAt, e, &ast.NumberExpr{Value: fmt.Sprint(e.Line())}, *at)
		}
	case *ast.FuncCallExpr:
		w.expr(&e.Func, row)
		w.expr(&e.Receiver, row)
		w.exprs(e.Args, depth)
		w.splitArguments(e)
	case *ast.LogicalOpExpr:
		w.expr(&e.Lhs, row)
		w.expr(&e.Rhs, depth)
		*at = foldTop(e)
	case *ast.RelationalOpExpr:
		w.expr(&e.Lhs, row)
		w.expr(&e.Rhs, depth)
	case *ast.ArithmeticOpExpr:
		if e.Operator == "^" { // it associates to the right
			row = depth
		}
		w.expr(&e.Lhs, row)
		w.expr(&e.Rhs, depth)
		// At each operator the compiler looks for literals in all that stand before it.
		if _, ok := e.Lhs.(*ast.ArithmeticOpExpr); ok && row%perLevel == 0 {
			e.Lhs = newCall(CallSame, e, e.Lhs)
		}
		*at = foldNumbers(e)
	case *ast.UnaryMinusOpExpr:
		w.expr(&e.Expr, depth)
		if *at = foldNumbers(e); *at == e {
			*at = newCall(CallMinus, e, toSingleValue(e.Expr))
		}
	case *ast.UnaryNotOpExpr:
		w.expr(&e.Expr, depth)
	case *ast.UnaryLenOpExpr:
		w.expr(&e.Expr, depth)
		*at = newCall(CallLength, e, toSingleValue(e.Expr))
	case *ast.FunctionExpr:
		w.stmts(e.Stmts, depth)
	case *ast.StringConcatOpExpr:
		w.concat(at, e, depth)
	}
}

// concat makes one call of a chain a .. b .. c, which associates to the right.
func (w *rewriter) concat(at *ast.Expr, e *ast.StringConcatOpExpr, depth int) {
	var args []ast.Expr
	var rest ast.Expr = e
	for {
		c, ok := rest.(*ast.StringConcatOpExpr)
		if !ok {
			break
		}
		args = append(args, c.Lhs)
		rest = c.Rhs
	}
	args = append(args, rest)
	if w.checkDepth(len(args)*perLevel, e) {
		return
	}
	w.exprs(args, depth)
	args[len(args)-1] = toSingleValue(args[len(args)-1])
	*at = newCall(CallConcat, e, args...)
}

// maxArguments is the number of arguments that a call may be written with, as in Lua 5.1.
const maxArguments = 250

// splitArguments has long lists of arguments collected in parts: the compiler has 200 registers for
// all that a function holds at once.
func (w *rewriter) splitArguments(call *ast.FuncCallExpr) {
	const part = 50
	if len(call.Args) > maxArguments && w.err == nil {
		w.err = &luaerr.ScriptError{File: w.file, Line: call.Line(), Message: fmt.Sprintf("a call has %d arguments (at most %d)", len(call.Args), maxArguments)}
	}
	if len(call.Args) <= 2*part {
		return
	}
	var packed []ast.Expr
	for args := range slices.Chunk(call.Args, part) {
		if len(packed) < (len(call.Args)-1)/part { // else all values of a last call are arguments
			args[len(args)-1] = toSingleValue(args[len(args)-1])
		}
		packed = append(packed, newCall(CallPack, args[0], args...))
	}
	unpack := newCall(CallUnpack, call, packed...).(*ast.FuncCallExpr)
	unpack.AdjustRet = false
	call.Args = []ast.Expr{unpack}
}

// toSingleValue limits an expression to one value where it stands last in a list.
func toSingleValue(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.FuncCallExpr:
		e.AdjustRet = true
	case *ast.Comma3Expr:
		e.AdjustRet = true
	}
	return e
}

func newCall(name string, at ast.PositionHolder, args ...ast.Expr) ast.Expr {
	f := &ast.IdentExpr{Value: name}
	f.SetLine(at.Line())
	for _, arg := range args {
		if arg.Line() == 0 {
			arg.SetLine(at.Line())
		}
	}
	call := &ast.FuncCallExpr{Func: f, Args: args, AdjustRet: true}
	call.SetLine(at.Line())
	call.SetLastLine(max(at.Line(), at.LastLine()))
	return call
}

func hasField(e *ast.TableExpr, name string) bool {
	for _, field := range e.Fields {
		if key, ok := field.Key.(*ast.StringExpr); ok && key.Value == name {
			return true
		}
	}
	return false
}

// assignViaLocals evaluates the right side into new locals first, wherever it would be compiled
// into the register of a variable that is still to be read: for a logical expression, for a call or
// ... that is not the last of several expressions, and for several variables at once, so that a, b
// = b, a swaps. The tables and keys of assigned fields are evaluated first too, so that t.next, t =
// a, a links the old table. Each variable is assigned by itself, the last one first, since together
// they would get each other's values.
func assignViaLocals(s *ast.AssignStmt) ast.Stmt {
	needed, alone := len(s.Lhs) > 1, len(s.Lhs) == 1 && len(s.Rhs) == 1
	for _, e := range s.Rhs {
		switch e := e.(type) {
		case *ast.LogicalOpExpr:
			needed = true
		case *ast.FuncCallExpr:
			// Else the function would be loaded over the last parameter, if that is assigned.
			e.AdjustRet = e.AdjustRet && !alone
			needed = needed || !alone
		case *ast.Comma3Expr:
			// Else the locals after the assigned one would be cleared.
			e.AdjustRet = e.AdjustRet && !alone
			needed = needed || !alone
		}
	}
	if !needed {
		return s
	}
	local := &ast.LocalAssignStmt{}
	keep := func(e ...ast.Expr) ast.Expr {
		local.Exprs = append(local.Exprs, e...)
		return addLocal(local, s)
	}
	for i, e := range s.Lhs {
		if field, ok := e.(*ast.AttrGetExpr); ok {
			for _, part := range []*ast.Expr{&field.Object, &field.Key} {
				if !isUnaffected(*part, s.Lhs[i+1:]) {
					*part = keep(*part)
				}
			}
		}
	}
	assigns := make([]ast.Stmt, len(s.Lhs))
	for i, e := range s.Lhs {
		assigns[len(s.Lhs)-1-i] = &ast.AssignStmt{Lhs: []ast.Expr{e}, Rhs: []ast.Expr{keep()}}
	}
	local.Exprs = append(local.Exprs, s.Rhs...)
	block := &ast.DoBlockStmt{Stmts: append([]ast.Stmt{local}, assigns...)}
	for _, stmt := range append(block.Stmts, block) {
		stmt.SetLine(s.Line())
		stmt.SetLastLine(s.Line())
	}
	return block
}

// addLocal adds a local to a statement, and returns an expression that reads it.
func addLocal(local *ast.LocalAssignStmt, at ast.PositionHolder) ast.Expr {
	temp := &ast.IdentExpr{Value: fmt.Sprintf("%s%d", nameTemp, len(local.Names))}
	temp.SetLine(at.Line())
	local.Names = append(local.Names, temp.Value)
	return temp
}

// isUnaffected reports whether an expression has the same value whatever is assigned.
func isUnaffected(e ast.Expr, assigned []ast.Expr) bool {
	variable, ok := e.(*ast.IdentExpr)
	if !ok {
		known, _ := literalTruth(e)
		return known
	}
	return !slices.ContainsFunc(assigned, func(e ast.Expr) bool {
		other, ok := e.(*ast.IdentExpr)
		return ok && other.Value == variable.Value
	})
}
