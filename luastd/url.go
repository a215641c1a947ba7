package luastd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"obelus/engine/lazyregexp"
	"obelus/luastd/internal/formats"
)

// url: takes URLs apart and puts them together, as in RFC 3986. In Lua:
//
//	local url = require("url")
//	local u = assert(url.parse("https://example.com:8443/a?q=x&tag=1&tag=2"))
//	u.query.q = "two words"
//	local text = url.build(u) -- https://example.com:8443/a?q=two+words&tag=1&tag=2
//	local next = assert(url.join(text, "../b"))
//	local path = "/users/" .. url.escape(name)
//
// An escape such as %2F is never taken for the character that it stands for: /a%2Fb is a path of
// one part, and stays so in all functions here and in http. Characters that can't stand in a URL,
// such as a blank or é, are escaped; escapes that are there stay, and are not normalized. That
// holds for the path and the fragment, which keep their escapes as parts, and for the query of
// joined URLs. As parts, user, password, and the names and values of the query are without escapes;
// build writes those that are needed.
var urlFuncs = []Func{
	{"build", urlBuild},
	{"escape", urlEscape},
	{"join", urlJoin},
	{"parse", urlParse},
	{"unescape", urlUnescape},
}

// urlParts are the fields of the table that parse gives and build takes.
var urlParts = []string{"fragment", "host", "password", "path", "port", "query", "scheme", "user"}

// url.build(parts) → text; parts as parse gives them, and any part may be left
// out. In the path and the fragment % begins an escape that is written already, if
// all of them are right, and is escaped itself otherwise. The query is a table, of
// which an array gives its name several times, and whose names come out sorted,
// or text that is taken as it is, except for characters that can't stand in a query, which are
// escaped as in the path.
func urlBuild(e *Env, L *lua.LState) int {
	e.checkNames(L, 1, L.CheckTable(1), "part", urlParts)
	v, err := e.Codec.FromLua(L.CheckTable(1), "parts")
	if err != nil {
		L.RaiseError("%s", err.Error())
	}
	parts, _ := v.(map[string]any)
	var text string
	e.aside(L, weight(v), func(context.Context) { text, err = buildURL(parts) })
	if err != nil {
		L.ArgError(1, err.Error())
	}
	e.limit(L, len(text))
	L.Push(lua.LString(text))
	return 1
}

func buildURL(parts map[string]any) (string, error) {
	texts := map[string]string{}
	for name, v := range parts {
		if text, ok := formats.ScalarText(v); ok {
			texts[name] = text
		} else if name != "query" && v != nil { // a null is nil in Lua
			return "", fmt.Errorf("%s is text", name)
		}
	}
	u := &url.URL{Scheme: strings.ToLower(texts["scheme"]), Host: texts["host"]}
	u.Fragment, u.RawFragment = escapePart(texts["fragment"], notInPart+"#")
	if strings.HasPrefix(u.Host, "[") && strings.HasSuffix(u.Host, "]") { // they come back below
		u.Host = u.Host[1 : len(u.Host)-1]
	}
	if port, given := texts["port"]; given {
		if !isPort(port) {
			return "", errors.New("port is a number up to 65535")
		}
		u.Host = net.JoinHostPort(u.Host, port)
	} else if strings.Contains(u.Host, ":") {
		u.Host = "[" + u.Host + "]"
	}
	if password, given := texts["password"]; given {
		u.User = url.UserPassword(texts["user"], password)
	} else if user, given := texts["user"]; given {
		u.User = url.User(user)
	}
	setPath(u, texts["path"])
	if likeHost(u) {
		return "", errors.New("a path that begins with // would be taken for a host: give the host too")
	}
	if query := parts["query"]; query != nil {
		text, err := queryText(query)
		if err != nil {
			return "", err
		}
		u.RawQuery = text
	}
	text := u.String()
	if _, err := url.Parse(text); err != nil {
		for _, part := range []struct {
			name string
			url  url.URL
		}{{"scheme", url.URL{Scheme: u.Scheme, Host: "h"}}, {"host", url.URL{Host: u.Host}}} {
			if _, err := url.Parse(part.url.String()); err != nil {
				return "", fmt.Errorf("%s can't be %.100q", part.name, texts[part.name])
			}
		}
		return "", errors.New(urlError(err))
	}
	return text, nil
}

