package luac

import (
	"fmt"
	"math"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
)

// The compiler searches the constants of a function from the first one for each literal, so that
// the time for a file with many different ones grows with their square. A constantPool hides most
// of them: in a function with more than unpooledConstants, further literals are replaced by one
// placeholder before the compiler runs, and put back into the instructions that load it afterwards.
// The number of the constant travels in the line of the literal, which the compiler copies to each
// instruction for the literal.
type constantPool struct {
	numbers map[lua.LValue]int // number of each pooled constant
	values  []lua.LValue       // pooled constants by number
}

const (
	// unpooledConstants is the number of literals of a function that the compiler sees unchanged.
	// An instruction can hold the number of one of the first 256 constants in place of a register,
	// so the placeholder must come after them.
	unpooledConstants = 512
	operandConstants  = 256
	maxConstants      = 1 << 18 // of a function, by the size of an operand

	placeholderText   = "\x00constant"
	placeholderNumber = 1.2345678987654321e-300

	// negativeZero stands for -0 until the compiler is done, since it has one constant for -0 and
	// 0.
	negativeZero = 1.2345678987654322e-300

	lineBits = 32 // bits of a source position; the number of a constant is above them
	lineMask = 1<<lineBits - 1
)

func newConstantPool() *constantPool { return &constantPool{numbers: map[lua.LValue]int{}} }

// replaceLiterals replaces literals of a chunk and of the functions in it.
func (p *constantPool) replaceLiterals(chunk []ast.Stmt, depth int) {
	seen := map[lua.LValue]bool{}
	Walker{
		function: func(body []ast.Stmt, depth int) { p.replaceLiterals(body, depth) },
		See: func(e ast.Expr) {
			switch e := e.(type) {
			case *ast.FuncCallExpr: // the compiler records the name
				if field, ok := e.Func.(*ast.AttrGetExpr); ok {
					if key, ok := field.Key.(*ast.StringExpr); ok {
						p.replaceLiteral(e, lua.LString(key.Value), seen)
					}
				} else if e.Func == nil && p.replaceLiteral(e, lua.LString(e.Method), seen) {
					e.Method = placeholderText
				}
			case *ast.StringExpr:
				if p.replaceLiteral(e, lua.LString(e.Value), seen) {
					e.Value = placeholderText
				}
			case *ast.NumberExpr:
				n, ok := literalNumber(e)
				// NaN can't be a key of a map.
				if ok && !math.IsNaN(n) && !(n == 0 && math.Signbit(n)) && p.replaceLiteral(e, lua.LNumber(n), seen) {
					e.Value = formatNumeral(placeholderNumber)
				}
			}
		},
	}.Stmts(chunk, depth)
}

// replaceLiteral reports whether a literal is replaced, and stores the number of its value in its
// line.
func (p *constantPool) replaceLiteral(e ast.Expr, value lua.LValue, seen map[lua.LValue]bool) bool {
	if len(seen) < unpooledConstants {
		seen[value] = true
	}
	if seen[value] || e.Line() > lineMask {
		return false
	}
	number, ok := p.numbers[value]
	if !ok {
		number = len(p.values)
		p.numbers[value] = number
		p.values = append(p.values, value)
	}
	e.SetLine(e.Line() | (number+1)<<lineBits)
	return true
}

// restoreNegativeZero replaces each negativeZero by -0.
func restoreNegativeZero(proto *lua.FunctionProto) {
	for i, v := range proto.Constants {
		if v == lua.LNumber(negativeZero) {
			proto.Constants[i] = lua.LNumber(math.Copysign(0, -1))
		}
	}
	for _, inner := range proto.FunctionPrototypes {
		restoreNegativeZero(inner)
	}
}

// restore gives a function, and the functions in it, the constants back that were taken. ok is
// false if so few of the first literals became constants that an instruction may hold the
// placeholder itself.
func (p *constantPool) restore(proto *lua.FunctionProto, most int) (ok bool, err error) {
	if len(p.values) == 0 {
		return true, nil
	}
	isPlaceholder := func(v lua.LValue) bool {
		return v == lua.LString(placeholderText) || v == lua.LNumber(placeholderNumber)
	}
	for i, call := range proto.DbgCalls {
		if position := proto.DbgSourcePositions[call.Pc]; call.Name == placeholderText && position > lineMask {
			proto.DbgCalls[i].Name = p.values[position>>lineBits-1].String()
		}
	}
	at := map[int]int{} // index among the function's constants of each pooled constant
	for pc, position := range proto.DbgSourcePositions {
		if position <= lineMask {
			continue
		}
		proto.DbgSourcePositions[pc] = position & lineMask
		instruction := proto.Code[pc]
		if int(instruction>>26) != lua.OP_LOADK || !isPlaceholder(proto.Constants[operandBx(instruction)]) {
			continue
		}
		if operandBx(instruction) < operandConstants {
			return false, nil
		}
		pooled := position>>lineBits - 1
		place, ok := at[pooled]
		if !ok {
			place = len(proto.Constants)
			at[pooled] = place
			proto.Constants = append(proto.Constants, p.values[pooled])
		}
		proto.Code[pc] = instruction&^uint32(maxConstants-1) | uint32(place)
	}
	for i, v := range proto.Constants {
		if i < operandConstants && isPlaceholder(v) {
			return false, nil
		}
	}
	if len(proto.Constants) > most {
		return false, fmt.Errorf("a function has more than %d different constants: split it", most)
	}
	for _, inner := range proto.FunctionPrototypes {
		if ok, err := p.restore(inner, most); !ok || err != nil {
			return ok, err
		}
	}
	return true, nil
}
