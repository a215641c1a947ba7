package luastd_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"obelus/engine/plan"
	"obelus/host"
	"obelus/luastd"
)

// TestModules_Examples runs an example of every module: a script that asserts what it
// shows.
func TestModules_Examples(t *testing.T) {
	t.Setenv("API_KEY", "k-123")
	server := httptest.NewServer(http.HandlerFunc(orders))
	defer server.Close()
	for _, module := range luastd.Modules {
		t.Run(module.Name, func(t *testing.T) {
			source, err := os.ReadFile(filepath.Join("testdata", "examples", module.Name+".lua"))
			if err != nil {
				t.Fatal(err)
			}
			h, err := host.Open(host.Config{
				FS:  fstest.MapFS{"activities/example.lua": {Data: []byte("Activity.register('example', function(call) " + string(source) + "\nend)")}},
				Dir: t.TempDir(),
				Grants: &luastd.Grants{
					Env: luastd.Grant{List: []string{"API_KEY", "REGION"}}, Net: luastd.Grant{List: []string{strings.TrimPrefix(server.URL, "http://")}},
					Model: luastd.Grant{List: []string{"fast"}}, Read: luastd.Grant{List: []string{"."}}, Write: luastd.Grant{List: []string{"."}},
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			models := plan.NewRegistry()
			models.Models = map[string]plan.Model{"fast": plan.ModelFunc(func(context.Context, plan.Question) (any, error) {
				return map[string]any{"angry": true}, nil
			})}
			call := plan.Invocation{Call: map[string]any{"server": server.URL}, Models: &plan.Models{Registry: models}}
			if _, err := h.Generation().Registry().Activities["example"].Activity.Run(context.Background(), call); err != nil {
				t.Error(err)
			}
		})
	}
}

func orders(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == "GET" && r.URL.Path == "/orders":
		fmt.Fprintf(w, `[{"title":"Book","asked":%q}]`, r.URL.RawQuery)
	case r.Method == "POST" && r.Header.Get("Authorization") == "Bearer t0ken" && r.Header.Get("Content-Type") == "application/json":
		w.Header().Set("Location", "/orders/1")
		w.WriteHeader(http.StatusCreated)
	default:
		http.Error(w, "no such order", http.StatusNotFound)
	}
}

// TestModules_CommentsAreExamples holds the Lua in the modules' comments to what their
// examples run.
func TestModules_CommentsAreExamples(t *testing.T) {
	comment := regexp.MustCompile(`(?m)^// (\w+): .*(?:\n// .*)*?In Lua:\n//\n((?://\t.*\n)+)`)
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var source bytes.Buffer
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source.Write(text)
	}
	shown := map[string]bool{}
	for _, m := range comment.FindAllStringSubmatch(source.String(), -1) {
		shown[m[1]] = true
		example, err := os.ReadFile(filepath.Join("testdata", "examples", m[1]+".lua"))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(strings.TrimSpace(m[2]), "\n") {
			line = strings.TrimSpace(strings.TrimPrefix(line, "//\t"))
			line = strings.ReplaceAll(line, `"https://api.example.com`, `api .. "`)
			if !strings.Contains(string(example), line) {
				t.Errorf("%s: its example does not have %s", m[1], line)
			}
		}
	}
	for _, module := range luastd.Modules {
		if !shown[module.Name] {
			t.Errorf("the comment of %s shows no Lua", module.Name)
		}
	}
}
