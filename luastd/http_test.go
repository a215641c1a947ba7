package luastd_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	lua "github.com/yuin/gopher-lua"
	"go.uber.org/goleak"

	"obelus/host"
	"obelus/luastd"
)

// web is a server for tests, and grants for it.
func web(t *testing.T) (server *httptest.Server, config host.Config) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Header.Del("Accept-Encoding")
		r.Header.Del("Content-Length")
		w.Header().Add("X-Two", "a")
		w.Header().Add("X-Two", "b")
		json.NewEncoder(w).Encode(map[string]any{"method": r.Method, "query": r.URL.RawQuery, "headers": r.Header, "body": string(body)})
	})
	mux.HandleFunc("/cookies", func(w http.ResponseWriter, r *http.Request) {
		for _, text := range []string{"a=1; Expires=Thu, 01 Jan 2026 00:00:00 GMT", "b=2", "c=3, 4"} {
			w.Header().Add("Set-Cookie", text)
		}
		w.Header().Set("X-One", "1")
	})
	mux.HandleFunc("/status", func(w http.ResponseWriter, r *http.Request) {
		status, _ := strconv.Atoi(r.URL.RawQuery)
		http.Error(w, "said so", status)
	})
	mux.HandleFunc("/hop", func(w http.ResponseWriter, r *http.Request) {
		if n, _ := strconv.Atoi(r.URL.RawQuery); n > 0 {
			http.Redirect(w, r, fmt.Sprintf("/hop?%d", n-1), http.StatusFound)
		}
		fmt.Fprint(w, "arrived")
	})
	mux.HandleFunc("/to", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.RawQuery, http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/long", func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.RawQuery)
		w.Write(bytes.Repeat([]byte("x"), n))
	})
	mux.HandleFunc("/packed", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		defer z.Close()
		z.Write(bytes.Repeat([]byte("x"), 2<<20))
	})
	mux.HandleFunc("/gzip", func(w http.ResponseWriter, r *http.Request) {
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		z.Write(bytes.Repeat([]byte("text "), 20))
		z.Close()
		body := packed.Bytes()
		switch r.URL.RawQuery {
		case "plain":
			body = []byte("no gzip at all")
		case "short":
			body = body[:len(body)-10]
		case "cut":
			w.Header().Set("Content-Length", "100")
		case "sum":
			body[len(body)-5] ^= 1
		case "data":
			body[10] = 0xff
		case "none":
			body = nil
		}
		w.Header().Set("Content-Encoding", "gzip")
		w.Write(body)
	})
	mux.HandleFunc("/switch", func(w http.ResponseWriter, r *http.Request) {
		conn, _, _ := w.(http.Hijacker).Hijack()
		defer conn.Close()
		fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: silence\r\n\r\n")
		conn.Read(make([]byte, 1))
	})
	mux.HandleFunc("/never", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/halt", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "half")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	mux.HandleFunc("/cut", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "10")
		fmt.Fprint(w, "half")
	})
	server = httptest.NewServer(mux)
	t.Cleanup(server.Close)
	t.Cleanup(luastd.CloseIdleConnections)
	return server, host.Config{Grants: &luastd.Grants{Net: luastd.Grant{List: []string{strings.TrimPrefix(server.URL, "http://")}}}}
}

// TestHTTP_RedirectKeepsSecrets: what a request says who it is by goes to nobody else, be it
// another port of the same host.
func TestHTTP_RedirectKeepsSecrets(t *testing.T) {
	got := make(chan http.Header, 1)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r.Header }))
	t.Cleanup(other.Close)
	first := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/there" {
			got <- r.Header
			return
		}
		http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusFound)
	}))
	t.Cleanup(first.Close)
	t.Cleanup(luastd.CloseIdleConnections)
	config := host.Config{Grants: &luastd.Grants{Net: luastd.Grant{All: true}}}
	for to, kept := range map[string]bool{"/there": true, other.URL: false} {
		text := `return http.get("` + first.URL + `/?to=` + to + `", {headers = {authorization = "Bearer S", cookie = "a=b", ["x-other"] = "1"}}).status`
		if answer := run(t, config, text); answer != "200" {
			t.Errorf("%s: %s", to, answer)
		}
		if h := <-got; (h.Get("Authorization") != "") != kept || (h.Get("Cookie") != "") != kept || h.Get("X-Other") != "1" {
			t.Errorf("%s: %v", to, h)
		}
	}
}

