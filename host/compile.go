package host

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"

	"obelus/host/internal/luaerr"
	"obelus/host/internal/luatext"
	"obelus/store"
)

// maxNesting bounds the depth of a file's syntax tree: the compiler recurses,
// and a Go stack that overflows ends the process.
const maxNesting = 200

// compile turns text into what an LState runs. name is the file as people know it,
// "activities/billing.lua". functions are called by what it makes of some operators and
// statements. Its error is a [luaerr.ScriptError].
func compile(name string, source []byte, functions hostFunctionTable) (*lua.FunctionProto, error) {
	proto, err := compilePooled(name, source, functions, newConstantPool())
	if errors.Is(err, errUnpooled) {
		proto, err = compilePooled(name, source, functions, nil)
	}
	return proto, err
}

// errUnpooled asks to compile a file again without a [constantPool].
var errUnpooled = errors.New("the constants can't be put back")

func compilePooled(name string, source []byte, functions hostFunctionTable, pool *constantPool) (proto *lua.FunctionProto, err error) {
	defer func() {
		if r := recover(); r != nil {
			proto, err = nil, &luaerr.ScriptError{File: name, Line: 1, Message: "the compiler can't cope with this file: split it"}
		}
	}()
	chunk, err := parseChunk(name, source)
	if err != nil {
		return nil, err
	}
	text := plainSource(string(source))
	w := newRewriter(name, text)
	w.fields = globalFields(chunk, text)
	w.stmts(chunk, 0)
	if w.err != nil {
		return nil, luaerr.WithSource(w.err, text)
	}
	if pool != nil {
		pool.take(chunk, 0)
	}
	proto, err = lua.Compile(chunk, name)
	if err != nil {
		return nil, compileError(name, text, err)
	}
	if pool != nil {
		switch ok, err := pool.putBack(proto, maxConstants-len(functions)); {
		case err != nil:
			return nil, &luaerr.ScriptError{File: name, Line: 1, Message: err.Error()}
		case !ok:
			return nil, errUnpooled
		}
	}
	putNegativeZero(proto)
	proto.IsVarArg &^= lua.VarArgNeedsArg // a table for a local arg, which a file's top level has not
	callWithoutTail(proto)
	callHost(proto, functions)
	return proto, nil
}

// parseChunk reads a file into its syntax tree.
func parseChunk(name string, source []byte) (chunk []ast.Stmt, err error) {
	text := plainSource(string(source))
	defer func() {
		if r := recover(); r != nil {
			chunk, err = nil, syntaxError(name, text, errors.New("it can't be parsed"))
		}
	}()
	if err := store.CheckEncoding([]byte(text)); err != nil {
		return nil, &luaerr.ScriptError{File: name, Line: 1, Message: err.Error()}
	}
	chunk, err = parse.Parse(strings.NewReader(text), name)
	if err != nil {
		return nil, syntaxError(name, text, err)
	}
	if line := largeEscape(text); line > 0 {
		e := &luaerr.ScriptError{File: name, Line: line, Message: `an escape sequence is too large: \255 is the last one`}
		return nil, luaerr.WithSource(e, text)
	}
	return chunk, nil
}

