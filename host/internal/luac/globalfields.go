package luac

import (
	"strings"

	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
)

// CompiledGlobals is the number of globals of a file that are compiled as such. The compiler
// searches the constants of a function for each name, and a [constantPool] can't hide names, so
// further globals are compiled as fields: name as getfenv().name.
const CompiledGlobals = 512

// globalFields returns the globals beyond the first CompiledGlobals that the top level of a file
// assigns. Other globals stay as they are, so that [AccidentalGlobal] finds assignments to them in
// the compiled code.
func globalFields(chunk []ast.Stmt, text string) map[string]bool {
	var assigned []ast.Expr
	for _, stmt := range chunk {
		switch stmt := stmt.(type) {
		case *ast.AssignStmt:
			assigned = append(assigned, stmt.Lhs...)
		case *ast.FuncDefStmt:
			assigned = append(assigned, stmt.Name.Func)
		}
	}
	if len(assigned) <= CompiledGlobals { // nearly always, and the file need not be scanned for locals
		return nil
	}
	seen, compiled, further := declaredNames(text), 0, map[string]bool{}
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

// declaredNames returns all names that are local anywhere in a file.
func declaredNames(text string) map[string]bool {
	declared := map[string]bool{"self": true, "arg": true} // locals without a declaration
	// The parser's own scanner, so that no token is missed.
	scanner, lexer, last := parse.NewScanner(strings.NewReader(text), ""), &parse.Lexer{}, 0
	declaring, parameters := false, false // the next names are declared; parameters follow the next parenthesis
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
	field := &ast.AttrGetExpr{Object: callOf(CallGlobal, name), Key: key}
	field.SetLine(name.Line())
	field.SetLastLine(name.LastLine())
	return field
}