func TestHTTP_Requests(t *testing.T) {
	server, config := web(t)
	tests := []struct{ body, want string }{
		{`local a = http.get(U .. "/echo") return {a.status, a.headers["x-two"], a.headers["content-type"], a:json().method, a:json().headers["User-Agent"][1]}`, `[200,"a, b","text/plain; charset=utf-8","GET","obelus"]`},
		{`return http.get(U .. "/echo?x=1#f", {query = {a = {1, "b c"}, n = true}}):json().query`, `"x=1&a=1&a=b+c&n=true"`},
		{`return http.get(U .. "/echo", {headers = {["X-One"] = "1", ["X-Many"] = {"a", 2}, ["user-agent"] = "me"}}):json().headers`, `{"User-Agent":["me"],"X-Many":["a","2"],"X-One":["1"]}`},
		{`return http.get(U .. "/echo", {headers = {Cookie = {"a=1", "b=2"}, ["x-a"] = json.array(), ["x-b"] = {"1"}, ["X-B"] = "2", ["content-type"] = ""}}):json().headers`, `{"Content-Type":[""],"Cookie":["a=1; b=2"],"User-Agent":["obelus"],"X-B":["2","1"]}`},
		{`local a = http.get(U .. "/cookies") return {a.cookies, a.headers["set-cookie"], a.headers["x-one"]}`, `[["a=1; Expires=Thu, 01 Jan 2026 00:00:00 GMT","b=2","c=3, 4"],"a=1; Expires=Thu, 01 Jan 2026 00:00:00 GMT, b=2, c=3, 4","1"]`},
		{`local a = http.get(U .. "/status?204") return a.cookies`, `[]`},
		{`return http.get(U .. "/echo?q=a b&é=<50%>&c=%20"):json().query`, `"q=a%20b&%C3%A9=%3C50%%3E&c=%20"`},
		{`return http.post(U .. "/to?/echo?q=a b"):json().query`, `"q=a%20b"`},
		{`local e = http.post(U .. "/echo", {json = {a = {1, json.null}, s = "<é>"}}):json() return {e.method, e.body, e.headers["Content-Type"]}`, `["POST","{\"a\":[1,null],\"s\":\"<é>\"}",["application/json"]]`},
		{`local e = http.post(U .. "/echo", {json = false, headers = {["Content-Type"] = "text/x"}}):json() return {e.body, e.headers["Content-Type"]}`, `["false",["text/x"]]`},
		{`local e = http.request{method = "patch", url = U .. "/echo", body = "plain"}:json() return {e.method, e.body}`, `["PATCH","plain"]`},
		{`local a = http.request{method = "HEAD", url = U .. "/echo"} return {a.status, a.body}`, `[200,""]`},
		{`local a = http.request{url = U .. "/status?404"} return {a.status, a.body}`, `[404,"said so\n"]`},
		{`return http.get(U .. "/status?503").status`, `503`},
		{`return http.get(U .. "/long?3")`, `{"body":"xxx","cookies":[],"headers":`},
		{`return getmetatable(http.get(U .. "/long?3"))`, `false`},
		{`local a = http.get(U .. "/status?500") return a.json()`, `activities/a.lua:2: bad argument #1 to a.json: an answer expected: call it as answer:json()`},
		{`return select(2, http.get(U .. "/status?500"):json())`, `"not JSON: `},

		{`return http.get(U .. "/hop?10").body`, `"arrived"`},
		{`return select(2, http.get(U .. "/hop?11"))`, `"GET U/hop: too many redirects"`},
		{`return http.get(U .. "/hop?2", {redirects = 2}).body`, `"arrived"`},
		{`return select(2, http.get(U .. "/hop?3", {redirects = 2}))`, `"GET U/hop: too many redirects"`},
		{`local a = http.get(U .. "/hop?3", {redirects = 0}) return {a.status, a.headers.location}`, `[302,"/hop?2"]`},
		{`return http.post(U .. "/to?/echo", {body = "again"}):json().body`, `"again"`},
		{`return http.get(U .. "/to?/echo"):json().headers`, `{"User-Agent":["obelus"]}`},
		{`return select(2, http.get(U .. "/to?http://169.254.169.254/latest"))`, `"GET U/to: connecting to 169.254.169.254:80 is not allowed: run with --allow-net=169.254.169.254:80 or set allow.net in obelus.lua"`},
		{`return select(2, http.get(U .. "/to?http://localhost:1/"))`, `"GET U/to: connecting to localhost:1 is not allowed: run with --allow-net=localhost:1 or set allow.net in obelus.lua"`},
		{`return select(2, http.get(U .. "/to?file:///etc/passwd"))`, `"GET U/to: the redirect to file:///etc/passwd is not followed: only those to http or https and a host are"`},
		{`return select(2, http.get(U .. "/to?ftp://me:secret@example.com/x?key=secret"))`, `"GET U/to: the redirect to ftp://example.com/x is not followed: only those to http or https and a host are"`},
		{`return select(2, http.get(U .. "/to?mailto:secret"))`, `"GET U/to: the redirect to mailto:… is not followed: only those to http or https and a host are"`},
		{`return select(2, http.get(U .. "/to?http:///x"))`, `"GET U/to: the redirect to http:///x is not followed: only those to http or https and a host are"`},
		{`return http.get(U .. "/to?file:///etc/passwd", {redirects = 0}).status`, `307`},

		{`return #http.get(U .. "/long?" .. 10 * 1024 * 1024).body`, `10485760`},
		{`return select(2, http.get(U .. "/long?" .. 10 * 1024 * 1024 + 1))`, `"GET U/long: the answer is longer than 10485760 bytes"`},
		{`return #http.get(U .. "/long?11000000", {max_bytes = 11000000}).body`, `11000000`},
		{`return select(2, http.get(U .. "/long?10", {max_bytes = 9}))`, `"GET U/long: the answer is longer than 9 bytes"`},
		{`return select(2, http.get(U .. "/packed", {max_bytes = 1e6}))`, `"GET U/packed: the answer is longer than 1000000 bytes"`},
		{`local t = {} for i, how in ipairs{"plain", "sum", "data", "short", "cut"} do t[i] = select(2, http.get(U .. "/gzip?" .. how)) end return t`,
			`["GET U/gzip: the answer says that its body is gzip, and the body is no valid gzip","GET U/gzip: the answer says that its body is gzip, and the body is no valid gzip","GET U/gzip: the answer says that its body is gzip, and the body is no valid gzip","GET U/gzip: the answer's body is gzip, and ends too early","GET U/gzip: the answer's body is gzip, and ends too early"]`},
		{`return {#http.get(U .. "/gzip").body, http.get(U .. "/gzip?none").body, #http.get(U .. "/gzip?plain", {headers = {["accept-encoding"] = "gzip"}}).body}`, `[100,"",14]`},
		{`return select(2, http.get(U .. "/cut"))`, `"GET U/cut: the connection ended before the answer did"`},
		{`return select(2, http.get(U .. "/switch", {timeout = 5}))`, `"GET U/switch: the answer is not HTTP: the server has switched to another protocol"`},
		{`return select(2, http.get(U .. "/never", {timeout = 0.05}))`, `"GET U/never: no answer within 50ms"`},
		{`return select(2, http.get(U .. "/halt", {timeout = "50ms"}))`, `"GET U/halt: no answer within 50ms"`},

		{`return select(2, http.get("https://me:secret@example.com:8443/p?key=secret"))`, `"GET https://example.com:8443/p: connecting to example.com:8443 is not allowed: run with --allow-net=example.com:8443 or set allow.net in obelus.lua"`},
		{`return select(2, http.get("ftp://example.com/"))`, `"not a URL: it does not begin with http:// or https:// and a host"`},
		{`return select(2, http.get("http://x:65536/"))`, `"not a URL: the port 65536 is above 65535"`},
		{`return select(2, http.get("example.com"))`, `"not a URL: it does not begin with http:// or https:// and a host"`},
		{`return select(2, http.get("http://x/\n"))`, `"not a URL: invalid control character in URL"`},
		{`return http.get(U, {timeout = 0})`, `activities/a.lua:2: bad argument #2 to http.get: timeout is a number of seconds above 0, or text like "5s"`},
		{`return http.get(U, {timeout = "soon"})`, `activities/a.lua:2: bad argument #2 to http.get: timeout is a number of seconds above 0, or text like "5s"`},
		{`return http.get(U, {redirects = -1})`, `activities/a.lua:2: bad argument #2 to http.get: redirects is a whole number from 0 to 100`},
		{`return http.get(U, {max_bytes = 2^30})`, `activities/a.lua:2: bad argument #2 to http.get: max_bytes is a whole number from 1 to 16777216`},
		{`return http.get(U, {json = 1, body = "x"})`, `activities/a.lua:2: bad argument #2 to http.get: json and body are both given`},
		{`return http.get(U, {body = {}})`, `activities/a.lua:2: bad argument #2 to http.get: body is text`},
		{`return http.get(U, {json = print})`, `activities/a.lua:2: json: a function is not a JSON value`},
		{`return http.get(U, {headers = {Host = "x"}})`, `activities/a.lua:2: bad argument #2 to http.get: headers can't have "host"`},
		{`return http.get(U, {headers = {["a b"] = "x"}})`, `activities/a.lua:2: bad argument #2 to http.get: headers can't have "a b"`},
		{`return http.get(U, {headers = {a = "x\r\nb: y"}})`, `activities/a.lua:2: bad argument #2 to http.get: headers.a is text on one line`},
		{`return http.get(U, {headers = "x"})`, `activities/a.lua:2: bad argument #2 to http.get: headers is a table by name`},
		{`return http.get(U, {query = {a = {{}}}})`, `activities/a.lua:2: bad argument #2 to http.get: query.a is text, a number, a boolean, or an array of them`},
		{`return http.get(U, {method = "PUT"})`, `activities/a.lua:2: bad argument #2 to http.get: unknown option method (one of body, headers, json, max_bytes, query, redirects, timeout)`},
		{`return http.request{method = "GET"}`, `activities/a.lua:2: bad argument #1 to http.request: url is text`},
		{`return http.request{url = U, method = 5}`, `activities/a.lua:2: bad argument #1 to http.request: method is text`},
		{`return http.request{url = U, method = "A B"}`, `activities/a.lua:2: bad argument #1 to http.request: method can't be "A B"`},
		{`return http.request{url = U, method = "CONNECT"}`, `activities/a.lua:2: bad argument #1 to http.request: method can't be "CONNECT"`},
		{`return http.request(U)`, `activities/a.lua:2: bad argument #1 to http.request: table expected, got string`},
		{`return http.get()`, `activities/a.lua:2: bad argument #1 to http.get: string expected, got nil`},
	}
	for _, test := range tests {
		got := run(t, config, "local U = '"+server.URL+"' "+test.body)
		if got = strings.ReplaceAll(got, server.URL, "U"); got != test.want && !strings.HasPrefix(got, strings.TrimSuffix(test.want, "?")) {
			t.Errorf("%s\ngot  %s\nwant %s", test.body, got, test.want)
		}
	}
}

