package luastd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"
)

// http: requests to other machines. In Lua:
//
//	local http = require("http")
//	local answer = assert(http.get("https://api.example.com/orders", {
//	  query = { customer = 7, tag = { "a", "b" } },
//	}))
//	if answer.status == 200 then
//	  local orders = assert(answer:json())
//	end
//	local made = assert(http.post("https://api.example.com/orders", {
//	  headers = { authorization = "Bearer " .. token }, json = { title = "Book" }, timeout = 5,
//	}))
//
// An answer is a table: status, a number; headers, texts by their names in lower
// case, several of one name joined by ", "; cookies, an array with the text of each
// Set-Cookie, which can't be told apart once joined; body; and the method json. A
// status of 400 and more is an answer like any other. A failure, a refused
// permission included, gives nil and a message.
//
// All options may be left out: headers, a table, whose arrays are sent as
// a field for each element, for cookie as one joined by "; "; query, a table,
// whose arrays repeat their name, added to the URL's own; json, any value, sent
// as the body with its content-type, or body, text; timeout, seconds or "5s",
// never longer than the rest of the call's time, which also bounds it by default;
// redirects, how many are followed: 10, 0 gives the redirect itself as the
// answer, more than are allowed fail, and authorization and cookies are not sent
// on to another host; max_bytes, how long the body may be once
// unpacked: 10 MiB, or as much as a string may have.
//
// Each host needs the permission net: --allow-net=api.example.com, or allow.net
// in obelus.lua; so does each that a request is redirected to. A granted name
// that has a loopback, private or link-local address is refused all the same,
// unless that address is granted too, or all is, or it is the machine itself
// and "localhost" is granted. Certificates are checked; a proxy is taken from
// HTTPS_PROXY, HTTP_PROXY and NO_PROXY.
var httpFuncs = []Func{
	{"get", func(e *Env, L *lua.LState) int { return e.httpTo(L, "http.get", "GET") }},
	{"post", func(e *Env, L *lua.LState) int { return e.httpTo(L, "http.post", "POST") }},
	{"request", httpRequest},
}

// HTTPRequest is a request that a script makes.
type HTTPRequest struct {
	Method  string              // in upper case
	URL     string              // with the query
	Headers map[string][]string // by names in lower case; a field for each element
	Body    string
}

// HTTPResponse is an answer to it. Names of headers may be in any case.
type HTTPResponse struct {
	Status  int
	Headers map[string][]string
	Body    string
}

// httpCall is a request and how to make it.
type httpCall struct {
	HTTPRequest
	timeout   time.Duration // 0 for none but the call's own
	redirects int
	maxBytes  int
}

// http.get(url, [options]) → answer | nil, err
// http.post(url, [options]) → answer | nil, err
func (e *Env) httpTo(L *lua.LState, what, method string) int {
	target := L.CheckString(1)
	opts := e.options(L, 2, requestOptions...)
	return e.http(L, what, e.httpCall(L, 2, method, target, opts))
}

// requestOptions are the options that all three functions take.
var requestOptions = []string{"body", "headers", "json", "max_bytes", "query", "redirects", "timeout"}

// http.request{url = …, method = "GET", options…} → answer | nil, err
func httpRequest(e *Env, L *lua.LState) int {
	opts := L.CheckTable(1)
	e.checkNames(L, 1, opts, "option", slices.Sorted(slices.Values(append([]string{"method", "url"}, requestOptions...))))
	target, ok := opts.RawGetString("url").(lua.LString)
	if !ok {
		L.ArgError(1, "url is text")
	}
	method := lua.LString("GET")
	if v := opts.RawGetString("method"); v != lua.LNil {
		if method, ok = v.(lua.LString); !ok {
			L.ArgError(1, "method is text")
		}
	}
	verb := strings.ToUpper(string(method))
	if !isToken(verb) || verb == "CONNECT" {
		L.ArgError(1, fmt.Sprintf("method can't be %q", verb))
	}
	return e.http(L, "http.request", e.httpCall(L, 1, verb, string(target), opts))
}