// likeHost tells whether the path would be read as a host.
func likeHost(u *url.URL) bool {
	return strings.HasPrefix(u.Path, "//") && u.Scheme+u.Host == "" && u.User == nil
}

func setPath(u *url.URL, path string) {
	u.Path, u.RawPath = escapePart(path, notInPart+"#?")
	switch rooted := strings.HasPrefix(path, "/"); {
	case rooted || path == "":
	case u.Host != "":
		u.Path, u.RawPath = "/"+u.Path, "/"+u.RawPath
	case u.Scheme != "":
		u.Opaque = u.EscapedPath()
	}
}

// notInPart are the printable characters that can't stand in a path or a fragment.
const notInPart = "\"<>\\^`{|}"

// escapePart escapes in a part the characters that can't stand there: white space, those that are
// not ASCII, and the characters in others; and each % if the escapes are wrong. It returns the part
// without escapes too.
func escapePart(text, others string) (unescaped, escaped string) {
	if _, err := url.PathUnescape(text); err != nil {
		others += "%"
	}
	escaped = escapeBytes(text, others)
	unescaped, _ = url.PathUnescape(escaped) // its escapes are right
	return unescaped, escaped
}

// queryText writes a query: a table of texts or of arrays of them, or text
// that is one already.
func queryText(query any) (string, error) {
	if text, ok := query.(string); ok {
		return escapeQuery(strings.TrimPrefix(text, "?")), nil
	}
	table, ok := query.(map[string]any)
	if !ok {
		return "", errors.New("query is a table by name, or text")
	}
	values := url.Values{}
	for _, name := range slices.Sorted(maps.Keys(table)) {
		list, ok := table[name].([]any)
		switch {
		case table[name] == nil:
			continue
		case !ok:
			list = []any{table[name]}
		}
		for _, v := range list {
			text, ok := formats.ScalarText(v)
			if !ok {
				return "", fmt.Errorf("query.%s is text, a number, a boolean, or an array of them", name)
			}
			values.Add(name, text)
		}
	}
	return values.Encode(), nil
}

// escapeQuery escapes in the text of a query the characters that can't stand there.
func escapeQuery(text string) string {
	if _, err := url.PathUnescape(text); err != nil {
		return escapeBytes(text, `"#<>%`)
	}
	return escapeBytes(text, `"#<>`)
}

