package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"obelus/engine/schema"
	"obelus/host"
	"obelus/host/model/modeltest"
	"obelus/host/web/internal/api"
	"obelus/store"
)

// document returns the OpenAPI document of a site.
func (s *site) document() map[string]any {
	s.t.Helper()
	status, text := s.ask("GET", "/openapi.json", "")
	v, err := store.DecodeJSON([]byte(text))
	if status != http.StatusOK || err != nil {
		s.t.Fatalf("%d %v", status, err)
	}
	return v.(map[string]any)
}

// at returns the value to which keys lead in JSON; nil where they lead nowhere.
func at(v any, keys ...string) any {
	for _, key := range keys {
		object, _ := v.(map[string]any)
		v = object[key]
	}
	return v
}

// TestOpenAPI_AllRoutes holds that each route is described, with all of its parameters and the role
// that it needs, and nothing else is.
func TestOpenAPI_AllRoutes(t *testing.T) {
	s := serve(t, work, nil, nil)
	document := s.document()
	ids := map[any]bool{}
	for _, o := range operations() {
		path := o.path()
		operation, _ := at(document, "paths", strings.ReplaceAll(path, "...}", "}"), strings.ToLower(o.method())).(map[string]any)
		if operation == nil {
			t.Errorf("%s is not described", o.Route)
			continue
		}
		if id := operation["operationId"]; id == "" || ids[id] {
			t.Errorf("%s has the id %q, which it must have alone", o.Route, id)
		} else {
			ids[id] = true
		}
		if !slices.ContainsFunc(api.Tags, func(tag api.Tag) bool { return tag.Name == at(operation, "tags").([]any)[0] }) || operation["summary"] == "" {
			t.Errorf("%s: %v", o.Route, operation)
		}
		if want := o.role().String(); (operation["x-role"] == nil) != (o.role() == host.NoRole) || operation["x-role"] != nil && operation["x-role"] != want {
			t.Errorf("%s needs %s, and not %v", o.Route, want, operation["x-role"])
		}
		var got, want []string
		parameters, _ := operation["parameters"].([]any)
		for _, p := range parameters {
			if at(p, "description") == "" || at(p, "schema") == nil {
				t.Errorf("%s: the parameter %v is not described", o.Route, at(p, "name"))
			}
			got = append(got, fmt.Sprint(at(p, "in"), " ", at(p, "name")))
		}
		for _, match := range regexp.MustCompile(`\{(\w+)`).FindAllStringSubmatch(path, -1) {
			want = append(want, "path "+match[1])
		}
		for i := 0; o.in != nil && i < o.in.NumField(); i++ {
			want = append(want, queryNames(o.in.Field(i))...)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s has the parameters %v, not %v", o.Route, got, want)
		}
	}
}

// queryNames returns the parameters of a field of the struct that a request is read into.
func queryNames(field reflect.StructField) (names []string) {
	if name := field.Tag.Get("query"); name != "" {
		return []string{"query " + name}
	}
	for i := 0; field.Anonymous && i < field.Type.NumField(); i++ {
		names = append(names, queryNames(field.Type.Field(i))...)
	}
	return names
}

// TestOpenAPI_Same holds that the document is the same each time it is made, so that clients can
// keep it under version control.
func TestOpenAPI_Same(t *testing.T) {
	s := serve(t, work, nil, nil)
	first := string(store.EncodeJSON(api.Document(s.server.described(), "/")))
	for range 10 {
		if string(store.EncodeJSON(api.Document(s.server.described(), "/"))) != first {
			t.Fatal("it is another one")
		}
	}
}

// closed returns a schema in which objects with known fields have no others.
func closed(v any) any {
	switch v := v.(type) {
	case map[string]any:
		object := map[string]any{}
		for key, below := range v {
			object[key] = closed(below)
		}
		if properties, ok := object["properties"]; ok && object["additionalProperties"] == nil && properties != nil {
			if _, isSchema := object["type"]; isSchema { // and not a field of that name
				object["additionalProperties"] = false
			}
		}
		return object
	case []any:
		all := make([]any, len(v))
		for i, below := range v {
			all[i] = closed(below)
		}
		return all
	}
	return v
}

// exchange is a request, with the answer that it must have.
type exchange struct {
	pattern, path, body string
	status              int
}

