package modeltest_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"obelus/host/model/modeltest"
)

// generated are schemas of every kind that is generated from.
var generated = []string{
	`{"type":"object","properties":{"a":{"type":"integer","minimum":3,"maximum":5},"b":{"type":"string"}},"required":["a"],"additionalProperties":false}`,
	`{"type":"array","items":{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1},"minItems":2,"maxItems":3}`,
	`{"type":"number","multipleOf":0.5,"minimum":-1}`,
	`{"type":"integer","maximum":-7}`,
	`{"type":["string","null"],"maxLength":3}`,
	`{"type":"string","minLength":20}`,
	`{"type":"string","pattern":"^†[a-z]+(\\.[a-z0-9_]{2,4})*$"}`,
	`{"type":"string","pattern":"^\\(?†"}`,
	`{"enum":["a",1,null]}`,
	`{"const":{"a":[1]}}`,
	`{"anyOf":[{"type":"null"},{"type":"object","properties":{"to":{"const":"x"},"value":{"type":"boolean"}},"required":["to","value"],"additionalProperties":false}]}`,
	`{"allOf":[{"type":"object","properties":{"a":{"type":"boolean"}},"required":["a"]},{"properties":{"b":{"type":"null"}},"required":["b"]}]}`,
	`{"type":"object","properties":{"tree":{"$ref":"#/$defs/tree"}},"required":["tree"],"$defs":{"tree":{"anyOf":[{"type":"null"},{"type":"object","properties":{"l":{"$ref":"#/$defs/tree"},"r":{"$ref":"#/$defs/tree"}},"required":["l","r"],"additionalProperties":false}]}}}`,
	`{"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}],"items":{"type":"boolean"}}`,
	`{"type":"object","additionalProperties":{"type":"integer"}}`,
	`{"type":"string","format":"date-time"}`,
	`{}`,
	`true`,
}

func TestGenerate(t *testing.T) {
	for _, text := range generated {
		schema, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		c := jsonschema.NewCompiler()
		if err := c.AddResource("s.json", schema); err != nil {
			t.Fatal(err)
		}
		compiled := c.MustCompile("s.json")
		differ := map[string]bool{}
		for seed := range uint64(50) {
			v := modeltest.Generate(schema, seed)
			if err := compiled.Validate(v); err != nil {
				t.Errorf("%s, seed %d: %v", text, seed, err)
			}
			if again := modeltest.Generate(schema, seed); !reflect.DeepEqual(v, again) {
				t.Errorf("%s, seed %d: %v, and then %v", text, seed, v, again)
			}
			asJSON, _ := json.Marshal(v)
			differ[string(asJSON)] = true
		}
		if len(differ) < 2 && !strings.Contains(text, "const") && !strings.Contains(text, "date") {
			t.Errorf("%s: all seeds give %v", text, differ)
		}
	}
}

func TestMonkey(t *testing.T) {
	var a, b bytes.Buffer
	if err := modeltest.Monkey(&a); err != nil {
		t.Fatal(err)
	}
	if err := modeltest.Monkey(&b); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Error("the file differs from one time to the next")
	}
	if !bytes.HasPrefix(a.Bytes(), []byte("GGUF\x03\x00\x00\x00")) || a.Len() < 200_000 || a.Len() > 400_000 {
		t.Errorf("%d bytes, beginning with %q", a.Len(), a.Bytes()[:8])
	}
}

func TestServer_RefusesWhatIsNoRequest(t *testing.T) {
	s := modeltest.NewServer(t)
	for _, test := range []struct {
		method, path, body string
		status             int
		said               string
	}{
		{"GET", "/models", "", 200, `"id":"modeltest"`},
		{"GET", "/chat/completions", "", 405, "use POST"},
		{"POST", "/completions", "{}", 404, "there is nothing at"},
		{"POST", "/chat/completions", "{", 400, "not a JSON object"},
		{"POST", "/chat/completions", "{}", 400, "model is missing"},
		{"POST", "/messages", `{"model":"m","messages":[]}`, 400, "messages is missing"},
		{"POST", "/messages", `{"model":"m","messages":[{"role":"user","content":"hi"}]}`, 200, `"stop_reason":"end_turn"`},
		{"POST", "/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hi"}]}`, 200, `"finish_reason":"stop"`},
	} {
		r, err := http.NewRequest(test.method, s.URL+test.path, strings.NewReader(test.body))
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || response.StatusCode != test.status || !strings.Contains(string(text), test.said) {
			t.Errorf("%s %s %s: %d %s %v; want %d with %s", test.method, test.path, test.body, response.StatusCode, text, err, test.status, test.said)
		}
	}
}
