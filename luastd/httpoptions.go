package luastd

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"

	"obelus/engine/duration"
	"obelus/luastd/internal/formats"
)

// httpCall reads the options of a request, in argument n.
func (e *Env) httpCall(L *lua.LState, n int, method, target string, opts *lua.LTable) *httpCall {
	r := &httpCall{redirects: 10, maxBytes: min(10<<20, e.maxString())}
	r.Method, r.URL, r.Headers = method, target, e.requestHeaders(L, n, opts.RawGetString("headers"))
	if v := opts.RawGetString("query"); v != lua.LNil {
		r.addQuery(e.optionValue(L, v, "query"), func(message string) { L.ArgError(n, message) })
	}
	body, value := opts.RawGetString("body"), opts.RawGetString("json")
	switch _, isText := body.(lua.LString); {
	case body != lua.LNil && value != lua.LNil:
		L.ArgError(n, "json and body are both given")
	case body != lua.LNil && !isText:
		L.ArgError(n, "body is text")
	case isText:
		r.Body = lua.LVAsString(body)
	case value != lua.LNil:
		r.Body = formats.CompactJSON(e.optionValue(L, value, "json"))
		if JoinHeader("content-type", r.Headers["content-type"]) == "" {
			r.Headers["content-type"] = []string{"application/json"}
		}
	}
	e.limit(L, len(r.Body))
	if v := opts.RawGetString("timeout"); v != lua.LNil {
		r.timeout = readDuration(v)
		if r.timeout <= 0 {
			L.ArgError(n, `timeout is a number of seconds above 0, or text like "5s"`)
		}
	}
	r.redirects = wholeOption(L, n, opts, "redirects", r.redirects, 0, 100)
	r.maxBytes = wholeOption(L, n, opts, "max_bytes", r.maxBytes, 1, e.maxString())
	return r
}

func (r *httpCall) addQuery(query any, wrong func(message string)) {
	text, err := queryText(query)
	if err != nil {
		wrong(err.Error())
	}
	whole, fragment, _ := strings.Cut(r.URL, "#")
	if text != "" {
		separator := "?"
		if strings.Contains(whole, "?") {
			separator = "&"
		}
		whole += separator + text
	}
	if r.URL = whole; fragment != "" {
		r.URL += "#" + fragment
	}
}

// optionValue is an option as JSON.
func (e *Env) optionValue(L *lua.LState, v lua.LValue, name string) any {
	value, err := e.Codec.FromLua(v, name)
	if err != nil {
		L.RaiseError("%s", err.Error())
	}
	return value
}

// requestHeaders reads headers: texts, or arrays of them.
func (e *Env) requestHeaders(L *lua.LState, n int, v lua.LValue) map[string][]string {
	headers := map[string][]string{}
	if v == lua.LNil {
		return headers
	}
	table, ok := e.optionValue(L, v, "headers").(map[string]any)
	if !ok {
		L.ArgError(n, "headers is a table by name")
	}
	for _, name := range slices.Sorted(maps.Keys(table)) {
		v := table[name]
		if v == nil {
			continue // as nil would be
		}
		list, ok := v.([]any)
		if !ok {
			list = []any{v}
		}
		texts := []string{}
		for _, v := range list {
			text, ok := formats.ScalarText(v)
			if !ok || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
				L.ArgError(n, "headers."+name+" is text on one line")
			}
			texts = append(texts, text)
		}
		name = strings.ToLower(name)
		if !isToken(name) || slices.Contains([]string{"connection", "content-length", "host", "trailer", "transfer-encoding"}, name) {
			L.ArgError(n, fmt.Sprintf("headers can't have %q", name))
		}
		headers[name] = append(headers[name], texts...)
	}
	if cookies := headers["cookie"]; len(cookies) > 1 {
		headers["cookie"] = []string{JoinHeader("cookie", cookies)} // servers look for one field
	}
	return headers
}

// isToken reports whether text can be a method or the name of a header.
func isToken(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r)
	})
}

// readDuration reads seconds or text like "5s". It returns 0 for anything else.
func readDuration(v lua.LValue) time.Duration {
	switch v := v.(type) {
	case lua.LNumber:
		if s := float64(v); s > 0 {
			return time.Duration(max(min(s*float64(time.Second), math.MaxInt64/2), 1))
		}
	case lua.LString:
		if d, err := duration.Parse(string(v)); err == nil {
			return d
		}
	}
	return 0
}

// wholeOption is an option that is a whole number from least to most.
func wholeOption(L *lua.LState, n int, opts *lua.LTable, name string, otherwise, least, most int) int {
	v := opts.RawGetString(name)
	if v == lua.LNil {
		return otherwise
	}
	number, ok := v.(lua.LNumber)
	if !ok || float64(number) != math.Trunc(float64(number)) || float64(number) < float64(least) || float64(number) > float64(most) {
		L.ArgError(n, fmt.Sprintf("%s is a whole number from %d to %d", name, least, most))
	}
	return int(number)
}
