package host

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	lua "github.com/yuin/gopher-lua"

	"obelus/host/internal/annotations"
	"obelus/host/internal/sandbox"
	"obelus/luastd"
	"obelus/scripts"
)

// luaGlobals are those of Lua 5.1 itself, which editors know.
var luaGlobals = strings.Fields(`_G _VERSION assert collectgarbage coroutine debug dofile error getfenv getmetatable io ipairs load loadfile
	loadstring math module newproxy next os package pairs pcall print rawequal rawget rawset require select setfenv setmetatable string table
	tonumber tostring type unpack xpcall`)

func TestAnnotations_Modules(t *testing.T) {
	all, s := annotations.Signatures(t, "*.go", "internal/*/*.go", "../luastd/*.go"), newSession(open(t, nil))
	files := []string{"globals.lua", "test.lua", "testing.lua"}
	for _, m := range luastd.Modules {
		files = append(files, m.Name+".lua")
		a := annotations.Read(t, m.Name+".lua")
		a.CheckTable(t, m.Name, s.Builtin(m.Name), all)
		for name, params := range a.Functions {
			if strings.Contains(name, ":") && !slices.Equal(all[name], params) {
				t.Errorf("%s is annotated and has no such comment", name)
			}
		}
	}
	got, err := fs.Glob(scripts.Types(), "*")
	slices.Sort(files)
	if diff := cmp.Diff(files, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func TestAnnotations_Globals(t *testing.T) {
	all, s := annotations.Signatures(t, "*.go", "internal/*/*.go", "../luastd/*.go"), newSession(open(t, nil))
	a := annotations.Read(t, "globals.lua")
	var want []string
	for name := range s.Globals {
		if !slices.Contains(luaGlobals, name) && !sandbox.IsHidden(lua.LString(name)) {
			want = append(want, name)
		}
	}
	for name := range s.Libs {
		if slices.Contains(luaGlobals, name) {
			continue
		}
		want = append(want, name)
		if name != "json" { // its module has a file
			a.CheckTable(t, name, s.Libs[name], all)
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Sorted(slices.Values(a.Globals()))); diff != "" {
		t.Error(diff)
	}
}

// TestAnnotations_EditorSettings holds the settings of a new project to the
// annotations, which an editor may not have yet.
func TestAnnotations_EditorSettings(t *testing.T) {
	text, err := fs.ReadFile(scripts.Init(), ".luarc.json")
	if err != nil {
		t.Fatal(err)
	}
	var settings struct {
		Version string   `json:"runtime.version"`
		Globals []string `json:"diagnostics.globals"`
	}
	if err := json.Unmarshal(text, &settings); err != nil {
		t.Fatal(err)
	}
	want := annotations.Read(t, "globals.lua").Globals()
	for name := range annotations.Read(t, "testing.lua").Functions {
		global, _, _ := strings.Cut(name, ".") // spy.on
		want = append(want, global)
	}
	slices.Sort(want)
	want = slices.Compact(want)
	slices.Sort(settings.Globals)
	if diff := cmp.Diff(want, settings.Globals); diff != "" || settings.Version != "Lua 5.1" {
		t.Error(settings.Version, diff)
	}
}

// TestAnnotations_AreLua asks a stock interpreter, where there is one.
func TestAnnotations_AreLua(t *testing.T) {
	lua, err := exec.LookPath("lua5.1")
	if err != nil {
		t.Skip("there is no lua5.1 here")
	}
	files, err := fs.Glob(scripts.Types(), "*.lua")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		source, err := fs.ReadFile(scripts.Types(), file)
		if err != nil {
			t.Fatal(err)
		}
		run := exec.Command(lua, "-")
		run.Stdin = bytes.NewReader(source)
		if out, err := run.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", file, err, out)
		}
	}
}