// exchanges are requests of each route, in an order in which they can be made.
func exchanges(s *site) []exchange {
	digest := s.host.Generation().Digest
	const held = `{"plan":"plans/chain.lua","input":{"n":1},"context":"%s","approve":"always","wait":true}`
	run := func(format, name string) exchange {
		return exchange{"POST /v1/runs", "/v1/runs", fmt.Sprintf(format, name), 200}
	}
	return []exchange{
		{"POST /v1/runs", "/v1/runs", `{"plan":"plans/chain.lua","input":{"n":5},"context":"a","wait":true,"labels":{"x":"y"}}`, 200},
		{"POST /v1/runs", "/v1/runs", `{"plan":"plans/sub/echo.json","context":"b"}`, 202},
		run(held, "h"), run(held, "i"), run(`{"plan":"plans/chain.lua","input":{"n":1},"context":"%s","mode":"lazy","wait":true}`, "l"),
		run(`{"plan":"plans/chain.lua","input":{"n":1},"context":"%s","mode":"lazy","wait":true}`, "l2"),
		run(`{"plan":"plans/rounds.lua","context":"%s","wait":true}`, "r"),
		run(`{"plan":"plans/conditions.lua","input":{"n":1},"context":"%s","wait":true}`, "if"),
		run(`{"plan":"plans/fails.lua","context":"%s","wait":true}`, "f"),
		{"POST /v1/contexts/{context}/messages", "/v1/contexts/a/messages", `[{"type":"state","x":1},{"type":"state","_instance":"①","x":2},{"type":"text","text":"hello"},{"type":"system","message":"do"},{"type":"tool","tool":{"t":{}}}]`, 200},
		{"GET /v1/approvals", "/v1/approvals", "", 200},
		{"GET /v1/contexts/{context}/approvals", "/v1/contexts/h/approvals", "", 200},
		{"GET /v1/contexts/{context}/approvals", "/v1/contexts/l/approvals", "", 200},
		{"POST /v1/contexts/{context}/calls/{call}/approve", "/v1/contexts/h/calls/1.1/approve", `{"set":{"b":3},"by":"eva"}`, 200},
		{"POST /v1/contexts/{context}/calls/{call}/reject", "/v1/contexts/i/calls/1.1/reject", `{"reason":"no"}`, 200},
		{"POST /v1/contexts/{context}/approve", "/v1/contexts/l/approve", `{"hash":"HASH","preview":true}`, 200},
		{"POST /v1/contexts/{context}/reject", "/v1/contexts/l/reject", `{"hash":"HASH","reason":"no"}`, 200},
		{"POST /v1/contexts/{context}/approve", "/v1/contexts/l2/approve", `{"hash":"HASH","set":{"1.1.a":3},"without":["1.2"],"by":"eva"}`, 200},
		{"POST /v1/contexts/{context}/fork", "/v1/contexts/a/fork", `{"context":"fork"}`, 200},
		{"POST /v1/contexts/{context}/resume", "/v1/contexts/fork/resume", `{"from":"1.1","set":{"a":9},"wait":true}`, 200},
		{"POST /v1/contexts/{context}/resume", "/v1/contexts/f/resume", `{"retry":["1.2"]}`, 202},
		{"POST /v1/contexts/{context}/replay", "/v1/contexts/a/replay", "", 200},
		{"DELETE /v1/runs/{context}", "/v1/runs/i", "", 200},
		{"GET /v1/runs", "/v1/runs?limit=2", "", 200},
		{"GET /v1/runs", "/v1/runs", "", 200},
		{"GET /v1/runs", "/v1/runs?label=x=y&label=z=1", "", 200}, // the parameter that may be repeated
		{"GET /v1/runs/counts", "/v1/runs/counts", "", 200},
		{"GET /v1/contexts", "/v1/contexts", "", 200},
		{"GET /v1/contexts/{context}", "/v1/contexts/a", "", 200},
		{"GET /v1/contexts/{context}", "/v1/contexts/i", "", 200},
		{"GET /v1/contexts/{context}/log", "/v1/contexts/a/log", "", 200},
		{"GET /v1/contexts/{context}/log", "/v1/contexts/f/log", "", 200},
		{"GET /v1/contexts/{context}/logs", "/v1/contexts/a/logs", "", 200},
		{"GET /v1/contexts/{context}/calls", "/v1/contexts/a/calls", "", 200},
		{"GET /v1/contexts/{context}/calls", "/v1/contexts/h/calls", "", 200},
		{"GET /v1/contexts/{context}/calls", "/v1/contexts/f/calls", "", 200},
		{"GET /v1/contexts/{context}/calls", "/v1/contexts/fork/calls", "", 200},
		{"GET /v1/contexts/{context}/get", "/v1/contexts/a/get", "", 200},
		{"GET /v1/contexts/{context}/get", "/v1/contexts/a/get?ref=state.two", "", 200},
		{"GET /v1/contexts/{context}/get", "/v1/contexts/a/get?depth=1", "", 200},
		{"GET /v1/contexts/{context}/why", "/v1/contexts/a/why?ref=state.two", "", 200},
		{"GET /v1/contexts/{context}/graph", "/v1/contexts/a/graph", "", 200},
		{"GET /v1/contexts/{context}/graph", "/v1/contexts/f/graph", "", 200},
		{"GET /v1/contexts/{context}/graph", "/v1/contexts/if/graph", "", 200},
		{"GET /v1/contexts/{context}/calls", "/v1/contexts/if/calls", "", 200},
		{"GET /v1/contexts/{context}/ticks", "/v1/contexts/r/ticks", "", 200},
		{"GET /v1/contexts/{context}/steps", "/v1/contexts/a/steps?limit=3", "", 200},
		{"GET /v1/contexts/{context}/kinds", "/v1/contexts/a/kinds", "", 200},
		{"GET /v1/contexts/{context}/downstream", "/v1/contexts/a/downstream?call=1.1", "", 200},
		run(`{"plan":"plans/judge.lua","context":"%s","wait":true}`, "j"),
		run(`{"plan":"plans/judge.lua","context":"%s","wait":true}`, "k"),
		{"GET /v1/contexts/{context}/prompt", "/v1/contexts/j/prompt?call=1.1", "", 200},
		{"GET /v1/contexts/{context}/prompt", "/v1/contexts/k/prompt", "", 200},
		{"GET /v1/contexts/{context}/children", "/v1/contexts/a/children", "", 200},
		{"GET /v1/diff", "/v1/diff?a=a&b=fork", "", 200},
		{"GET /v1/plans", "/v1/plans", "", 200},
		{"GET /v1/plans/{file...}", "/v1/plans/chain.lua", "", 200},
		{"GET /v1/plans/{file...}", "/v1/plans/broken.lua", "", 200},
		{"POST /v1/check", "/v1/check", `{}`, 200},
		{"GET /v1/tools", "/v1/tools", "", 200},
		{"POST /v1/call", "/v1/call", `{"call":{"_tool":"add","a":1}}`, 200},
		{"POST /v1/call", "/v1/call", `{"call":{"_tool":"fail"}}`, 200},
		{"GET /v1/scripts", "/v1/scripts", "", 200},
		{"GET /v1/code/{generation}/{path...}", "/v1/code/" + digest + "/activities/work.lua", "", 200},
		{"POST /v1/hooks/{hook}", "/v1/hooks/push", `{"n":1}`, 202},
		{"POST /v1/hooks/{hook}", "/v1/hooks/push", `{"n":1}`, 200},
		{"GET /healthz", "/healthz", "", 200},
		{"GET /openapi.json", "/openapi.json", "", 200},
		{"POST /v1/runs", "/v1/runs", `{"plan":"plans/bad.lua"}`, 422},
		{"GET /v1/contexts/{context}", "/v1/contexts/none", "", 404},
	}
}

