package explain

import (
	"cmp"
	"regexp"
	"strings"
)

// place finds "file:line: " before a message.
var placeBefore = regexp.MustCompile(`^([^\n]*?):(\d+): `)

// mostPlace is how much of a message is searched for its place: it may be as long
// as a string.
const mostPlace = 1000

// Place finds "file:line: " at the beginning of a message: as it stands there,
// the file and the line.
func Place(message string) []string {
	return placeBefore.FindStringSubmatch(message[:min(len(message), mostPlace)])
}

// WithoutSpace is a message of the interpreter, which begins with a space where a
// library function raised it that no line of Lua called.
func WithoutSpace(message string) string { return strings.TrimPrefix(message, " ") }

// Panic says in Lua's words what made the interpreter itself panic, or an object of the
// host, whose place in Go is known.
func Panic(message, place string) string {
	if place != "" {
		return "an object of the host failed at " + place + ": " + message
	}
	if m := gaveWrong.FindStringSubmatch(message); m != nil {
		return "results of a function that was given to an object: wanted " + m[1] + ", got " + m[2]
	}
	if m := faultUse.FindStringSubmatch(message); m != nil {
		return "a function that was given to an object returned a wrong value: " + luaTypeOf(m[3]) + " expected, got " + luaTypeOf(cmp.Or(m[2], "nil"))
	}
	for _, known := range []string{"callstack overflow", "index out of range", "stack overflow", "slice bounds out of range"} {
		if strings.Contains(message, known) {
			return "stack overflow"
		}
	}
	return "an object of the host failed: " + message
}

// gaveWrong is what gopher-luar says of a function of Lua that an object called.
var gaveWrong = regexp.MustCompile(`^expecting (\d+) return values, got (\d+)$`)

// GoPlace is the file and the line of what panicked, in the stack of an error of the
// interpreter; "" if that has none, or it was the interpreter itself. The folder would
// tell of the machine that the program was made on.
func GoPlace(stack string) string {
	_, frames, _ := strings.Cut(stack, "\npanic(")
	lines := strings.Split(frames, "\n")
	for i := 2; i+1 < len(lines); i += 2 { // a function, and its place
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

// Traceback reads the interpreter's own, leaving out what is Go's.
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

// luaTypeOf is what Lua calls what has a type of Go.
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
