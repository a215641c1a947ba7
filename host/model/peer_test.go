package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"obelus/engine/plan"
	"obelus/host/model/fit"
	"obelus/host/model/modeltest"
)

// deafMonkey is the model without its prompt, which it knows nothing of anyway: nearly all the time of
// a request to the other goes into reading that.
const deafMonkey = "deaf"

// ollama starts the Ollama that the environment variable OBELUS_OLLAMA names, with a model that types
// what a schema allows, and returns its address. Without it the test is skipped.
func ollama(t *testing.T) string {
	t.Helper()
	binary := os.Getenv("OBELUS_OLLAMA")
	if binary == "" {
		t.Skip("skipped: OBELUS_OLLAMA names no program of Ollama to ask")
	}
	dir := filepath.Dir(monkey(t))
	address := loopback(t)
	run := func(arguments ...string) (*exec.Cmd, *bytes.Buffer) {
		var said bytes.Buffer
		c := exec.Command(binary, arguments...)
		c.Dir, c.Stdout, c.Stderr = dir, &said, &said
		c.Env = append(os.Environ(), "HOME="+dir, "OLLAMA_MODELS="+filepath.Join(dir, "models"), "OLLAMA_HOST="+address, "OLLAMA_NUM_PARALLEL=1")
		return c, &said
	}
	server, _ := run("serve")
	start(t, server)
	await(t, "http://"+address+"/api/version")
	for name, text := range map[string]string{"monkey": modeltest.Modelfile, deafMonkey: strings.Replace(modeltest.Modelfile, "{{ .System }} {{ .Prompt }}", ".", 1)} {
		if err := os.WriteFile(filepath.Join(dir, "Modelfile"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if c, said := run("create", name, "-f", "Modelfile"); c.Run() != nil {
			t.Fatalf("the model is not made: %s", said)
		}
	}
	return "http://" + address + "/v1"
}

// fromNPM returns the folder with what .ci/npm installs, which the environment variable OBELUS_NPM
// names. Without it the test is skipped.
func fromNPM(t *testing.T) string {
	t.Helper()
	folder := os.Getenv("OBELUS_NPM")
	if folder == "" {
		t.Skip("skipped: OBELUS_NPM names no folder that .ci/npm has filled")
	}
	return folder
}

// llamaCpp starts a server over llama.cpp, with the same model, and returns its address. Its grammars
// are those that llama.cpp makes of schemas; a schema of which it leaves out a part is refused.
func llamaCpp(t *testing.T) string {
	t.Helper()
	folder, address, script := fromNPM(t), loopback(t), filepath.Join("testdata", "llamacpp.mjs")
	if _, err := os.Stat(script); err != nil { // which has the test run again once the script changes
		t.Fatal(err)
	}
	server := exec.Command("node", script, folder, monkey(t), address)
	server.Stdout, server.Stderr = t.Output(), t.Output()
	start(t, server)
	await(t, "http://"+address+"/")
	return "http://" + address + "/v1"
}

// monkey writes the model into a folder of the test's own, and returns the file.
func monkey(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "monkey.gguf")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := modeltest.Monkey(file); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return name
}

// loopback returns an address of this machine that is free.
func loopback(t *testing.T) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = free.Close() }()
	return free.Addr().String()
}

// start starts a server, which ends with the test.
func start(t *testing.T, server *exec.Cmd) {
	t.Helper()
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		late := time.AfterFunc(10*time.Second, func() { _ = server.Process.Kill() })
		_ = server.Process.Signal(os.Interrupt)
		_ = server.Wait()
		late.Stop()
	})
}

// await asks until a server answers, for 30 seconds.
func await(t *testing.T, url string) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if response, err := http.Get(url); err == nil {
			_ = response.Body.Close()
			return
		}
	}
	t.Fatalf("nothing answers at %s", url)
}

