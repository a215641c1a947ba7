package luac

import lua "github.com/yuin/gopher-lua"

// ReturnsNothing reports whether a function of a script may end without a value and never returns
// one: each of its returns gives nothing, or nil with the reason of a failure. A call of another
// function in a return may give a value.
func ReturnsNothing(fn *lua.LFunction) bool {
	if fn.IsG || fn.Proto == nil {
		return false
	}
	code, empty := fn.Proto.Code, false
	for at, instruction := range code {
		switch {
		case opcode(instruction) != lua.OP_RETURN:
		case returnCount(instruction) != 0 && !returnsFailure(code, at):
			return false
		case returnCount(instruction) == 0 && !isUnreachable(fn.Proto, at):
			empty = true
		}
	}
	return empty
}

// isUnreachable reports whether a return is unreachable: the instruction before it returns or
// raises an error, and nothing jumps to it.
func isUnreachable(proto *lua.FunctionProto, at int) bool {
	if at == 0 || isJumpTarget(proto.Code, at, at) {
		return false
	}
	before := proto.Code[at-1]
	return opcode(before) == lua.OP_RETURN || opcode(before) == lua.OP_CALL && callsError(proto, at-1)
}

// callsError reports whether a call is one of the function error.
func callsError(proto *lua.FunctionProto, at int) bool {
	function := operandA(proto.Code[at])
	for at--; at >= 0; at-- {
		if instruction := proto.Code[at]; operandA(instruction) == function {
			return opcode(instruction) == lua.OP_GETGLOBAL && proto.Constants[operandBx(instruction)] == lua.LString("error")
		}
	}
	return false
}

func opcode(instruction uint32) int { return int(instruction >> 26) }

// operandA returns the register that an instruction is about.
func operandA(instruction uint32) int { return int(instruction>>18) & 0xff }

// returnCount returns the number of values that a return gives; -1 for the values of a call.
func returnCount(instruction uint32) int { return int(instruction&0x1ff) - 1 }

// returnsFailure reports whether a return gives nil and a reason: whether the first of its two
// registers was last set to nil.
func returnsFailure(code []uint32, at int) bool {
	if returnCount(code[at]) != 2 {
		return false
	}
	set := at - 1
	for set >= 0 && operandA(code[set]) != operandA(code[at]) {
		set--
	}
	return set >= 0 && opcode(code[set]) == lua.OP_LOADNIL && !isJumpTarget(code, set+1, at)
}

// isJumpTarget reports whether a jump leads to one of the instructions from first to last.
func isJumpTarget(code []uint32, first, last int) bool {
	for from, instruction := range code {
		switch opcode(instruction) {
		case lua.OP_JMP, lua.OP_FORLOOP, lua.OP_FORPREP:
			if target := from + 1 + jumpDistance(instruction); target >= first && target <= last {
				return true
			}
		}
	}
	return false
}

// jumpDistance returns the distance of a jump, from the instruction after it.
func jumpDistance(instruction uint32) int { return operandBx(instruction) - (maxConstants-1)>>1 }