// escapeBytes escapes white space, characters that are not ASCII, and some others.
func escapeBytes(text, others string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte(others, c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// url.escape(text) → text, with every byte but letters, digits and -_.~ as
// %XX: fit for any part of a URL
func urlEscape(e *Env, L *lua.LState) int {
	text := L.CheckString(1)
	e.aside(L, len(text)/16+1, func(context.Context) { text = strings.ReplaceAll(url.QueryEscape(text), "+", "%20") })
	e.limit(L, len(text))
	L.Push(lua.LString(text))
	return 1
}

// url.join(base, ref) → the URL that ref means in a document at base | nil, err
func urlJoin(e *Env, L *lua.LState) int {
	base, ref := L.CheckString(1), L.CheckString(2)
	u, err := parseURL(base)
	if err != nil {
		return failed(L, urlError(err))
	}
	to, err := parseURL(ref)
	if err != nil {
		return failed(L, urlError(err))
	}
	if u.Opaque != "" && to.Scheme == "" && to.Host == "" && to.Path != "" {
		return failed(L, u.Scheme+": has no folders in which a path could lead on")
	}
	var text string
	e.aside(L, (len(base)+len(ref))/16+1, func(context.Context) {
		u = u.ResolveReference(to)
		u.Fragment, u.RawFragment = to.Fragment, to.RawFragment // Go keeps the base's
		text = u.String()
	})
	if likeHost(u) {
		return failed(L, "not a URL: its path would be taken for a host")
	}
	e.limit(L, len(text))
	L.Push(lua.LString(text))
	return 1
}

// url.parse(text) → {scheme, host, port, path, query = {…}, fragment, user,
// password} | nil, err
//
// Parts that the URL does not have are left out, except for path and query. The port is
// a number; the path and the fragment keep their escapes; a name that the query has
// several times is an array of its values.
func urlParse(e *Env, L *lua.LState) int {
	text := L.CheckString(1)
	e.charge(L, len(text)/8+1)
	u, err := parseURL(text)
	if err != nil {
		return failed(L, urlError(err))
	}
	// A semicolon separates nothing.
	values, err := url.ParseQuery(strings.ReplaceAll(u.RawQuery, ";", "%3B"))
	if err != nil {
		return failed(L, "not a URL: the query: "+urlReason(err))
	}
	e.limitArray(L, len(values))
	parts := map[string]any{"path": u.EscapedPath(), "query": queryTable(values)}
	if u.Opaque != "" {
		parts["path"] = u.Opaque
	}
	password, _ := u.User.Password()
	for name, text := range map[string]string{
		"scheme": u.Scheme, "host": u.Hostname(), "fragment": u.EscapedFragment(),
		"user": u.User.Username(), "password": password,
	} {
		if text != "" {
			parts[name] = text
		}
	}
	if port := u.Port(); port != "" {
		parts["port"] = json.Number(port)
	}
	L.Push(e.Codec.ToLua(parts))
	return 1
}

// authority matches the part before the path of a URL.
var authority = lazyregexp.New(`^(?:[A-Za-z][A-Za-z0-9+.-]*:)?(?://[^/]*)?`)

// escapeURL escapes in a URL the characters that can't stand in its path, query and fragment.
// Without that net/url writes its own escapes for all of a path, and none for a / that was escaped.
// It leaves control characters, for which net/url refuses the URL.
func escapeURL(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return text
	}
	rest, fragment, hasFragment := strings.Cut(text, "#")
	rest, query, hasQuery := strings.Cut(rest, "?")
	before := authority().FindString(rest)
	text = before + escapeBytes(rest[len(before):], notInPart)
	if hasQuery {
		text += "?" + escapeBytes(query, `"<>`)
	}
	if hasFragment {
		text += "#" + escapeBytes(fragment, notInPart+"#")
	}
	return text
}

// parseURL parses a URL. It is an error if the path behind "mailto:" and the like has wrong
// escapes, as in any other path.
func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(escapeURL(text))
	if err == nil {
		_, err = url.PathUnescape(u.Opaque)
	}
	if err == nil && u.Port() != "" && !isPort(u.Port()) {
		err = fmt.Errorf("the port %s is above 65535", u.Port())
	}
	return u, err
}

func isPort(text string) bool {
	n, err := strconv.Atoi(text)
	return err == nil && n >= 0 && n <= 65535
}

func queryTable(values url.Values) map[string]any {
	table := map[string]any{}
	for name, list := range values {
		if len(list) == 1 {
			table[name] = list[0]
			continue
		}
		array := make([]any, len(list))
		for i, text := range list {
			array[i] = text
		}
		table[name] = array
	}
	return table
}

// urlError returns the error of a URL in plain words, without the URL itself, which may hold a
// password.
func urlError(err error) string { return "not a URL: " + urlReason(err) }

// urlParser is what an error says of who found it.
var urlParser = lazyregexp.New(`^net/url: |ParseAddr\(".*"\): `)

func urlReason(err error) string {
	var inner *url.Error
	if errors.As(err, &inner) {
		err = inner.Err
	}
	return urlParser().ReplaceAllLiteralString(err.Error(), "")
}

// url.unescape(text) → text, with every %XX as its byte | nil, err; + stays
func urlUnescape(e *Env, L *lua.LState) int {
	text := L.CheckString(1)
	e.charge(L, len(text)/16+1)
	unescaped, err := url.PathUnescape(text)
	if err != nil {
		return failed(L, urlReason(err))
	}
	L.Push(lua.LString(unescaped))
	return 1
}
