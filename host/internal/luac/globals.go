package luac

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"

	"obelus/host/internal/luaerr"
)

// CompiledGlobals is the number of globals of a file that are compiled as such. The compiler
// searches the constants of a function for each name, and a constantPool can't hide names, so
// further globals are compiled as fields: name as getfenv().name.
const CompiledGlobals = 512

// findGlobalFields returns the globals beyond the first CompiledGlobals that the top level of a
// file assigns. Other globals stay as they are, so that [AccidentalGlobal] finds assignments to
// them in the compiled code.
func findGlobalFields(chunk []ast.Stmt, text string) map[string]bool {
	var assigned []ast.Expr
	for _, stmt := range chunk {
		switch stmt := stmt.(type) {
		case *ast.AssignStmt:
			assigned = append(assigned, stmt.Lhs...)
		case *ast.FuncDefStmt:
			assigned = append(assigned, stmt.Name.Func)
		}
	}
	// So in nearly all files, which need not be scanned for locals.
	if len(assigned) <= CompiledGlobals {
		return nil
	}
	seen, compiled, further := findLocals(text), 0, map[string]bool{}
	for _, e := range assigned {
		name, ok := e.(*ast.IdentExpr)
		if !ok || seen[name.Value] {
			continue
		}
		seen[name.Value] = true
		if compiled++; compiled > CompiledGlobals {
			further[name.Value] = true
		}
	}
	return further
}

// findLocals returns all names that are local anywhere in a file.
func findLocals(text string) map[string]bool {
	declared := map[string]bool{"self": true, "arg": true} // locals without a declaration
	// The parser's own scanner, so that no token is missed.
	scanner, lexer, last := parse.NewScanner(strings.NewReader(text), ""), &parse.Lexer{}, 0
	// The next names are declared; parameters follow the next parenthesis.
	declaring, parameters := false, false
	for last != parse.EOF {
		token, err := scanner.Scan(lexer)
		if err != nil {
			break // what can be parsed can be scanned
		}
		switch token.Type {
		case parse.TLocal, parse.TFor:
			declaring = true
		case parse.TFunction:
			declaring, parameters = last == parse.TLocal, true
		case '(':
			declaring, parameters = parameters, false
		case parse.TIdent:
			if declaring = declaring && last != parse.TIdent; declaring {
				declared[token.Str] = true
			}
		case ',':
		default:
			declaring = false
		}
		last = token.Type
	}
	return declared
}

func fieldOfGlobal(name *ast.IdentExpr) ast.Expr {
	key := &ast.StringExpr{Value: name.Value}
	key.SetLine(name.Line())
	field := &ast.AttrGetExpr{Object: newCall(CallGlobal, name), Key: key}
	field.SetLine(name.Line())
	field.SetLastLine(name.LastLine())
	return field
}

// AccidentalGlobal returns an error for the first assignment, inside a function, to a global that
// neither the file's top level assigns nor known has: most probably a forgotten local.
func AccidentalGlobal(file string, source []byte, proto *lua.FunctionProto, known map[string]bool) error {
	declared := map[string]bool{}
	eachGlobalSet(proto, func(name string, _ int) { declared[name] = true })
	e := &luaerr.ScriptError{File: file}
	for _, inner := range proto.FunctionPrototypes {
		findAccidentalGlobal(inner, declared, known, e)
	}
	if e.Line == 0 {
		return nil
	}
	return luaerr.WithSource(e, trimPreamble(string(source)))
}

func findAccidentalGlobal(proto *lua.FunctionProto, declared, known map[string]bool, e *luaerr.ScriptError) {
	eachGlobalSet(proto, func(name string, line int) {
		if declared[name] || known[name] || e.Line > 0 && e.Line <= line {
			return
		}
		e.Line = line
		e.Message = "a function assigns the global " + name + ", which this file does not declare: make it local, or give it a value at the top level"
	})
	for _, inner := range proto.FunctionPrototypes {
		findAccidentalGlobal(inner, declared, known, e)
	}
}

// eachGlobalSet calls see for the globals that a function itself assigns.
func eachGlobalSet(proto *lua.FunctionProto, see func(name string, line int)) {
	EachGlobal(proto, lua.OP_SETGLOBAL, see)
}

// EachGlobal calls see for each global on which a function itself does an operation,
// lua.OP_GETGLOBAL or lua.OP_SETGLOBAL.
func EachGlobal(proto *lua.FunctionProto, operation int, see func(name string, line int)) {
	for i, instruction := range proto.Code {
		if int(instruction>>26) == operation {
			see(proto.Constants[operandBx(instruction)].String(), proto.DbgSourcePositions[i])
		}
	}
}

// AddAssignedGlobals adds the globals that a function and the functions in it assign to names.
func AddAssignedGlobals(proto *lua.FunctionProto, names map[string]bool) {
	eachGlobalSet(proto, func(name string, _ int) { names[name] = true })
	for _, inner := range proto.FunctionPrototypes {
		AddAssignedGlobals(inner, names)
	}
}