// TestPeer_Ollama asks a real server for values of schemas.
func TestPeer_Ollama(t *testing.T) {
	c, err := NewClient(Config{Name: "here", Provider: "ollama", Model: "monkey", URL: ollama(t), Strict: true}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	schemas := append(randomSchemas(50), parsed(t, exactSchemas)...)
	if whole := askFor(t, c, schemas); whole < len(schemas)*4/5 {
		t.Errorf("%d answers of %d were whole", whole, len(schemas))
	}
	t.Run("cut off", func(t *testing.T) { isCutOff(t, c) })
	t.Run("no such model", func(t *testing.T) {
		other, err := NewClient(Config{Name: "other", Provider: "ollama", Model: "nobody", URL: c.config.URL}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := other.Ask(t.Context(), question(), nil); err == nil || !notFound.MatchString(err.Error()) {
			t.Error(err)
		}
	})
}

// notFound is what a server says of a model that it has not.
var notFound = regexp.MustCompile(`404 Not Found: model ["']nobody["'] not found`)

// TestPeer_OllamaMessages asks a real server over the wire of Messages, which takes a schema there and
// ignores it: the first answer that is no JSON, or breaks the schema, is caught, and where the server
// did not heed the schema at all, the client goes down the ladder, and says so. What comes in the end
// fits the schema, or is an error with the code for that.
func TestPeer_OllamaMessages(t *testing.T) {
	url := strings.TrimSuffix(ollama(t), "/v1")
	response, err := http.Post(url+"/v1/messages", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode == http.StatusNotFound {
		t.Skip("skipped: this Ollama does not speak Messages")
	}
	var warned []string
	config := Config{Name: "here", Provider: "ollama", Wire: wireAnthropic, Model: "monkey", URL: url, Params: Params{MaxTokens: 200}}
	client, err := NewClient(config, Options{Warn: func(text string) { warned = append(warned, text) }})
	if err != nil {
		t.Fatal(err)
	}
	schema := parsed(t, []string{`{"type": "object", "properties": {"good": {"type": "boolean"}}, "required": ["good"], "additionalProperties": false}`})[0]
	hot, caught, used := 1.3, 0, map[string]bool{}
	for seed := range int64(12) {
		q := &Request{Purpose: purposeAsk, System: "Type.", Blocks: []string{"Go."}, Schema: schema, Params: Params{Temperature: &hot, Seed: &seed, MaxTokens: 200}}
		a, err := client.Ask(t.Context(), q, nil)
		if err != nil {
			t.Fatal(err)
		}
		if used[a.Usage.Mode] = true; a.Usage.Estimated || a.Usage.Input == 0 || a.Usage.Output == 0 {
			t.Errorf("%d: %+v", seed, a.Usage)
		}
		c := config
		c.Repairs, c.Params = -1, q.Params
		v, err := New(c, client).Ask(t.Context(), AskInput{Prompt: "Go.", Schema: schema}, nil)
		fault, _ := err.(*plan.Fault)
		switch {
		case err == nil && validate(t, schema, v) != nil:
			t.Errorf("%v passes for an answer", v)
		case fault != nil && fault.Code == plan.CodeSchema:
			caught++
		case err != nil && (fault == nil || fault.Code != codeMaxTokens):
			t.Error(err)
		}
	}
	t.Logf("%d answers are caught; modes %v; warned %q", caught, used, warned)
	if caught == 0 {
		t.Error("no answer is caught")
	}
	if len(warned) == 0 || !strings.Contains(warned[0], "mode schema does not work: the answer is not JSON, so the provider does not hold the model to the schema") {
		t.Errorf("warned %q", warned)
	}
	strict := config
	strict.Strict = true
	client, err = NewClient(strict, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = client.Ask(t.Context(), &Request{Purpose: purposeAsk, Blocks: []string{"Go."}, Schema: schema, Params: Params{MaxTokens: 200}}, nil); err == nil || !strings.Contains(err.Error(), "strict = true allows no lower mode") {
		t.Error(err)
	}
}

// askFor asks a server for a value of each schema. It holds that a whole answer fits, and that one
// that ends at the limit of tokens says so. It returns how many were whole.
func askFor(t *testing.T, c *Client, schemas []any) (whole int) {
	t.Helper()
	hot := 1.3
	for i, schema := range schemas {
		seed := int64(i)
		a, err := c.Ask(t.Context(), &Request{Purpose: purposeAsk, System: "Type.", Blocks: []string{"Go."}, Schema: schema,
			Params: Params{Temperature: &hot, Seed: &seed, MaxTokens: 400}}, nil)
		if err != nil {
			t.Errorf("%d: %v", i, err)
			continue
		}
		if u := a.Usage; u.Estimated || u.Input == 0 || u.Output == 0 || u.Mode != modeSchema || u.Served != "monkey" || u.Requests != 1 {
			t.Errorf("%d: %+v", i, u)
		}
		if a.CutOff {
			if a.Value.Set || a.Usage.Finish != "length" || a.Usage.Output != 400 {
				t.Errorf("%d: %+v", i, a)
			}
			continue
		}
		whole++
		if !a.Value.Set || a.Usage.Finish != "stop" {
			t.Errorf("%d: %+v", i, a)
			continue
		}
		if err := validate(t, schema, a.Value.Value); err != nil {
			text, _ := fit.JSON(schema)
			t.Errorf("%d: %s does not fit %s: %v", i, a.Text, text, err)
		}
	}
	return whole
}

// isCutOff holds that an answer of which 5 tokens are asked for is told as one that is cut off.
func isCutOff(t *testing.T, c *Client) {
	t.Helper()
	q := question()
	q.Params.MaxTokens = 5
	if a, err := c.Ask(t.Context(), q, nil); err != nil || !a.CutOff || a.Value.Set || a.Usage.Output != 5 {
		t.Errorf("%+v, %v", a, err)
	}
}

// TestPeer_OllamaRefusesSchema holds that a schema of which no grammar can be made, which is a 500
// there, goes down the ladder.
func TestPeer_OllamaRefusesSchema(t *testing.T) {
	var warned []string
	// The dialect is not that of the server, so that the schema goes as it is.
	c, err := NewClient(Config{Name: "here", Dialect: "openai", Model: "monkey", URL: ollama(t), Params: Params{MaxTokens: 20}},
		Options{Warn: func(text string) { warned = append(warned, text) }})
	if err != nil {
		t.Fatal(err)
	}
	q := question()
	q.Schema = fit.Object{member("type", "object"), member("properties", fit.Object{member("a", fit.Object{member("type", "string"), member("pattern", "^†")})}), member("required", []any{"a"}), member("additionalProperties", false)}
	a, err := c.Ask(t.Context(), q, nil)
	if err != nil || a.Usage.Mode == modeSchema || a.Usage.Requests < 2 || len(warned) == 0 {
		t.Errorf("%+v, %v, warned %q", a, err, warned)
	}
}

// exactSchemas are schemas that the dialects of llama.cpp and Ollama express in full: they hold a model
// to each word.
var exactSchemas = []string{
	`{"type": "string", "pattern": "^[a-c]{2,4}-[0-9]+(x|yz)?$"}`,
	`{"type": "string", "minLength": 3, "maxLength": 5}`,
	`{"type": "string", "format": "date"}`,
	`{"type": "string", "format": "time"}`,
	`{"type": "string", "format": "date-time"}`,
	`{"type": "integer", "minimum": -17, "exclusiveMaximum": 5}`,
	`{"type": "integer", "exclusiveMinimum": 98, "maximum": 1203}`,
	`{"type": "array", "minItems": 2, "maxItems": 2}`,
	`{"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 9}, "minItems": 3, "maxItems": 3}`,
	`{"type": "object", "additionalProperties": {"type": "boolean"}}`,
	`{"enum": [{"a": [1, "née"]}, [], null, 1.5, "b"]}`,
	`{"anyOf": [{"type": "integer", "minimum": 7, "maximum": 7}, {"type": "array", "items": {"type": "null"}, "maxItems": 2}]}`,
	`{"type": ["string", "null"], "maxLength": 2}`,
	`{"$ref": "#/$defs/tree", "$defs": {"tree": {"type": "object", "properties": {"name": {"const": "†leaf"},
		"more": {"type": "array", "items": {"$ref": "#/$defs/tree"}, "maxItems": 2}}, "required": ["name"], "additionalProperties": false}}}`,
}

// inexactSchemas are schemas of which the dialect of llama.cpp leaves out a part, which no grammar holds.
var inexactSchemas = []string{
	`{"type": "number", "minimum": 0.5, "maximum": 0.75}`,
	`{"type": "integer", "multipleOf": 7}`,
	`{"type": "string", "pattern": "a.*b"}`,
	`{"type": "array", "items": {"type": "boolean"}, "uniqueItems": true, "minItems": 2, "maxItems": 2}`,
	`{"type": "string", "not": {"maxLength": 4}}`,
	`{"type": "array", "prefixItems": [{"const": "a"}], "items": {"const": "b"}, "minItems": 2}`,
	`{"type": "array", "prefixItems": [{"type": "boolean"}, {"enum": ["a", "†b"]}], "items": false, "minItems": 2}`,
	`{"type": "string", "pattern": "^[ab]+$", "minLength": 3}`,
}

// parsed returns schemas that are written as JSON.
func parsed(t *testing.T, texts []string) (schemas []any) {
	t.Helper()
	for _, text := range texts {
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		var schema any
		if err := d.Decode(&schema); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		schemas = append(schemas, schema)
	}
	return schemas
}

// TestPeer_LlamaCpp asks llama.cpp for values of schemas, streamed and at once. Each whole answer fits
// its schema, for llama.cpp makes grammars of all that the dialect sends.
func TestPeer_LlamaCpp(t *testing.T) {
	config := Config{Name: "here", Provider: "llama", Model: "monkey", URL: llamaCpp(t), Strict: true}
	d, _ := fit.DialectOf("llama")
	exact := parsed(t, exactSchemas)
	for i, schema := range exact {
		if fitted, err := fit.Schema(schema, d); err != nil || len(fitted.Notes) > 0 {
			t.Errorf("of %s is left out: %v, %v", exactSchemas[i], fitted.Notes, err)
		}
	}
	for name, extra := range map[string]map[string]any{"streamed": nil, "at once": {"stream": false}} {
		t.Run(name, func(t *testing.T) {
			c := config
			c.Extra = extra
			client, err := NewClient(c, Options{})
			if err != nil {
				t.Fatal(err)
			}
			quoted := fit.Object{member("enum", []any{`"`, `\`, "a\nb"})} // of which Ollama 0.6.5 makes no right grammar
			schemas := append(append(randomSchemas(30), exact...), quoted)
			if whole := askFor(t, client, schemas); whole < len(schemas)*4/5 {
				t.Errorf("%d answers of %d were whole", whole, len(schemas))
			}
			isCutOff(t, client)
		})
	}
	t.Run("any value", func(t *testing.T) { takesAnything(t, config) })
	t.Run("beyond the grammar", func(t *testing.T) { isCaught(t, config, d) })
}

// takesAnything holds that a value of any type is written where the schema allows it.
func takesAnything(t *testing.T, config Config) {
	t.Helper()
	client, err := NewClient(config, Options{})
	if err != nil {
		t.Fatal(err)
	}
	hot, types := 1.3, map[string]int{}
	for seed := range int64(30) {
		a, err := client.Ask(t.Context(), &Request{Purpose: purposeAsk, Blocks: []string{"Go."}, Schema: fit.Object{member("items", fit.Object{}), member("type", "array"), member("minItems", 1)},
			Params: Params{Temperature: &hot, Seed: &seed, MaxTokens: 400}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		list, _ := a.Value.Value.([]any)
		for _, v := range list {
			types[fmt.Sprintf("%T", v)]++
		}
	}
	if len(types) < 4 {
		t.Errorf("the values are of the types %v alone", types)
	}
}

// isCaught holds that an answer that breaks what no grammar holds is an error, not a value.
func isCaught(t *testing.T, config Config, d fit.Dialect) {
	t.Helper()
	client, err := NewClient(config, Options{})
	if err != nil {
		t.Fatal(err)
	}
	hot, caught := 1.3, 0
	for i, schema := range parsed(t, inexactSchemas) {
		if fitted, err := fit.Schema(schema, d); err != nil || len(fitted.Notes) == 0 {
			t.Errorf("%s is sent in full: %v", inexactSchemas[i], err)
		}
		for seed := range int64(4) {
			c := config
			c.Repairs, c.Params = -1, Params{Temperature: &hot, Seed: &seed, MaxTokens: 400}
			v, err := New(c, client).Ask(t.Context(), AskInput{Prompt: "Go.", Schema: schema}, nil)
			if fault, ok := err.(*plan.Fault); ok && fault.Code == plan.CodeSchema {
				caught++
			} else if err != nil && (!ok || fault.Code != codeMaxTokens) {
				t.Errorf("%s: %v", inexactSchemas[i], err)
			} else if err == nil && validate(t, schema, v) != nil {
				t.Errorf("%v passes for %s", v, inexactSchemas[i])
			}
		}
	}
	if caught < len(inexactSchemas) {
		t.Errorf("%d answers are caught", caught)
	}
	t.Logf("%d answers of %d are caught", caught, 4*len(inexactSchemas))
}

// validate holds a value against a schema.
func validate(t *testing.T, schema, v any) error {
	t.Helper()
	text, err := fit.JSON(schema)
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("s.json", document); err != nil {
		t.Fatal(err)
	}
	return c.MustCompile("s.json").Validate(v)
}

// randomSchemas returns the first schemas of [randomSchema].
func randomSchemas(n int) (schemas []any) {
	for i := range n {
		schemas = append(schemas, randomSchema(rand.New(rand.NewPCG(uint64(i), 1)), 0))
	}
	return schemas
}

// randomSchema is a schema of the kinds that servers which make grammars take: an object, and within
// it anything.
func randomSchema(r *rand.Rand, depth int) any {
	kinds := 9
	if depth > 2 {
		kinds = 6 // those that hold no other
	}
	kind := r.IntN(kinds)
	if depth == 0 {
		kind = 6
	}
	switch kind {
	case 6:
		var properties fit.Object
		required := []any{}
		for i := range 1 + r.IntN(4) {
			name := fmt.Sprint("p", i)
			properties = append(properties, member(name, randomSchema(r, depth+1)))
			if r.IntN(3) > 0 {
				required = append(required, name)
			}
		}
		return fit.Object{member("type", "object"), member("properties", properties), member("required", required), member("additionalProperties", false)}
	case 7:
		return fit.Object{member("type", "array"), member("items", randomSchema(r, depth+1)), member("minItems", r.IntN(2)), member("maxItems", 2+r.IntN(2))}
	case 8:
		return fit.Object{member("anyOf", []any{fit.Object{member("type", "null")}, randomSchema(r, depth+1)})}
	}
	return []any{
		fit.Object{member("type", "string")},
		fit.Object{member("type", "integer"), member("minimum", -5), member("maximum", 300)},
		fit.Object{member("type", "number")},
		fit.Object{member("type", "boolean")},
		fit.Object{member("enum", []any{"red", "née", 3, nil})},
		fit.Object{member("const", "†fixed")},
	}[kind]
}