// TestHTTP_Deadline holds requests to the time of the call, which no timeout of
// theirs and no pcall prolongs.
func TestHTTP_Deadline(t *testing.T) {
	server, config := web(t)
	for _, body := range []string{
		`return select(2, http.get("` + server.URL + `/never", {timeout = 60}))`,
		`return {pcall(http.get, "` + server.URL + `/halt")}`,
	} {
		if got := runFor(t, config, 0.1, body); got != "timed out after 100ms" {
			t.Errorf("%s: got %s", body, got)
		}
	}
}

// TestHTTP_Grants holds the ways to grant the machine itself.
func TestHTTP_Grants(t *testing.T) {
	server, _ := web(t)
	port := server.URL[strings.LastIndexByte(server.URL, ':')+1:]
	for _, test := range []struct {
		grant luastd.Grant
		host  string
		want  bool
	}{
		{luastd.Grant{All: true}, "127.0.0.1", true},
		{luastd.Grant{All: true}, "localhost", true},
		{luastd.Grant{List: []string{"localhost"}}, "localhost", true},
		{luastd.Grant{List: []string{"localhost:" + port}}, "localhost", true},
		{luastd.Grant{List: []string{"localhost:1"}}, "localhost", false},
		{luastd.Grant{List: []string{"localhost"}}, "127.0.0.1", false},
		{luastd.Grant{List: []string{"127.0.0.1"}}, "127.0.0.1", true},
		{luastd.Grant{}, "127.0.0.1", false},
	} {
		got := run(t, host.Config{Grants: &luastd.Grants{Net: test.grant}}, `return (http.get("http://`+test.host+`:`+port+`/long?1") or {}).body == "x"`)
		if got != strconv.FormatBool(test.want) {
			t.Errorf("%v on %s: %s", test.grant, test.host, got)
		}
	}
}

