package explain

import (
	"cmp"
	"strings"

	"obelus/engine/lazyregexp"
)

// placeBefore matches "file:line: " before a message.
var placeBefore = lazyregexp.New(`^([^\n]*?):(\d+): `)

// maxPlace is the number of bytes of a message that are searched for its place: a message may be as
// long as a string.
const maxPlace = 1000

// Place returns "file:line: " at the beginning of a message, the file and the line, or nil.
func Place(message string) []string {
	return placeBefore().FindStringSubmatch(message[:min(len(message), maxPlace)])
}

// WithoutSpace returns a message of the interpreter without the space at its beginning, which it
// has if no line of Lua called the library function that raised it.
func WithoutSpace(message string) string { return strings.TrimPrefix(message, " ") }

// Panic returns the error for a panic of the interpreter, or of an object of the program whose
// place in Go is known.
func Panic(message, place string) string {
	if place != "" {
		return "an object of the host failed at " + place + ": " + message
	}
	if m := gaveWrong().FindStringSubmatch(message); m != nil {
		return "results of a function that was given to an object: wanted " + m[1] + ", got " + m[2]
	}
	if m := faultUse().FindStringSubmatch(message); m != nil {
		return "a function that was given to an object returned a wrong value: " + luaTypeOf(m[3]) + " expected, got " + luaTypeOf(cmp.Or(m[2], "nil"))
	}
	for _, known := range []string{"callstack overflow", "index out of range", "stack overflow", "slice bounds out of range"} {
		if strings.Contains(message, known) {
			return "stack overflow"
		}
	}
	return "an object of the host failed: " + message
}

// gaveWrong matches the message of gopher-luar about the results of a Lua function that an object
// called.
var gaveWrong = lazyregexp.New(`^expecting (\d+) return values, got (\d+)$`)

// GoPlace returns the file and the line of a panic from the stack of an interpreter's error, or ""
// if the stack has none or the interpreter itself panicked. It leaves out the folder, which belongs
// to the machine that built the program.
func GoPlace(stack string) string {
	_, frames, _ := strings.Cut(stack, "\npanic(")
	lines := strings.Split(frames, "\n")
	for i := 2; i+1 < len(lines); i += 2 { // each function is followed by its place
		if !strings.HasPrefix(lines[i], "runtime.") && !strings.HasPrefix(lines[i], "internal/runtime/") {
			if strings.HasPrefix(lines[i], "github.com/yuin/gopher-lua.") || strings.HasPrefix(lines[i], "layeh.com/gopher-luar.") {
				return ""
			}
			place, _, _ := strings.Cut(strings.TrimPrefix(lines[i+1], "\t"), " ")
			return place[strings.LastIndexByte(place, '/')+1:]
		}
	}
	return ""
}

// Traceback returns the lines of the interpreter's traceback that are Lua's.
func Traceback(stack string) []string {
	var lines []string
	if _, own, ok := strings.Cut(stack, "stack traceback:"); ok {
		stack = own
	}
	for line := range strings.SplitSeq(stack, "\n") {
		line, ok := strings.CutPrefix(line, "\t")
		if !ok || strings.HasPrefix(line, "[G]") || strings.HasPrefix(line, "(tailcall)") {
			continue
		}
		lines = append(lines, line)
	}
	return lines
}

// luaTypeOf returns Lua's name for a type of Go.
func luaTypeOf(goType string) string {
	name := strings.ToLower(strings.TrimPrefix(strings.TrimLeft(goType, "*"), "lua.L"))
	switch {
	case strings.HasPrefix(name, "int"), strings.HasPrefix(name, "uint"), strings.HasPrefix(name, "float"), name == "number":
		return "number"
	case strings.HasPrefix(name, "map["), strings.HasPrefix(name, "["), name == "table":
		return "table"
	case strings.HasPrefix(name, "func"):
		return "function"
	case name == "bool":
		return "boolean"
	case name == "string", name == "nil":
		return name
	}
	return "object"
}
