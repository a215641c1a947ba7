package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLinks_ToOutside: what is a link to what is outside the project is refused by every command
// that would read it, with the link and where it leads; check says so too. A link to what is
// inside is what it leads to.
func TestLinks_ToOutside(t *testing.T) {
	outside := project(t, map[string]string{"a.lua": "return 1", "p.lua": "return { calls = {} }", "obelus.lua": "return {}"})
	all := [][]string{{"check"}, {"run", "plans/p.lua"}, {"call", "own"}, {"test"}, {"serve", "--addr", "127.0.0.1:0"}}
	for link, c := range map[string]struct {
		target   string
		commands [][]string
	}{
		"activities/sub":   {"", all},
		"activities":       {"", all},
		"activities/a.lua": {"a.lua", all},
		"lib":              {"", all},
		"lib/sub":          {"", all},
		"lib/a.lua":        {"a.lua", all},
		"obelus.lua":       {"obelus.lua", all},
		"plans/linked.lua": {"p.lua", [][]string{{"check"}, {"check", "plans/linked.lua"}, {"run", "plans/linked.lua"}}},
	} {
		files := map[string]string{"obelus.lua": "return {}", "activities/own.lua": `Activity.register("own", function() return 7 end)`, "plans/p.lua": "return { calls = {} }", "tests/a_test.lua": `it("holds", function() end)`}
		for file := range files {
			if file == link || strings.HasPrefix(file, link+"/") {
				delete(files, file)
			}
		}
		dir, target := project(t, files), filepath.Join(outside, c.target)
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(link)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Skip("no symbolic links here:", err)
		}
		for _, args := range c.commands {
			var stdout, stderr strings.Builder
			status := run(Config{}, append([]string{"-C", dir}, args...), strings.NewReader(""), &stdout, &stderr)
			want := link + " is a link to what is outside the project, " + target
			if told := stdout.String() + stderr.String(); status == exitDone || !strings.Contains(told, want) {
				t.Errorf("%s: %s: status %d: %s", link, args, status, told)
			}
		}
	}
	// A plan alone is read from its folder.
	lone := t.TempDir()
	if err := os.Symlink(filepath.Join(outside, "p.lua"), filepath.Join(lone, "lone.lua")); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	var stderr strings.Builder
	t.Chdir(lone)
	if status := run(Config{}, []string{"run", "lone.lua"}, strings.NewReader(""), &stderr, &stderr); status != exitUsage || !strings.Contains(stderr.String(), "lone.lua is a link to what is outside the project") {
		t.Errorf("status %d: %s", status, &stderr)
	}
	// Within the project a link leads where it says, to a folder too.
	dir := project(t, map[string]string{"obelus.lua": "return {}", "shared/own.lua": `Activity.register("own", function() return 7 end)`, "plans/p.lua": `return { calls = { { _tool = "own", _outputPath = "†a" } }, output = "†a" }`})
	if err := os.Symlink("shared", filepath.Join(dir, "activities")); err != nil {
		t.Fatal(err)
	}
	var stdout strings.Builder
	if status := run(Config{}, []string{"-C", dir, "run", "plans/p.lua"}, strings.NewReader(""), &stdout, &stderr); status != exitDone || stdout.String() != "7\n" {
		t.Errorf("status %d: %s%s", status, &stdout, &stderr)
	}
}