func TestHTTP_Failures(t *testing.T) {
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	config := host.Config{Grants: &luastd.Grants{Net: luastd.Grant{All: true}}}
	for target, want := range map[string]string{
		secure.URL: "the certificate is signed by an unknown authority",
		gone.URL:   "the connection was refused",
		"http" + strings.TrimPrefix(secure.URL, "https"): "", // an answer, of status 400
	} {
		got := run(t, config, `return (select(2, http.get("`+target+`")))`)
		if want != "" && got != `"GET `+target+": "+want+`"` || want == "" && got != "null" && !strings.Contains(got, "nothing") {
			t.Errorf("%s: got %s", target, got)
		}
	}
}

// TestHTTP_TopLevel holds that a script's top level asks for nothing.
func TestHTTP_TopLevel(t *testing.T) {
	_, config := web(t)
	config.FS = fstest.MapFS{"activities/a.lua": {Data: []byte(`require("http").get("http://x/")`)}}
	if _, err := host.Open(config); err == nil || !strings.Contains(err.Error(), "http.get is refused at the top level") {
		t.Errorf("got %v", err)
	}
}

// TestHTTP_LeavesNothing holds that requests, those that failed among them, end
// with all that they started.
func TestHTTP_LeavesNothing(t *testing.T) {
	before := goleak.IgnoreCurrent()
	server, config := web(t)
	for _, path := range []string{"/echo", "/never", "/halt", "/cut", "/packed", "/hop?11", "/switch"} {
		run(t, config, `return select(2, http.get("`+server.URL+path+`", {timeout = 0.05}))`)
	}
	luastd.CloseIdleConnections()
	server.Close()
	goleak.VerifyNone(t, before)
}

