// Package explain puts the errors of gopher-lua and gopher-luar into Lua's words. It finds the
// names in a message by parsing the source again, which only errors need.
package explain

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"obelus/engine/lazyregexp"
	"obelus/engine/spell"
)

// The interpreter's messages name no variables. Message puts them into Lua's words and finds the
// expression in the source.

var (
	faultIndex   = lazyregexp.New(`^attempt to index a non-table object\((\w+)\) with key '(.*)'$`)
	faultArith   = lazyregexp.New(`^cannot perform (\w+) operation between (\w+) and (\w+)$`)
	faultConcat  = lazyregexp.New(`^attempt to concatenate a (\w+) value \(operand (\d+)\)$`)
	faultCompare = lazyregexp.New(`^attempt to compare (\w+) with (\w+)$`)
	faultFor     = lazyregexp.New(`^for statement (\w+) must be a number(?:, not (\w+))?$`)
	faultMinus   = lazyregexp.New(`^cannot perform unm operation between \w+ and (\w+)$`)
	faultLength  = lazyregexp.New(`^attempt to get the length of a (\w+) value$`)
	faultNoValue = lazyregexp.New(`^(\w+(?: or \w+)* expected, got )nil$`)
	faultOptions = lazyregexp.New(`^bad argument #(\d+) to (\S+|main chunk) \(((?s:.*))\)$`)

	// Messages of gopher-luar about objects of the program, in types of Go.
	faultUse   = lazyregexp.New(`^cannot use (?s:(nil|.* \(type (.+)\))) as type (.*)$`)
	faultField = lazyregexp.New(`^(?:type \S+ has no|unknown) field (\w+)$`)
)

// absent are the globals of Lua 5.1 that scripts do not have.
var absent = []string{
	"collectgarbage", "debug.getlocal", "debug.getupvalue", "debug.setlocal", "debug.setupvalue", "dofile", "io.popen", "loadfile", "module", "newproxy",
	"os.execute", "os.remove", "os.rename", "os.tmpname", "package.loadlib", "string.dump",
}

var (
	operators = map[string]string{"add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%", "pow": "^"}
)

// maxExplained is the length of the longest message that is rewritten. A longer one contains a text
// of the script.
const maxExplained = 4 << 10

// Message rewrites a message of the interpreter; names may be nil.
func Message(message string, names *Names) string {
	if len(message) > maxExplained {
		return message
	}
	if m := faultIndex().FindStringSubmatch(message); m != nil {
		if name := names.indexed(m[2]); slices.Contains(absent, name) {
			return name + " is not available in scripts"
		}
		name := names.indexed(m[2])
		return "attempt to index " + describeValue(name, m[1]) + ", key " + strconv.Quote(m[2]) + names.suggest(name)
	}
	if m := faultMinus().FindStringSubmatch(message); m != nil {
		return "attempt to perform arithmetic on " + describeValue(names.negated(), m[1])
	}
	if m := faultLength().FindStringSubmatch(message); m != nil {
		return "attempt to get the length of " + describeValue(names.measured(), m[1])
	}
	if m := faultArith().FindStringSubmatch(message); m != nil {
		left, right := names.operands(operators[m[1]])
		if m[2] != "number" && !(m[2] == "string" && m[3] != "number" && m[3] != "string") {
			return "attempt to perform arithmetic on " + describeValue(left, m[2])
		}
		return "attempt to perform arithmetic on " + describeValue(right, m[3])
	}
	if m := faultConcat().FindStringSubmatch(message); m != nil {
		n, _ := strconv.Atoi(m[2])
		return "attempt to concatenate " + describeValue(names.concatenated(n), m[1])
	}
	if m := faultCompare().FindStringSubmatch(message); m != nil {
		left, right := names.compared()
		return "attempt to compare " + describeValue(left, m[1]) + " with " + describeValue(right, m[2])
	}
	if m := faultFor().FindStringSubmatch(message); m != nil {
		text := "the " + m[1] + " of a for loop must be a number"
		if m[2] != "" {
			text += ", not " + describeValue(names.bound(m[1]), m[2])
		}
		return text
	}
	if m := faultOptions().FindStringSubmatch(message); m != nil {
		return names.badArgument(m[1], m[2], m[3])
	}
	if m := faultField().FindStringSubmatch(message); m != nil {
		return "the object has no field " + strconv.Quote(m[1])
	}
	switch message {
	case "attempt to call a non-function object":
		return names.explainCall()
	case "registry overflow":
		return "stack overflow"
	}
	return message
}

// badArgument returns the error of a function about an argument. The object of a method does not
// count, as in Lua.
func (n *Names) badArgument(number, function, why string) string {
	if m := faultUse().FindStringSubmatch(why); m != nil {
		why = luaTypeOf(m[3]) + " expected, got " + luaTypeOf(cmp.Or(m[2], "nil"))
	}
	if function == "main chunk" { // called by pcall, not by a line of Lua
		return "bad argument #" + number + " to ?: " + why
	}
	name := n.qualify(function)
	if i, err := strconv.Atoi(number); err == nil && name == function && n.isMethod(function) {
		if number = strconv.Itoa(i - 1); i == 1 {
			return "bad object of the method " + name + ": " + why
		}
	}
	// (anonymous): an object's field is set, or a key is looked up.
	if strings.HasPrefix(name, "(") {
		return "bad value: " + why
	}
	if m := faultNoValue().FindStringSubmatch(why); m != nil {
		why = m[1] + describeValue(n.argument(function, number), "nil")
		why = strings.Replace(why, "got a nil value", "got nil", 1)
	}
	return "bad argument #" + number + " to " + name + ": " + why
}

// describeValue returns "order.total (a nil value)", or "a nil value"; a literal stands for itself.
func describeValue(name, typ string) string {
	switch {
	case name == "" || name == typ:
		return "a " + typ + " value"
	case name[0] == '"' || name[0] >= '0' && name[0] <= '9':
		return name
	}
	return name + " (a " + typ + " value)"
}

// explainCall returns the error of calling a value that is not a function, in a call or in a loop
// with a table in the place of an iterator.
func (n *Names) explainCall() string {
	calls, iterators := n.calledNames(), n.iterators()
	call := agreed(calls)
	missing := slices.IndexFunc(calls, func(call string) bool { return slices.Contains(absent, call) })
	switch {
	case missing >= 0:
		return calls[missing] + " is not available in scripts"
	case len(iterators) == 0 && call != "":
		return "attempt to call " + call + ", which is not a function" + n.suggest(call)
	case len(iterators) != 1:
		return "attempt to call a value that is not a function"
	}
	remedy := "put pairs(…) or ipairs(…) around " + iterators[0]
	if slices.ContainsFunc(calls, func(call string) bool { return !n.declared(call) }) {
		return "attempt to call a value that is not a function: if it is what for … in was given, " + remedy
	}
	return "for … in wants a function: " + remedy
}

// suggest returns a hint to the global, or to the field of a library, that a name of a nil value
// may be a misspelling of; empty for none.
func (n *Names) suggest(name string) string {
	if n == nil {
		return ""
	}
	library, field, isField := strings.Cut(name, ".")
	near := ""
	if fields := n.env.Library(library); isField && fields != nil {
		slices.Sort(fields)
		if near = spell.Nearest(field, fields); near != "" {
			near = library + "." + near
		}
	} else if !isField {
		near = spell.Nearest(name, n.env.Globals())
	}
	if near == "" || near == name {
		return ""
	}
	return " (did you mean " + near + "?)"
}
