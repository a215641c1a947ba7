package luac

import (
	lua "github.com/yuin/gopher-lua"
)

// ReturnsNothing tells of a function of a script that it comes to its end without a value on
// some way, and gives one back on none: what it returns is nothing at all, or nil with the
// reason of a failure. What calls another function as it returns may give what that gives.
func ReturnsNothing(fn *lua.LFunction) bool {
	if fn.IsG || fn.Proto == nil {
		return false
	}
	code, empty := fn.Proto.Code, false
	for at, instruction := range code {
		switch {
		case opcode(instruction) != lua.OP_RETURN:
		case returned(instruction) != 0 && !returnsFailure(code, at):
			return false
		case returned(instruction) == 0 && !isPast(fn.Proto, at):
			empty = true
		}
	}
	return empty
}

// isPast tells of a return that no way leads to it: what stands before it returns as well, or
// raises an error, and nothing jumps to it.
func isPast(proto *lua.FunctionProto, at int) bool {
	if at == 0 || jumpedTo(proto.Code, at, at) {
		return false
	}
	before := proto.Code[at-1]
	return opcode(before) == lua.OP_RETURN || opcode(before) == lua.OP_CALL && callsError(proto, at-1)
}

// callsError tells of a call whether it is one of error.
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

// operandA is the register that an instruction is about.
func operandA(instruction uint32) int { return int(instruction>>18) & 0xff }

// returned is how many values a return gives; -1 for those that a call gave.
func returned(instruction uint32) int { return int(instruction&0x1ff) - 1 }

// returnsFailure tells of a return whether it is one of nil and a reason: whether the first of
// its two registers got nil last.
func returnsFailure(code []uint32, at int) bool {
	if returned(code[at]) != 2 {
		return false
	}
	set := at - 1
	for set >= 0 && operandA(code[set]) != operandA(code[at]) {
		set--
	}
	return set >= 0 && opcode(code[set]) == lua.OP_LOADNIL && !jumpedTo(code, set+1, at)
}

// jumpedTo tells whether a jump leads to one of some instructions, the first and the last of
// them given.
func jumpedTo(code []uint32, first, last int) bool {
	for from, instruction := range code {
		switch opcode(instruction) {
		case lua.OP_JMP, lua.OP_FORLOOP, lua.OP_FORPREP:
			if target := from + 1 + jump(instruction); target >= first && target <= last {
				return true
			}
		}
	}
	return false
}

// jump is how far a jump leads, from the instruction after it.
func jump(instruction uint32) int { return operandBx(instruction) - (maxConstants-1)>>1 }
