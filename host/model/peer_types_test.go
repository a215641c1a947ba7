package model

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"obelus/host/model/modeltest"
)

// typedBodies collects bodies of requests as a program in TypeScript, one a line.
type typedBodies struct {
	lines []string
	wrong []int // the indices of those with a field that there is not
}

// typesHead are the lines of the program before the first body.
const typesHead = `import type { ChatCompletionCreateParams } from "openai/resources/chat/completions";
import type { MessageCreateParams as Message2023 } from "anthropic-2023/resources/messages";
import type { MessageCreateParams as Message2026 } from "anthropic-2026/resources/messages";
`

// add asks a server of the tests' own by the client, and keeps the body that was sent. wrong says that
// the extra of the settings holds a field that there is not.
func (b *typedBodies) add(t *testing.T, c Config, wrong bool) {
	t.Helper()
	server := modeltest.NewTransport(t)
	c.Name, c.URL = "m", server.URL
	client, err := NewClient(c, Options{Env: func(string) (string, bool) { return "a key", true }, Transport: server})
	if err != nil {
		t.Fatal(err)
	}
	q := question()
	if _, err := client.Ask(t.Context(), q, nil); err != nil {
		t.Fatal(err)
	}
	q.Schema = nil // any text
	if _, err := client.Ask(t.Context(), q, nil); err != nil {
		t.Fatal(err)
	}
	types := []string{"ChatCompletionCreateParams"}
	if client.config.Wire == wireAnthropic {
		types = []string{"Message2023", "Message2026"}
		if c.Temperature != nil || c.TopP != nil {
			types = types[:1] // a later version has them no more
		}
	}
	for _, r := range server.Requests() {
		for _, typ := range types {
			if wrong {
				b.wrong = append(b.wrong, len(b.lines))
			}
			b.lines = append(b.lines, fmt.Sprintf("export const body%d: %s = %s;", len(b.lines), typ, r.Text))
		}
	}
}

// complaint is a line of the compiler, with the number of the line of the program that it is about.
var complaint = regexp.MustCompile(`(?m)^bodies\.ts\((\d+),\d+\): error (.*)$`)

// check compiles the program, and returns what the compiler says of bodies, by their index.
func (b *typedBodies) check(t *testing.T, folder string) map[int]string {
	t.Helper()
	dir := t.TempDir()
	modules := filepath.Join(folder, "node_modules")
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"bodies.ts": typesHead + strings.Join(b.lines, "\n") + "\n",
		"tsconfig.json": `{"compilerOptions": {"strict": true, "noEmit": true, "skipLibCheck": true, "types": [],
			"module": "nodenext", "target": "es2022"}, "files": ["bodies.ts"]}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	compiler := exec.Command("node", filepath.Join(modules, "typescript", "bin", "tsc"), "--pretty", "false")
	compiler.Dir = dir
	said, err := compiler.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	of := map[int]string{}
	for _, match := range complaint.FindAllStringSubmatch(string(said), -1) {
		n, _ := strconv.Atoi(match[1])
		of[n-1-strings.Count(typesHead, "\n")] = match[2]
	}
	if err != nil && len(of) == 0 {
		t.Fatalf("the compiler does not work: %v\n%s", err, said)
	}
	return of
}

// TestPeer_SDKTypes holds that the bodies that the client sends are of the types that the libraries of
// OpenAI and Anthropic publish, in every mode, streamed and at once, with every parameter; and that a
// field that is misspelt is not. Those of Anthropic are held to two versions of the interface: the one
// that the client speaks, and the next, which takes no temperature and no top_p. Left out is the field
// "usage", which OpenRouter alone takes.
func TestPeer_SDKTypes(t *testing.T) {
	folder := fromNPM(t)
	half, most, seed := 0.5, 8192, int64(7)
	all := Params{Temperature: &half, TopP: &half, Seed: &seed, MaxTokens: most}
	var b typedBodies
	for _, extra := range []map[string]any{nil, {"stream": false}} {
		for _, mode := range modes {
			for _, provider := range []string{"openai", ""} {
				c := Config{Provider: provider, Wire: wireOpenAI, Model: "gpt-5-mini", Mode: mode, Params: all, Extra: extra}
				for _, effort := range append([]string{""}, efforts...) {
					c.Effort = effort
					b.add(t, c, false)
				}
			}
			if mode == modeJSON {
				continue // which Anthropic has not
			}
			c := Config{Provider: "anthropic", Mode: mode, Model: "claude-opus-4-8", Params: all, Extra: extra}
			b.add(t, c, false)
			for _, model := range []string{"claude-opus-4-8", "claude-sonnet-4-5"} { // which think in different ways
				for _, effort := range efforts {
					c.Model, c.Params = model, Params{MaxTokens: most, Effort: effort}
					b.add(t, c, false)
				}
			}
		}
	}
	for _, c := range []Config{
		{Provider: "openai", Extra: map[string]any{"max_completion_token": 5}},
		{Provider: "openai", Extra: map[string]any{"stream_option": map[string]any{}, "stream": false}},
		{Provider: "anthropic", Extra: map[string]any{"output_confg": map[string]any{}}},
		{Provider: "anthropic", Extra: map[string]any{"output_config": map[string]any{"efort": "low"}}},
	} {
		c.Model = "claude-opus-4-8"
		b.add(t, c, true)
	}
	said := b.check(t, folder)
	for i, line := range b.lines {
		switch wrong := slices.Contains(b.wrong, i); {
		case wrong && said[i] == "":
			t.Errorf("nothing is wrong with %s", line)
		case !wrong && said[i] != "":
			t.Errorf("%s: %s", said[i], line)
		}
	}
	t.Logf("%d bodies, of which %d are wrong on purpose", len(b.lines), len(b.wrong))
}
