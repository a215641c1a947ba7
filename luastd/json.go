package luastd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	lua "github.com/yuin/gopher-lua"

	"obelus/engine/lazyregexp"
	"obelus/luastd/internal/formats"
)

// json: JSON, with null, empty arrays and long whole numbers kept. In Lua:
//
//	local json = require("json")
//	local order = assert(json.decode('{"id": 12345678901234567890, "lines": [1, null]}'))
//	local text = json.encode({ tags = json.array(), total = 12.5 })
var jsonFuncs = []Func{
	{"array", jsonArray},
	{"decode", jsonDecode},
	{"encode", jsonEncode},
}

// json.array([t]) → t, an array even if it is empty; a new table without t.
func jsonArray(e *Env, L *lua.LState) int {
	t := L.OptTable(1, nil)
	if t == nil {
		t = L.CreateTable(0, 0)
	}
	if key, _ := t.Next(lua.LNil); key.Type() == lua.LTString {
		L.ArgError(1, fmt.Sprintf("an array expected, and this table has the key %q", key.String()))
	}
	e.Codec.MarkArray(t)
	L.Push(t)
	return 1
}

// json.decode(text) → value | nil, err; null alone is json.null. A byte order mark at
// the start is passed over.
func jsonDecode(e *Env, L *lua.LState) int {
	text := L.CheckString(1)
	var v any
	var err error
	e.aside(L, len(text)/16+1, func(context.Context) { v, err = decodeJSON(text) })
	if err != nil {
		return failed(L, err.Error())
	}
	if v == nil {
		L.Push(Null)
	} else {
		L.Push(e.Codec.ToLua(v))
	}
	return 1
}

func decodeJSON(text string) (any, error) {
	if encoding := formats.WideEncoding(text); encoding != "" {
		return nil, errors.New("not JSON that can be read: it is " + encoding + ": convert it to UTF-8")
	}
	if !utf8.ValidString(text) {
		return nil, errors.New("not JSON: it is not valid UTF-8")
	}
	text = strings.TrimPrefix(text, formats.ByteOrderMark)
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, jsonError(text, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("not JSON: more text after the value, at %s", formats.Position(text, int(d.InputOffset())))
	}
	if i := halfCharacter(text); i >= 0 {
		return nil, fmt.Errorf("not JSON that can be read: %s is half a character: the other half is not there, at %s", text[i:i+6], formats.Position(text, i))
	}
	if formats.IsDeeper(v, formats.MaxDepth) {
		return nil, fmt.Errorf("not JSON that can be read: nested deeper than %d", formats.MaxDepth)
	}
	return v, nil
}

// escapes matches an escape of JSON; of a character in two halves, both.
var escapes = lazyregexp.New(`(?i)\\(?:u(d[89ab]..(\\ud[c-f]..)?|d[c-f]..)|.)`)

// halfCharacter finds an escape that stands for one half of a character alone, which
// encoding/json replaces, or gives -1.
func halfCharacter(text string) int {
	if !strings.Contains(text, `\ud`) && !strings.Contains(text, `\uD`) {
		return -1
	}
	for _, m := range escapes().FindAllStringSubmatchIndex(text, -1) {
		if half, other := m[2] >= 0, m[4] >= 0; half && !other {
			return m[0]
		}
	}
	return -1
}

func jsonError(text string, err error) error {
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("not JSON: %s, at %s", syntax, formats.Position(text, int(syntax.Offset)-1))
	case err == io.EOF:
		return errors.New("not JSON: it is empty")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("not JSON: it ends too early, at %s", formats.Position(text, len(strings.TrimRight(text, " \t\r\n"))))
	}
	return errors.New("not JSON")
}

// json.encode(value, [{indent = 2}]) → text, keys sorted; indent is how many
// spaces, up to 10, or the spaces and tabs themselves. A value that JSON does
// not have raises.
func jsonEncode(e *Env, L *lua.LState) int {
	indent := jsonIndent(L, e.options(L, 2, "indent").RawGetString("indent"))
	v, err := e.Codec.FromLua(L.Get(1), "value")
	if err != nil {
		L.RaiseError("%s", err.Error())
	}
	if indent != "" {
		e.limit(L, len(indent)*indents(v, 0)) // the encoder makes all of it at once
	}
	var text []byte
	e.aside(L, weight(v), func(context.Context) { text, err = encodeJSON(v, indent) })
	if err != nil {
		L.RaiseError("the value can't be written as JSON")
	}
	e.limit(L, len(text))
	L.Push(lua.LString(text))
	return 1
}

func encodeJSON(v any, indent string) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", indent)
	err := encoder.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// maxIndent is how wide an indent may be, as in JavaScript.
const maxIndent = 10

func jsonIndent(L *lua.LState, v lua.LValue) string {
	switch v := v.(type) {
	case *lua.LNilType:
		return ""
	case lua.LNumber:
		if v >= 0 && v <= maxIndent && v == lua.LNumber(int(v)) {
			return strings.Repeat(" ", int(v))
		}
	case lua.LString:
		if len(v) <= maxIndent && strings.Trim(string(v), " \t") == "" {
			return string(v)
		}
	}
	L.ArgError(2, fmt.Sprintf("indent is a whole number from 0 to %d, or at most as many spaces and tabs", maxIndent))
	return ""
}

// indents is how many indents stand before the lines of a value that begins at
// a depth.
func indents(v any, depth int) (n int) {
	inner := 0
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			n += indents(e, depth+1)
		}
		inner = len(v)
	case []any:
		for _, e := range v {
			n += indents(e, depth+1)
		}
		inner = len(v)
	}
	if inner > 0 {
		n += inner*(depth+1) + depth
	}
	return n
}
