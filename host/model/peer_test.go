package model

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"obelus/host/model/fit"
	"obelus/host/model/modeltest"
)

// ollama starts the Ollama that the environment variable OBELUS_OLLAMA names, with a model that types
// what a schema allows, and returns its address. Without it the test is skipped.
func ollama(t *testing.T) string {
	t.Helper()
	binary := os.Getenv("OBELUS_OLLAMA")
	if binary == "" {
		t.Skip("skipped: OBELUS_OLLAMA names no program of Ollama to ask")
	}
	dir := t.TempDir()
	file, err := os.Create(filepath.Join(dir, "monkey.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	if err := modeltest.Monkey(file); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "Modelfile"), []byte(modeltest.Modelfile), 0o666); err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_ = free.Close()
	run := func(arguments ...string) (*exec.Cmd, *bytes.Buffer) {
		var said bytes.Buffer
		c := exec.Command(binary, arguments...)
		c.Dir, c.Stdout, c.Stderr = dir, &said, &said
		c.Env = append(os.Environ(), "HOME="+dir, "OLLAMA_MODELS="+filepath.Join(dir, "models"), "OLLAMA_HOST="+address, "OLLAMA_NUM_PARALLEL=1")
		return c, &said
	}
	server, _ := run("serve")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		late := time.AfterFunc(10*time.Second, func() { _ = server.Process.Kill() })
		_ = server.Process.Signal(os.Interrupt)
		_ = server.Wait()
		late.Stop()
	})
	await(t, "http://"+address+"/api/version")
	if c, said := run("create", "monkey", "-f", "Modelfile"); c.Run() != nil {
		t.Fatalf("the model is not made: %s", said)
	}
	return "http://" + address + "/v1"
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

// TestPeer_Ollama asks a real server for values of 50 schemas.
func TestPeer_Ollama(t *testing.T) {
	c, err := NewClient(Config{Name: "here", Provider: "ollama", Model: "monkey", URL: ollama(t), Strict: true}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	hot, whole := 1.3, 0
	for i := range 50 {
		schema := randomSchema(rand.New(rand.NewPCG(uint64(i), 1)), 0)
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
	if whole < 40 {
		t.Errorf("%d answers of 50 were whole", whole)
	}
	t.Run("cut off", func(t *testing.T) {
		q := question()
		q.Params.MaxTokens = 5
		if a, err := c.Ask(t.Context(), q, nil); err != nil || !a.CutOff || a.Value.Set || a.Usage.Output != 5 {
			t.Errorf("%+v, %v", a, err)
		}
	})
	t.Run("no such model", func(t *testing.T) {
		other, err := NewClient(Config{Name: "other", Provider: "ollama", Model: "nobody", URL: c.config.URL}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := other.Ask(t.Context(), question(), nil); err == nil || !strings.Contains(err.Error(), `404 Not Found: model "nobody" not found`) {
			t.Error(err)
		}
	})
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
