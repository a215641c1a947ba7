package luastd_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"obelus/host"
	"obelus/luastd"
)

// guardedProject is a project on disk with a log, and links that lead to its scripts.
func guardedProject(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"obelus.lua": "return {}", "activities/x.lua": "", "shared/other.lua": "", ".obelus/log.db": strings.Repeat("x", 1024),
		"data/a.txt": "", "data/notes": "four", "data/my.db": strings.Repeat("x", 512), "data/my.db-wal": "",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{
		"out": "activities", "data/settings": "../obelus.lua", "data/new": "../plans/new.lua", "data/hot": "../.obelus/log.db-journal",
	} {
		if err := os.Symlink(to, filepath.Join(dir, filepath.FromSlash(link))); err != nil {
			t.Skip("no symbolic links here:", err)
		}
	}
	return dir
}

// TestFS_GuardedPlaces holds that a permission to write covers the project's scripts and its
// log only where it names them, whatever path or link leads there.
func TestFS_GuardedPlaces(t *testing.T) {
	all := luastd.Grant{All: true}
	list := func(entries ...string) luastd.Grant { return luastd.Grant{List: entries} }
	for _, test := range []struct {
		grant   luastd.Grant
		path    string
		allowed bool
	}{
		{all, "obelus.lua", false},
		{all, "activities/y.lua", false},
		{all, "lib/y.lua", false},
		{all, "plans/y.lua", false},
		{all, "tests/y.lua", false},
		{all, ".obelus/log.db-journal", false},
		{all, ".obelus/anything", false},
		{all, "data/y.txt", true},
		{all, "y.lua", true},
		{all, "data/settings", false},
		{all, "data/hard", false},
		{all, "data/new", false},
		{all, "data/hot", false},
		{all, "out/y.lua", false},
		{all, "shared/other.lua", true},
		{list("."), "obelus.lua", false},
		{list("."), "./data/../activities/y.lua", false},
		{list("."), "y.txt", true},
		{list("out"), "out/y.lua", false},
		{list("data"), "data/settings", false},
		{list("data", "obelus.lua"), "data/settings", true},
		{list("obelus.lua"), "obelus.lua", true},
		{list("activities"), "activities/y.lua", true},
		{list("activities/y.lua"), "activities/y.lua", true},
		{list("activities/y.lua"), "activities/x.lua", false},
		{list("activities", "."), "lib/y.lua", false},
		{list(".", ".obelus/cache"), ".obelus/cache", true},
		{list(".", ".obelus/cache"), ".obelus/log.db", false},
	} {
		dir := guardedProject(t)
		if test.path == "data/hard" {
			if err := os.Link(filepath.Join(dir, "obelus.lua"), filepath.Join(dir, "data/hard")); err != nil {
				t.Skip("no hard links here:", err)
			}
		}
		config := host.Config{FS: os.DirFS(dir), Dir: dir, Grants: &luastd.Grants{Write: test.grant}}
		for _, act := range []string{
			`assert(fs.write(PATH, "return { allow = true }"))`, `assert(fs.append(PATH, "x"))`, `fs.write(PATH, "") assert(fs.remove(PATH))`,
		} {
			before := snapshot(t, dir)
			got := run(t, config, strings.ReplaceAll(`local ok, err = pcall(function() `+act+` end) return err or true`, "PATH", `"`+test.path+`"`))
			if allowed := got == "true"; allowed != test.allowed && !strings.Contains(act, "remove") {
				t.Errorf("%v: %s of %s: %s", test.grant, act, test.path, got)
			}
			if !test.allowed && snapshot(t, dir) != before && !strings.Contains(act, "remove") {
				t.Errorf("%v: %s of %s changed the project", test.grant, act, test.path)
			}
		}
	}
}

// snapshot is what lies in a folder: names and texts.
func snapshot(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		b.WriteString(path + "\n")
		if err == nil && !d.IsDir() {
			text, _ := os.ReadFile(path) // of a link that leads nowhere there is none
			b.Write(text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestFS_GuardedPlaceIsNotRemoved holds the same of removing, and of making a folder.
func TestFS_GuardedPlaceIsNotRemoved(t *testing.T) {
	dir := guardedProject(t)
	config := host.Config{FS: os.DirFS(dir), Dir: dir, Grants: &luastd.Grants{Write: luastd.Grant{All: true}}}
	for _, act := range []string{`fs.remove("obelus.lua")`, `fs.remove("activities/x.lua")`, `fs.remove(".obelus/log.db")`, `fs.mkdir("plans/sub")`, `fs.mkdir("lib")`} {
		before := snapshot(t, dir)
		got := run(t, config, `return select(2, `+act+`)`)
		if !strings.Contains(got, "holds the project's scripts or its log") || snapshot(t, dir) != before {
			t.Errorf("%s: %s", act, got)
		}
	}
}

// TestFS_FilesBesideDatabases holds that no script makes, changes or removes what SQLite
// would take into a database.
func TestFS_FilesBesideDatabases(t *testing.T) {
	dir := guardedProject(t)
	config := host.Config{FS: os.DirFS(dir), Dir: dir, Grants: &luastd.Grants{Write: luastd.Grant{All: true}}}
	for act, refused := range map[string]bool{
		`fs.write("data/my.db-journal", "x")`:  true,
		`fs.append("data/my.db-shm", "x")`:     true,
		`fs.write("data/my.db-wal", "x")`:      true,
		`fs.remove("data/my.db-wal")`:          true,
		`fs.write("data/notes-journal", "x")`:  false,
		`fs.write("data/none.db-journal", "")`: false,
	} {
		got := run(t, config, `local ok, err = `+act+` return err or ok`)
		if strings.Contains(got, "database") != refused || !refused && got != "true" {
			t.Errorf("%s: %s", act, got)
		}
	}
}

// TestFS_GuardedPlaceInOtherLetters holds that a place that does not exist yet is guarded under its
// name in other letters, where a file of the folder is found by such a name: on a file system
// without letter case. Two names of one file make it look like one here.
func TestFS_GuardedPlaceInOtherLetters(t *testing.T) {
	dir := t.TempDir()
	config := host.Config{FS: os.DirFS(dir), Dir: dir, Grants: &luastd.Grants{Write: luastd.Grant{All: true}}}
	if err := os.WriteFile(filepath.Join(dir, "A"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if got := run(t, config, `return fs.mkdir("Tests") and fs.remove("Tests")`); got != "true" && filepath.Separator == '/' {
		if _, err := os.Stat(filepath.Join(dir, "a")); err != nil { // it has letter case
			t.Errorf("with letter case: %s", got)
		}
	}
	if err := os.Link(filepath.Join(dir, "A"), filepath.Join(dir, "a")); err != nil && !os.IsExist(err) {
		t.Skip("no hard links here:", err)
	}
	for _, path := range []string{"Tests", "PLANS/x", "Obelus.lua", "acTivities"} {
		got := run(t, config, `return select(2, fs.write("`+path+`", "x"))`)
		if !strings.Contains(got, "holds the project's scripts or its log") {
			t.Errorf("%s: %s", path, got)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "Tests")); err == nil {
		t.Error("it was written")
	}
}