// largeEscape is the line of the first string with an escape such as \300, for which the
// parser makes a character beyond one byte; 0 without one.
func largeEscape(text string) int {
	if !strings.Contains(text, `\`) {
		return 0
	}
	found := 0
	scanStrings(text, func(quoted string, line int) {
		for i := 0; i < len(quoted) && found == 0; i++ {
			switch {
			case quoted[i] == '\n':
				line++
			case quoted[i] == '\\':
				i++
				digits := 0
				for digits < 3 && i+digits < len(quoted) && quoted[i+digits] >= '0' && quoted[i+digits] <= '9' {
					digits++
				}
				if n, err := strconv.Atoi(quoted[i : i+digits]); err == nil && n > 255 {
					found = line
				} else if i < len(quoted) && quoted[i] == '\n' {
					line++
				}
			}
		}
	})
	return found
}

// plainSource takes off what may stand before Lua: a byte order mark, and a
// first line for Unix. Lines keep their numbers.
func plainSource(text string) string {
	text = strings.TrimPrefix(text, "\ufeff")
	if strings.HasPrefix(text, "#") {
		if i := strings.IndexByte(text, '\n'); i >= 0 {
			return text[i:]
		}
		return ""
	}
	return text
}

func syntaxError(name, text string, err error) *luaerr.ScriptError {
	var at *parse.Error
	if !errors.As(err, &at) {
		return &luaerr.ScriptError{File: name, Line: 1, Message: "syntax error"}
	}
	lines := strings.Split(text, "\n")
	e := &luaerr.ScriptError{File: name, Line: at.Pos.Line, Column: at.Pos.Column, Message: "syntax error"}
	token := strings.TrimSpace(at.Token)
	switch {
	case at.Pos.Line == parse.EOF:
		for e.Line = len(lines); e.Line > 1 && strings.TrimSpace(lines[e.Line-1]) == ""; e.Line-- {
		}
		e.Column = len(lines[e.Line-1]) + 1
		e.Message = "the file ends too early" + unclosed(text)
	case strings.HasPrefix(at.Message, "unterminated"):
		if e.Column == 0 && e.Line > 1 { // it is read on to the next line
			e.Line--
			e.Column = len(lines[e.Line-1])
		}
		e.Message = at.Message + ": its end is missing"
	case token != "":
		e.Column = max(1, e.Column-len(token)+1)
		e.Message = fmt.Sprintf("syntax error at %q", token)
		if detail := strings.ToLower(at.Message); detail != "" && !strings.HasPrefix(detail, "syntax error") && !strings.HasPrefix(detail, "parse error") {
			e.Message += ": " + detail
		}
	}
	return luaerr.WithSource(e, text)
}

// unclosed names the block that is still open at the end of a file, judging
// by its words alone.
func unclosed(text string) string {
	type open struct {
		word string
		line int
	}
	var stack []open
	scanWords(text, func(word string, line int) {
		switch word {
		case "function", "do", "if", "repeat", "(", "{", "[":
			stack = append(stack, open{word, line})
		case "end", "until", ")", "}", "]":
			if len(stack) > 0 {
				stack = stack[:len(stack)-1]
			}
		}
	})
	if len(stack) == 0 {
		return ""
	}
	last := stack[len(stack)-1]
	return fmt.Sprintf(": the %q of line %d is not closed", last.word, last.line)
}

// scanWords tells the words and brackets of Lua source that are neither in
// strings nor in comments.
func scanWords(text string, found func(word string, line int)) { scan(text, found, nil) }

// scanStrings tells the strings of Lua source that have escapes, with their quotes.
func scanStrings(text string, found func(quoted string, line int)) { scan(text, nil, found) }

func scan(text string, word, quoted func(text string, line int)) {
	line := 1
	for i := 0; i < len(text); {
		c := text[i]
		n := 1
		switch {
		case c == '\n':
			line++
		case strings.HasPrefix(text[i:], "--"):
			n = 2 + longBracket(text[i+2:])
			if n == 2 {
				n = len(text) - i
				if end := strings.IndexByte(text[i:], '\n'); end >= 0 {
					n = end
				}
			}
		case c == '[' && longBracket(text[i:]) > 0:
			n = longBracket(text[i:])
		case c == '"' || c == '\'':
			for n = 1; i+n < len(text) && text[i+n] != c && text[i+n] != '\n'; n++ {
				if text[i+n] == '\\' {
					n++
				}
			}
			n++
			if quoted != nil {
				quoted(text[i:min(i+n, len(text))], line)
			}
		case luatext.IsWord(c):
			for n = 1; i+n < len(text) && luatext.IsWord(text[i+n]); n++ {
			}
			if word != nil {
				word(text[i:i+n], line)
			}
		case word != nil:
			word(text[i:i+1], line)
		}
		n = min(n, len(text)-i)
		if n > 1 {
			line += strings.Count(text[i:i+n], "\n")
		}
		i += n
	}
}

// longBracket is the length of the [[long bracket]] at the start of text, 0 if
// there is none.
func longBracket(text string) int {
	level := 1
	for level < len(text) && text[level] == '=' {
		level++
	}
	if text == "" || text[0] != '[' || level >= len(text) || text[level] != '[' {
		return 0
	}
	closing := "]" + text[1:level] + "]"
	end := strings.Index(text, closing)
	if end < 0 {
		return len(text)
	}
	return end + len(closing)
}

// What the compiler says of these has another line than they: that of the
// function's end, or the one after the label.
var (
	aboutGoto  = regexp.MustCompile(`^(no visible label '.*' for <goto>|<goto .*>) at line (\d+)(.*)$`)
	aboutLabel = regexp.MustCompile(`^label '.*' already defined on line \d+$`)
)

func compileError(name, text string, err error) *luaerr.ScriptError {
	e := &luaerr.ScriptError{File: name, Line: 1, Message: err.Error()}
	var at *lua.CompileError
	if errors.As(err, &at) {
		e.Line, e.Message = at.Line&lineMask, at.Message
	}
	if m := aboutGoto.FindStringSubmatch(e.Message); m != nil {
		e.Message = m[1] + m[3]
		e.Line, _ = strconv.Atoi(m[2])
	} else if aboutLabel.MatchString(e.Message) {
		e.Line--
	}
	return luaerr.WithSource(e, text)
}

// hostFunctionTable holds the functions that rewritten code calls, by the names below.
type hostFunctionTable map[string]*lua.LFunction

// callHost makes constants of the functions that rewritten code calls, so that
// it finds them whatever environment setfenv gives it.
func callHost(proto *lua.FunctionProto, functions hostFunctionTable) {
	at := map[string]int{}
	for i, instruction := range proto.Code {
		if int(instruction>>26) != lua.OP_GETGLOBAL {
			continue
		}
		name := proto.Constants[operandBx(instruction)].String()
		f := functions[name]
		if f == nil {
			continue
		}
		if at[name] == 0 {
			at[name] = len(proto.Constants)
			proto.Constants = append(proto.Constants, f)
		}
		proto.Code[i] = instruction&(0xff<<18) | uint32(lua.OP_LOADK)<<26 | uint32(at[name])
	}
	for _, inner := range proto.FunctionPrototypes {
		callHost(inner, functions)
	}
}

// operandBx is the operand of an instruction that stands for a constant.
func operandBx(instruction uint32) int { return int(instruction & (1<<18 - 1)) }

// callWithoutTail makes every tail call an ordinary one: the frames of a traceback
// are all there, and endless recursion meets the limit of the stack instead of
// filling the memory with its traceback.
func callWithoutTail(proto *lua.FunctionProto) {
	for i, instruction := range proto.Code {
		if int(instruction>>26) == lua.OP_TAILCALL {
			proto.Code[i] = instruction&(1<<26-1) | uint32(lua.OP_CALL)<<26
		}
	}
	for _, inner := range proto.FunctionPrototypes {
		callWithoutTail(inner)
	}
}