// plainCodec knows strings and flat tables: enough for what stands for the
// network.
type plainCodec struct{ luastd.Codec }

func (plainCodec) Fill(*lua.LTable) {}

func (plainCodec) MarkArray(*lua.LTable) {}

func (plainCodec) FromLua(v lua.LValue, _ string) (any, error) { return v.String(), nil }

// TestHTTP_Hook holds what a test puts in the place of the network: no
// permission is asked for, and the top level is still refused.
func TestHTTP_Hook(t *testing.T) {
	var asked luastd.HTTPRequest
	env := &luastd.Env{
		Codec:   plainCodec{},
		Effect:  func(*lua.LState, string) {},
		Context: func() (context.Context, context.CancelFunc) { return context.WithTimeout(t.Context(), time.Minute) },
		HTTP: func(_ context.Context, r luastd.HTTPRequest) (luastd.HTTPResponse, error) {
			if asked = r; strings.HasSuffix(r.URL, "/fail") {
				return luastd.HTTPResponse{}, errors.New("no such stub")
			}
			return luastd.HTTPResponse{Status: 302, Headers: map[string][]string{"X-Y": {"z"}}, Body: "stubbed"}, nil
		},
	}
	L := lua.NewState()
	defer L.Close()
	module, _ := luastd.Find("http")
	for _, f := range module.Funcs {
		L.SetGlobal(f.Name, L.NewFunction(func(L *lua.LState) int { return f.Fn(env, L) }))
	}
	if err := L.DoString(`local a = post("https://x.example/p", {body = "b"}) assert(a.status == 302 and a.headers["x-y"] == "z" and a.body == "stubbed")
		local none, err = get("https://x.example/fail") assert(none == nil and err == "GET https://x.example/fail: no such stub", err)`); err != nil {
		t.Error(err)
	}
	env.HTTP(t.Context(), luastd.HTTPRequest{URL: "again"})
	if asked.URL != "again" {
		t.Error("the hook was not kept")
	}
}
