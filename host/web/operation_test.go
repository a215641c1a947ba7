package web

import (
	"context"
	"net/http"
	"os"
	"strings"
	"testing"

	"obelus/engine/lazyregexp"
	"obelus/host"
)

// repeatIn asks for a text to be repeated.
type repeatIn struct {
	contextIn
	Times int64  `query:"times" jsonschema:"How often, of all dummies."`
	Text  string `json:"text" required:"a text to repeat" jsonschema:"What a dummy says."`
}

// repeatAnswer is a text that was repeated.
type repeatAnswer struct {
	Said string `json:"said"`
}

// repeat is an operation that stands nowhere else.
func repeat() operation {
	return answering(operation{
		ID: "repeatText", Route: "POST /v1/contexts/{context}/repeat", Tag: "contexts", Summary: "Repeat a text of a dummy.",
		Example: `{"text": "ho"}`, Answer: "The text, repeated.",
	}, func(_ *Server, _ context.Context, in repeatIn) (repeatAnswer, error) {
		return repeatAnswer{Said: in.Context + ": " + strings.Repeat(in.Text, int(in.Times))}, nil
	})
}

// TestDummy_Operation holds that an operation is declared in one place, and is then a route that
// reads its requests, and is described in OpenAPI, on the page, as a curl line and in the help.
func TestDummy_Operation(t *testing.T) {
	s := serve(t, withTokens(work), nil, func(c *Config) { withSecrets(c); c.extra = []operation{repeat()} })
	run := bearer(host.MayRun)
	s.ask("POST", "/v1/contexts/a/messages", `{"type":"state","x":1}`, run...)

	status, text := s.ask("POST", "/v1/contexts/a/repeat?times=3", `{"text":"ho"}`, run...)
	if status != http.StatusOK || text != `{"said":"a: hohoho"}` {
		t.Error(status, text)
	}
	for _, test := range []struct {
		path, body string
		status     int
		code, want string
	}{
		{"/v1/contexts/a/repeat?tmies=3", `{"text":"ho"}`, 400, "request", `the query: unknown parameter "tmies" (did you mean "times"?)`},
		{"/v1/contexts/a/repeat?times=few", `{"text":"ho"}`, 400, "request", `times must be a whole number above 0, not "few"`},
		{"/v1/contexts/a/repeat?times=1&times=2", `{"text":"ho"}`, 400, "request", "the parameter times is given 2 times: give it once"},
		{"/v1/contexts/a/repeat", `{"texst":"ho"}`, 400, "request", `the body: unknown field "texst" (did you mean "text"?)`},
		{"/v1/contexts/a/repeat", `{"text":7}`, 400, "request", "text must be a string, not a number"},
		{"/v1/contexts/a/repeat", "", 400, "request", "the body needs a text to repeat"},
		{"/v1/contexts/b/repeat", `{"text":"ho"}`, 404, "no-context", "there is no context b"},
	} {
		if got := s.refused("POST", test.path, test.body, test.status, test.code, run...); got != test.want {
			t.Errorf("%s %s: %s, not %s", test.path, test.body, got, test.want)
		}
	}
	s.refused("POST", "/v1/contexts/a/repeat", `{"text":"ho"}`, 403, "role", bearer(host.MayRead)...)

	described := at(s.document(), "paths", "/v1/contexts/{context}/repeat", "post")
	for _, want := range []struct {
		keys []string
		want string
	}{
		{[]string{"operationId"}, "repeatText"},
		{[]string{"x-role"}, "run"},
		{[]string{"requestBody", "content", "application/json", "schema", "properties", "text", "description"}, "What a dummy says."},
		{[]string{"responses", "200", "content", "application/json", "schema", "properties", "said", "type"}, "string"},
	} {
		if got := at(described, want.keys...); got != want.want {
			t.Errorf("%v is %v, not %s", want.keys, got, want.want)
		}
	}
	parameters, _ := at(described, "parameters").([]any)
	if len(parameters) != 2 || at(parameters[1], "name") != "times" || at(parameters[1], "description") != "How often, of all dummies." {
		t.Errorf("parameters: %v", parameters)
	}

	_, page := s.ask("GET", "/docs", "")
	for _, want := range []string{
		`<article id="repeatText">`, "How often, of all dummies.", "What a dummy says.",
		`-d &#39;{&#34;text&#34;: &#34;ho&#34;}&#39; ` + s.http.URL + `/v1/contexts/order-7/repeat`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}

	help := docOf(s.server.operations)
	if want := `
POST /v1/contexts/{context}/repeat
  Repeat a text of a dummy.
  ?times  How often, of all dummies.
  text  What a dummy says.
  200: The text, repeated. {"said"}
`; !strings.Contains(help, want) {
		t.Error(help)
	}
	if strings.Contains(Doc(), "dummy") {
		t.Error("the operations of one server are those of all")
	}
}

// TestOperations_AllRoutes holds that no route is declared outside of the table: one place hands
// requests to a mux, those of the table.
func TestOperations_AllRoutes(t *testing.T) {
	routed := lazyregexp.New(`\.Handle(Func)?\(|ListenAndServe`)
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var places []string
	for _, entry := range entries {
		if name := entry.Name(); strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(text)) {
				if code, _, _ := strings.Cut(line, "//"); routed().MatchString(code) {
					places = append(places, name+": "+strings.TrimSpace(line))
				}
			}
		}
	}
	if len(places) != 1 || !strings.HasPrefix(places[0], "routes.go: mux.HandleFunc(o.Route, ") {
		t.Errorf("routes are declared here: %v", places)
	}
}
