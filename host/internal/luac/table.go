package luac

import (
	"slices"
	"strconv"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
)

// splitElements gives each element of a table the place that it has in the source. The compiler
// sets fifty elements at a time. If a field with a key follows, it sets the last fifty once more,
// from registers that have changed by then; if the results of a last call alone follow the fifty,
// it sets them over the first elements; and it has no room for more than 25,550. So the table ends
// there, and a call sets the rest. All values have been computed by then: only an error for a nil
// key comes later than it would.
func splitElements(e *ast.TableExpr) ast.Expr {
	n, end := countCompiledElements(e.Fields)
	if end == len(e.Fields) {
		return e
	}
	table, rest, tail := &ast.TableExpr{Fields: e.Fields[:end:end]}, e.Fields[end:], []ast.Expr(nil)
	if field := table.Fields[end-1]; field.Key == nil {
		field.Value = toSingleValue(field.Value)
	}
	if last := rest[len(rest)-1]; last.Key == nil && hasManyValues(last.Value) {
		rest, tail = rest[:len(rest)-1], []ast.Expr{last.Value}
	}
	var parts []ast.Expr
	for fields := range slices.Chunk(rest, maxInPlace/2) {
		var layout []byte
		values := &ast.TableExpr{}
		for _, field := range fields {
			kind := byte(layoutElement)
			if field.Key != nil {
				kind = layoutKey
				values.Fields = append(values.Fields, &ast.Field{Value: field.Key})
			}
			layout = append(layout, kind)
			values.Fields = append(values.Fields, &ast.Field{Value: toSingleValue(field.Value)})
		}
		parts = append(parts, &ast.StringExpr{Value: string(layout)}, values)
	}
	table.SetLine(e.Line())
	table.SetLastLine(e.LastLine())
	args := append([]ast.Expr{table, newNumber(n), newNumber(len(parts) / 2)}, parts...)
	return newCall(CallFill, e, append(args, tail...)...)
}

// Elements that the compiler sets at once, and the most that it is left to set.
const (
	putInAtOnce = 50
	maxInPlace  = 500 * putInAtOnce
)

// The kind of each field in a layout: the value of an element, or a key and a value.
const (
	layoutElement = 'e'
	layoutKey     = 'k'
)

// countCompiledElements returns the number of fields that the compiler handles correctly, and the
// number of elements among them.
func countCompiledElements(fields []*ast.Field) (elements, end int) {
	for i, field := range fields {
		full := elements > 0 && elements%putInAtOnce == 0
		switch {
		case field.Key != nil && full, field.Key == nil && elements == maxInPlace, full && i == len(fields)-1 && hasManyValues(field.Value):
			return elements, i
		case field.Key == nil:
			elements++
		}
	}
	return elements, len(fields)
}

func newNumber(n int) ast.Expr { return &ast.NumberExpr{Value: strconv.Itoa(n)} }

// Budget counts the work of [FillTable]. Charge raises in L once there is too much.
type Budget interface {
	Charge(L *lua.LState, units int)
}

// FillTable is the function behind CallFill. As compiled code does, it sets a key at once and
// elements fifty at a time.
func FillTable(L *lua.LState, budget Budget) int {
	table, n, parts := L.CheckTable(1), L.CheckInt(2), L.CheckInt(3)
	var pending []lua.LValue
	put := func() {
		for i, v := range pending {
			table.RawSetInt(n+i+1, v)
		}
		n, pending = n+len(pending), pending[:0]
	}
	at := 4
	for range parts {
		layout, values, i := L.CheckString(at), L.CheckTable(at+1), 1
		budget.Charge(L, len(layout))
		for _, kind := range layout {
			if len(pending) == putInAtOnce {
				put()
			}
			if kind == layoutKey {
				L.SetTable(table, values.RawGetInt(i), values.RawGetInt(i+1))
				i += 2
				continue
			}
			pending = append(pending, values.RawGetInt(i))
			i++
		}
		at += 2
	}
	budget.Charge(L, max(0, L.GetTop()-at))
	for ; at <= L.GetTop(); at++ {
		pending = append(pending, L.Get(at))
	}
	put()
	L.Push(table)
	return 1
}
