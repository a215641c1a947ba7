package host

import lua "github.com/yuin/gopher-lua"

// returnsNothing tells of a function of a script that no way through it gives a value back:
// what it returns is nothing at all, or nil with the reason of a failure. What calls another
// function as it returns may give what that gives.
func returnsNothing(fn *lua.LFunction) bool {
	if fn.IsG || fn.Proto == nil {
		return false
	}
	for at, instruction := range fn.Proto.Code {
		if opcode(instruction) == lua.OP_RETURN && returned(instruction) != 0 && !returnsFailure(fn.Proto.Code, at) {
			return false
		}
	}
	return true
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
	return set >= 0 && opcode(code[set]) == lua.OP_LOADNIL && !jumpedOver(code, set, at)
}

// jumpedOver tells whether some way leads past an instruction to a later one, or just before
// that: as in x or nil.
func jumpedOver(code []uint32, at, later int) bool {
	for from, instruction := range code[:at] {
		if target := from + 1 + jump(instruction); opcode(instruction) == lua.OP_JMP && target > at && target <= later {
			return true
		}
	}
	return false
}

// jump is how far a jump leads, from the instruction after it.
func jump(instruction uint32) int { return operandBx(instruction) - (maxConstants-1)>>1 }
