package luatest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	lua "github.com/yuin/gopher-lua"

	"obelus/host/internal/luaerr"
	"obelus/luastd"
	"obelus/store"
)

// test.http(fn): fn(request) answers the requests of this test, and of the code that it runs. It
// gets method, url, headers and body, and returns status, headers, whose arrays are a field for
// each element, and body (a table becomes JSON), or nil and an error. Any other error in it fails
// the test, even if the requesting code handles it.
func testHTTP(r *testFile, L *lua.LState) int {
	fn := L.CheckFunction(1)
	r.tests.setHTTP(func(request luastd.HTTPRequest) (luastd.HTTPResponse, error) {
		return answerHTTP(r, L, fn, request)
	})
	return 0
}

func answerHTTP(r *testFile, L *lua.LState, fn *lua.LFunction, asked luastd.HTTPRequest) (luastd.HTTPResponse, error) {
	headers := map[string]any{}
	for name, values := range asked.Headers {
		headers[name] = luastd.JoinHeader(name, values)
	}
	request := map[string]any{"method": asked.Method, "url": asked.URL, "headers": headers, "body": asked.Body}
	results, err := r.s.CallApart(L, fn, r.s.ToLua(request))
	if err == nil && (len(results) == 0 || results[0] == lua.LNil) {
		message := "no answer"
		if len(results) > 1 {
			message = reasonText(r, results[1])
		}
		return luastd.HTTPResponse{}, errors.New(message)
	}
	var answer luastd.HTTPResponse
	if err != nil {
		r.s.Raised, err = nil, luaerr.From(err)
		r.fail(err)
	} else if answer, err = response(r, results[0]); err != nil {
		err = fmt.Errorf("test.http: %w", err)
		r.fail(fmt.Errorf("%s %s: %w", asked.Method, asked.URL, err))
	}
	return answer, err
}

// response reads the answer of a function of a test.
func response(r *testFile, v lua.LValue) (luastd.HTTPResponse, error) {
	given, err := r.s.FromLua(v, "response")
	if err != nil {
		return luastd.HTTPResponse{}, err
	}
	object, ok := given.(map[string]any)
	if !ok {
		return luastd.HTTPResponse{}, errors.New("the function must return a table with status, headers and body")
	}
	return readResponse(object)
}

var responseNames = []string{"body", "headers", "status"}

func readResponse(given map[string]any) (answer luastd.HTTPResponse, err error) {
	answer = luastd.HTTPResponse{Status: 200, Headers: map[string][]string{}}
	for name := range given {
		if !slices.Contains(responseNames, name) {
			return answer, fmt.Errorf("an answer has no %s%s", strconv.Quote(name), luaerr.DidYouMean(name, responseNames))
		}
	}
	if status, ok := given["status"]; ok {
		answer.Status, err = strconv.Atoi(fmt.Sprint(status))
		if err != nil || answer.Status < 100 || answer.Status > 999 {
			return answer, errors.New("status is a number of three digits")
		}
	}
	headers, ok := given["headers"].(map[string]any)
	if !ok && given["headers"] != nil {
		return answer, errors.New("headers is a table by name")
	}
	for name, v := range headers {
		if answer.Headers[name], ok = headerTexts(v); !ok {
			return answer, fmt.Errorf("headers.%s is text, a number, a boolean, or an array of them", name)
		}
	}
	body, ok := given["body"]
	switch body := body.(type) {
	case nil:
		if ok {
			answer.Body = "null"
		}
	case string:
		answer.Body = body
	default:
		answer.Body = string(store.EncodeJSON(body))
	}
	return answer, nil
}

// headerTexts returns the values of a header of an answer: one for each element of an array.
func headerTexts(v any) (texts []string, ok bool) {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	for _, v := range list {
		switch v.(type) {
		case nil, []any, map[string]any:
			return nil, false
		}
		texts = append(texts, fmt.Sprint(v))
	}
	return texts, true
}
