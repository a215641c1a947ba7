package luac

import (
	"strings"

	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
)

// CompiledGlobals is how many globals of a file the compiler sees as such. It searches the
// constants of a function for the name of each, and no [constantPool] can take a name out of
// its sight, so the further ones are written as fields: name as getfenv().name.
const CompiledGlobals = 512

// globalFields are the globals beyond the first compiledGlobals that the top level of a file
// assigns. Others stay as they are: whoever looks for globals that a function assigns by
// accident finds them in what the compiler made.
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
	if len(assigned) <= CompiledGlobals { // as in nearly all files, which need not be scanned for locals
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

// declaredNames are all names that are local anywhere in a file.
func declaredNames(text string) map[string]bool {
	declared := map[string]bool{"self": true, "arg": true} // which no declaration names
	// The parser's own scanner, so that no token is missed.
	scanner, lexer, last := parse.NewScanner(strings.NewReader(text), ""), &parse.Lexer{}, 0
	declaring, parameters := false, false // names come next; a function's parameters come with the next parenthesis
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