// TestOpenAPI_Answers holds that the answers of a server fit the schemas that it describes them
// with, and have no field besides.
func TestOpenAPI_Answers(t *testing.T) {
	files := map[string]string{"plans/fails.lua": `return { calls = { { _tool = "fail", _outputPath = "†state.a || †state.b" }, { _tool = "fail", _outputPath = "†state.c" } } }`}
	for name, text := range chain {
		files[name] = text
	}
	model := modeltest.NewServer(t)
	model.Answer = func(*modeltest.Request) modeltest.Reply { return modeltest.Reply{Text: `{"1.1":"fine"}`} }
	files["plans/judge.lua"] = `return { tools = { judge = {} }, calls = { { _tool = "judge", _outputPath = "†state.a" } }, output = "†state.a" }`
	files["obelus.lua"] = `return { drain = "100ms", model = { url = "` + model.URL + `", model = "m", keep = true }, serve = { hooks = { push = { plan = "plans/sub/echo.json", verify = "none" } } } }`
	s := serve(t, files, nil, nil)
	document := s.document()
	withoutSchema := []string{"GET /metrics", "GET /docs", "GET /docs/style.css", "GET /v1/events", "GET /v1/contexts/{context}/events"}
	seen := map[string]bool{}
	for _, e := range exchanges(s) {
		method, path, _ := strings.Cut(e.pattern, " ")
		if strings.Contains(e.body, "HASH") {
			name := strings.Split(e.path, "/")[3]
			e.body = strings.ReplaceAll(e.body, "HASH", s.planHash(name))
		}
		status, text := s.ask(method, e.path, e.body)
		if status != e.status {
			t.Errorf("%s %s %s: %d %s", method, e.path, e.body, status, text)
			continue
		}
		described := at(document, "paths", strings.ReplaceAll(path, "...}", "}"), strings.ToLower(method), "responses", fmt.Sprint(status), "content", "application/json", "schema")
		if status >= 300 {
			described = at(document, "components", "schemas", "Error")
		} else {
			seen[fmt.Sprint(e.pattern, " ", status)] = true
		}
		compiled, err := schema.New(closed(described))
		if err != nil || described == nil {
			t.Fatalf("%s: %v", e.pattern, err)
		}
		answer, err := store.DecodeJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := compiled.Validate(answer, "the answer"); err != nil {
			t.Errorf("%s %s: %v\n%s", method, e.path, err, text)
		}
		if e.body != "" && status < 300 && !strings.Contains(path, "hooks") {
			body, err := schema.New(at(document, "paths", path, strings.ToLower(method), "requestBody", "content", "application/json", "schema"))
			if err != nil {
				t.Fatal(err)
			}
			given, err := store.DecodeJSON([]byte(e.body))
			if err == nil {
				err = body.Validate(given, "the body")
			}
			if err != nil {
				t.Errorf("%s %s: %v", method, e.path, err)
			}
		}
	}
	for _, o := range operations() {
		for _, a := range o.answers() {
			if !seen[fmt.Sprint(o.Route, " ", a.Status)] && !slices.Contains(withoutSchema, o.Route) {
				t.Errorf("no answer of %s with the status %d was looked at", o.Route, a.Status)
			}
		}
	}
}

