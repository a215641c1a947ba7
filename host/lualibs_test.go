package host

import (
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"

	"obelus/engine/plan"
)

// luaLibraries is where distributions install libraries in Lua alone.
const luaLibraries = "/usr/share/lua/5.1"

// needsFiles are the modules of Penlight that want LuaFileSystem, which is
// written in C.
var needsFiles = map[string]bool{"pl.app": true, "pl.dir": true, "pl.file": true, "pl.path": true, "pl.test": true}

// installedLibraries gives them as the files of a project's lib/, unchanged.
func installedLibraries(t *testing.T) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	root := os.DirFS(luaLibraries)
	_ = fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".lua") {
			return nil
		}
		if text, err := fs.ReadFile(root, name); err == nil {
			files["lib/"+name] = &fstest.MapFile{Data: text}
		}
		return nil
	})
	if len(files) == 0 {
		t.Skip("skipped: there are no Lua libraries in " + luaLibraries + " (lua-penlight, lua-inspect, lua-dkjson, lua-unit)")
	}
	return files
}

// moduleOf is the name of the module in a file.
func moduleOf(file string) string {
	name := strings.TrimSuffix(strings.TrimPrefix(file, "lib/"), ".lua")
	return strings.ReplaceAll(strings.TrimSuffix(name, "/init"), "/", ".")
}

func useLibrary(t *testing.T, files fstest.MapFS, module, body string) (string, error) {
	t.Helper()
	all := fstest.MapFS{"activities/a.lua": {Data: []byte(`
		local use = require "use"
		Activity.register("a", {timeout = 20}, function() return use(require "` + module + `") end)`)}}
	for name, file := range files {
		all[name] = file
	}
	all["lib/use.lua"] = &fstest.MapFile{Data: []byte("return function(m)\n" + body + "\nend")}
	h, err := Open(Config{FS: all})
	if err != nil {
		t.Fatal(err)
	}
	r, err := call(h.Generation(), "a", plan.Invocation{})
	got, _ := r.Value.(string)
	return got, err
}

// TestLuaLibraries loads and uses libraries from elsewhere as they are.
func TestLuaLibraries(t *testing.T) {
	files := installedLibraries(t)
	installed := map[string]bool{}
	for name := range files {
		installed[moduleOf(name)] = true
	}
	archive, err := txtar.ParseFile("testdata/lualibs.txtar")
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for i := 0; i+1 < len(archive.Files); i += 2 {
		module := strings.TrimSuffix(archive.Files[i].Name, ".lua")
		used[module] = true
		t.Run(module, func(t *testing.T) {
			if !installed[module] {
				t.Skip("skipped: " + module + " is not installed in " + luaLibraries)
			}
			got, err := useLibrary(t, files, module, string(archive.Files[i].Data))
			if want := strings.TrimSuffix(string(archive.Files[i+1].Data), "\n"); err != nil || got != want {
				t.Errorf("got  %q %v\nwant %q", got, err, want)
			}
		})
	}
	for module := range installed {
		if needsFiles[module] {
			if _, err := useLibrary(t, files, module, ""); err == nil || !strings.Contains(err.Error(), "requires LuaFileSystem") {
				t.Errorf("%s: it was to miss LuaFileSystem, and gave %v", module, err)
			}
		} else if !used[module] && strings.HasPrefix(module, "pl.") {
			t.Errorf("%s is installed and not used here", module)
		}
	}
}
