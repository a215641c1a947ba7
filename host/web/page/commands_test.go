package page_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"obelus/engine/journal"
)

var hostileKeys = flag.Int("hostile-keys", 6, "how many random keys TestPages_CommandsAreQuoted pastes commands of")

// randomKey returns a key that a shell would act on, were it not quoted.
func randomKey(r *rand.Rand) string {
	parts := []string{"`touch hit`", "$(touch hit)", ";touch hit;", "' touch hit '", "\"", "\\", "$HOME", "&& touch hit", "|touch hit", ">hit", " ", "#", "*", "a", "†", "-x", "!1", "~"}
	var key strings.Builder
	for range 1 + r.IntN(6) {
		key.WriteString(parts[r.IntN(len(parts))])
	}
	return key.String()
}

// TestPages_CommandsAreQuoted pastes each command that the pages show of a run with hostile keys
// into a shell: it starts the program, with whole words, and nothing else.
func TestPages_CommandsAreQuoted(t *testing.T) {
	s := serve(t, map[string]string{
		"obelus.lua":       `return { drain = "100ms", approve = "hold" }`,
		"activities/a.lua": `Activity.register("hold", function(call) print("x"); return call.v end) Activity.register("echo", function(call) print("x"); return call.v end)`,
		"plans/a.lua":      `return { { _tool = "echo", v = "†input", _outputPath = "†state.a" }, { _tool = "hold", v = "†input", _outputPath = "†state.b" }, { _tool = "echo", v = "†input.later", _outputPath = "†state.c" } }`,
	}, nil)
	bin, work := t.TempDir(), t.TempDir()
	script := "#!/bin/sh\nfor word; do printf '%s\\0' \"$word\"; done >>\"$WORDS\"\n"
	for _, name := range []string{"obelus", "curl"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	words := filepath.Join(t.TempDir(), "words")
	pasted, withKey := 0, 0
	paste := func(line, key string) {
		pasted++
		run := exec.CommandContext(t.Context(), "sh", "-c", line)
		run.Dir, run.Env = work, []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "WORDS=" + words}
		out, err := run.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v %s", line, err, out)
		}
		if files, err := os.ReadDir(work); err != nil || len(files) > 0 {
			t.Fatalf("%s has made %v, %v", line, files, err)
		}
		given, err := os.ReadFile(words)
		if err != nil || len(given) == 0 {
			t.Errorf("%s starts nothing: %v", line, err)
		} else if strings.Contains(string(given), key) {
			withKey++
		}
		behind := false
		for _, word := range strings.Split(string(given), "\x00") {
			behind = behind || word == "--"
			isValue := strings.Contains(string(given), "-c\x00"+word+"\x00")
			if (strings.HasPrefix(word, "-x") || strings.HasPrefix(word, "-input")) && !behind && !isValue {
				t.Errorf("%s: %s is taken for a flag", line, word)
			}
		}
		_ = os.Remove(words)
	}
	for seed := range uint64(*hostileKeys) {
		key := randomKey(rand.New(rand.NewPCG(seed, 0)))
		var members []string
		for i := range 150 {
			members = append(members, fmt.Sprintf(`"m%d":%d`, i, i))
		}
		name := fmt.Sprintf("-x%d", seed)
		s.api(http.MethodPost, "/v1/runs", `{"context":"`+name+`","plan":"plans/a.lua","input":{`+encode(key)+`:{`+strings.Join(members, ",")+`}}}`)
		s.await(name, journal.RunWaiting)
		paths := []string{"/diff?a=" + name + "&a_at=1&b=" + name, "/runs/" + name + "/rerun?from=1.1", "/runs/" + name + "?tab=state&why=" + url.QueryEscape("-input.later")}
		for _, query := range []string{"?tab=state&open=all", "?tab=state", "?tab=calls&sel=1.1", "?sel=1.2", "?sel=1.3", "?tab=log", "?tab=state&why=" + url.QueryEscape("†input["+encode(key)+"]")} {
			paths = append(paths, "/runs/"+name+query)
		}
		for _, path := range paths {
			for e := range elements(s.get(path).doc) {
				if text := strings.TrimSpace(textOf(e)); (e.Data == "code" || e.Data == "pre") && (strings.HasPrefix(text, "obelus ") || strings.HasPrefix(text, "curl ")) {
					paste(text, key)
				}
			}
		}
	}
	if pasted < 20 || withKey == 0 {
		t.Errorf("%d commands were pasted, %d of them with the key", pasted, withKey)
	}
}