// TestOpenAPI_Mounted holds that the document says where its paths begin.
func TestOpenAPI_Mounted(t *testing.T) {
	s := serve(t, work, nil, nil)
	if got := fmt.Sprint(at(s.document()["servers"].([]any)[0], "url")); got != "/" {
		t.Error(got)
	}
	mounted := httptest.NewServer(http.StripPrefix("/obelus", s.server))
	defer mounted.Close()
	s.http.URL = mounted.URL + "/obelus"
	if got := fmt.Sprint(at(s.document()["servers"].([]any)[0], "url")); got != "/obelus" {
		t.Error(got)
	}
}

// TestDocs_Page holds that the page has all routes, needs no token, and loads nothing but its style.
func TestDocs_Page(t *testing.T) {
	s := serve(t, withTokens(work), nil, withSecrets)
	response, err := http.Get(s.http.URL + "/docs")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if policy := response.Header.Get("Content-Security-Policy"); policy != pagePolicy || !strings.HasPrefix(policy, "default-src 'none'; style-src 'self';") {
		t.Error(policy)
	}
	if kind := response.Header.Get("Content-Type"); kind != "text/html; charset=utf-8" {
		t.Error(kind)
	}
	status, page := s.ask("GET", "/docs", "")
	if status != http.StatusOK {
		t.Fatal(status, page)
	}
	ids := map[string]bool{}
	for _, match := range regexp.MustCompile(` id="([^"]+)"`).FindAllStringSubmatch(page, -1) {
		if ids[match[1]] {
			t.Errorf("the id %s stands there twice", match[1])
		}
		ids[match[1]] = true
	}
	for _, o := range operations() {
		if !ids[o.ID] || !strings.Contains(page, "<code>"+o.path()+"</code>") {
			t.Errorf("%s is not on the page", o.Route)
		}
	}
	for _, match := range regexp.MustCompile(`href="#([^"]+)"`).FindAllStringSubmatch(page, -1) {
		if !ids[match[1]] {
			t.Errorf("a link leads to #%s, which is not there", match[1])
		}
	}
	if found := regexp.MustCompile(`(?i)<script|<img|<iframe|\sstyle=|\son[a-z]+=|ZgotmplZ`).FindString(page); found != "" {
		t.Errorf("the page has %s", found)
	}
	for _, want := range []string{
		`curl -H &#34;Authorization: Bearer $TOKEN&#34; -d &#39;{&#34;plan&#34;: &#34;plans/refund.lua&#34;, &#34;input&#34;: {&#34;customer&#34;: &#34;c-1042&#34;}, &#34;wait&#34;: true}&#39; ` + s.http.URL + `/v1/runs`,
		`<link rel="stylesheet" href="docs/style.css">`, "Held calls of a context&#39;s delegates",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if status, style := s.ask("GET", "/docs/style.css", ""); status != http.StatusOK || !strings.Contains(style, "color-scheme: light dark") || strings.Contains(style, "url(") {
		t.Error(status, style)
	}
	s.refused("POST", "/docs", "", 405, "method", bearer(host.MayRead)...)
	s.refused("GET", "/docs", "", 403, "host", "Host", "evil.example")
}

// TestDocs_Examples holds that the examples of bodies are what the routes take.
func TestDocs_Examples(t *testing.T) {
	for _, o := range described(operations()) {
		if o.Example == "" || strings.HasPrefix(o.Example, "?") {
			continue
		}
		compiled, err := schema.New(o.Body)
		if err != nil {
			t.Fatal(o.ID, err)
		}
		v, err := store.DecodeJSON([]byte(o.Example))
		if err == nil {
			err = compiled.Validate(v, "the example")
		}
		if err != nil || !json.Valid([]byte(o.Example)) || strings.Contains(o.Example, "'") {
			t.Errorf("%s: %v", o.ID, err)
		}
	}
}