// http makes a request and pushes its answer.
func (e *Env) http(L *lua.LState, what string, r *httpCall) int {
	e.Effect(L, what)
	e.charge(L, 100+(len(r.URL)+len(r.Body))/16)
	u, err := parseURL(r.URL)
	if err == nil && !isWeb(u) {
		err = errors.New("it does not begin with http:// or https:// and a host")
	}
	if err != nil {
		return failed(L, urlError(err))
	}
	place := fmt.Sprintf("%s %s: ", r.Method, urlPlace(u))
	answer, err := e.answer(L, r)
	switch {
	case err != nil && r.timeout > 0 && errors.Is(err, context.DeadlineExceeded):
		return failed(L, place+"no answer within "+r.timeout.String())
	case err != nil:
		if refused, ok := errors.AsType[refusal](err); ok {
			return failed(L, place+refused.explain(e.Grants))
		}
		return failed(L, place+netError(err))
	case len(answer.Body) > r.maxBytes:
		return failed(L, fmt.Sprintf("%sthe answer is longer than %d bytes", place, r.maxBytes))
	}
	e.pushAnswer(L, answer)
	return 1
}

// answer returns the network's answer to a request, or the answer of its replacement in tests. It
// raises if the call itself has no time left.
func (e *Env) answer(L *lua.LState, r *httpCall) (HTTPResponse, error) {
	call, cancel := e.Context()
	defer cancel()
	ctx := call
	if r.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(call, r.timeout)
		defer cancel()
	}
	var answer HTTPResponse
	var err error
	if e.HTTP != nil {
		answer, err = e.HTTP(ctx, r.HTTPRequest)
	} else {
		answer, err = r.send(ctx, networkFor(e.Grants.Net))
	}
	if err != nil && call.Err() != nil {
		e.interrupted(L)
	}
	return answer, err
}

func (e *Env) pushAnswer(L *lua.LState, answer HTTPResponse) {
	e.limit(L, len(answer.Body))
	fields := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(answer.Headers)) {
		lower := strings.ToLower(name)
		fields[lower] = append(fields[lower], answer.Headers[name]...)
	}
	headers := L.CreateTable(0, len(fields))
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		headers.RawSetString(name, lua.LString(JoinHeader(name, fields[name])))
	}
	if e.answers == nil { // scripts can't reach it, so that runs may share it
		method := L.NewFunction(func(L *lua.LState) int { return answerJSON(e, L) })
		method.Env = L.G.Global // not this run's
		methods := L.CreateTable(0, 1)
		methods.RawSetString("json", method)
		e.answers = L.CreateTable(0, 2)
		e.answers.RawSetString("__index", methods)
		e.answers.RawSetString("__metatable", lua.LFalse)
	}
	t := L.CreateTable(0, 4)
	t.RawSetString("body", lua.LString(answer.Body))
	t.RawSetString("cookies", e.stringArray(L, fields["set-cookie"]))
	t.RawSetString("headers", headers)
	t.RawSetString("status", lua.LNumber(answer.Status))
	t.Metatable = e.answers
	L.Push(t)
}

// JoinHeader returns the values of several fields of one name, in lower case, as one text.
func JoinHeader(name string, values []string) string {
	if name == "cookie" {
		return strings.Join(values, "; ") // what HTTP has between cookies
	}
	return strings.Join(values, ", ")
}

// answer:json() → the value of its body | nil, err
func answerJSON(e *Env, L *lua.LState) int {
	answer, ok := L.Get(1).(*lua.LTable)
	if !ok {
		L.ArgError(1, "an answer expected: call it as answer:json()")
	}
	body, ok := answer.RawGetString("body").(lua.LString)
	if !ok {
		L.ArgError(1, "its body is not text")
	}
	L.SetTop(0)
	L.Push(body)
	return jsonDecode(e, L)
}
