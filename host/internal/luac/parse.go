package luac

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"

	"obelus/engine/lazyregexp"
	"obelus/host/internal/luaerr"
	"obelus/host/internal/luatext"
	"obelus/store"
)

// ParseChunk parses a file into its syntax tree.
func ParseChunk(name string, source []byte) (chunk []ast.Stmt, err error) {
	text := trimPreamble(string(source))
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
	if line := findLargeEscape(text); line > 0 {
		e := &luaerr.ScriptError{File: name, Line: line, Message: `an escape sequence is too large: \255 is the last one`}
		return nil, luaerr.WithSource(e, text)
	}
	return chunk, nil
}

// findLargeEscape returns the line of the first string with an escape such as \300, which the
// parser would make a character beyond one byte; 0 without one.
func findLargeEscape(text string) int {
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

// trimPreamble removes the parts that may precede Lua: a byte order mark, and a first line for
// Unix. Lines keep their numbers.
func trimPreamble(text string) string {
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
		e.Message = "the file ends too early" + describeUnclosed(text)
	case strings.HasPrefix(at.Message, "unterminated"):
		if e.Column == 0 && e.Line > 1 { // the scanner went on to the next line
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
	e.Message += hintAtLanguage(text, lines[min(e.Line, len(lines))-1])
	return luaerr.WithSource(e, text)
}

// otherLanguages are the ways of JSON and TypeScript that a line with a syntax error may have, and
// those of Lua for the same.
var otherLanguages = []struct {
	found func() *regexp.Regexp
	hint  string
}{
	{lazyregexp.New(`=>|\basync\b|\bfunction\b[^)]*\)\s*\{`), "function(call, context) … end"},
	{lazyregexp.New(`^\s*(//|/\*)`), "-- begins a comment"},
	{lazyregexp.New(`^\s*import\b`), `local x = require "x"`},
	{lazyregexp.New(`^\s*(export\s+)?(const|let|var)\b`), "local n = 1"},
	{lazyregexp.New(`^\s*export\b|\bawait\b`), "a call waits by itself, and a file returns what it gives"},
	{lazyregexp.New(`!==?`), "~= for what differs"},
	{lazyregexp.New(`===`), "== for what is equal"},
	{lazyregexp.New(`&&|\|\|`), "and, or, not"},
	{lazyregexp.New(`[{,]\s*"?\w+"?\s*:|\[\s*[{"\]]`), `{ { _tool = "x", n = 1 } }`},
}

var jsonText = lazyregexp.New(`^\s*(\[\s*[\[{]|[\[{]\s*")`)

// hintAtLanguage returns a hint for a text in another language, from its beginning and the line
// with the error; empty for none.
func hintAtLanguage(text, line string) string {
	if jsonText().MatchString(text) {
		return `: this is JSON, which a file .json holds; in Lua: return { { _tool = "x", n = 1 } }`
	}
	for _, other := range otherLanguages {
		if other.found().MatchString(line) {
			return ": this is no Lua; in Lua: " + other.hint
		}
	}
	return ""
}

// describeUnclosed names the block that is still open at the end of a file, by its words alone.
func describeUnclosed(text string) string {
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

// scanWords reports the words and brackets of Lua source outside of strings and comments.
func scanWords(text string, found func(word string, line int)) { scan(text, found, nil) }

// scanStrings reports the strings of Lua source that may have escapes, with their quotes.
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
			n = 2 + longBracketLength(text[i+2:])
			if n == 2 {
				n = len(text) - i
				if end := strings.IndexByte(text[i:], '\n'); end >= 0 {
					n = end
				}
			}
		case c == '[' && longBracketLength(text[i:]) > 0:
			n = longBracketLength(text[i:])
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

// longBracketLength returns the length of the [[long bracket]] at the start of text, or 0 if there
// is none.
func longBracketLength(text string) int {
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
