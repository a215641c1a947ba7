package cmd

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"obelus/cmd/internal/cli"
	"obelus/store"
)

// commands are those that are given made up arguments, X and Y, and X as what
// stands in stdin.
var commands = []struct {
	args   string
	writes bool
}{
	{"run plans/echo.json -i X -i Y", true},
	{"call -- echo X Y", true},
	{"append -c new", true},
	{"append -c order", true},
	{"approve -c held 1.1 --set X --set Y", true},
	{"approve -c held -- X", true},
	{"reject -c held 1.1 --reason=X", true},
	{"resume -c held --retry=X", true},
	{"fork -c order -- X", true},
	{"run plans/echo.json --approve=X --mode=Y", true},
	{"get -c order -- X", false},
	{"get -c order --instance=Y -- X", false},
	{"why -c order -- X", false},
	{"log -c order --json --path=X --since=Y", false},
	{"log -c order --json --model --scopes=X", false},
	{"log --json -c X", false},
	{"diff --json -c order -- X Y", false},
	{"prune --dry-run --older-than=X", false},
	{"sql --json -- X", false},
	{"get -c order --at=X -- state", false},
	{"check -- X", false},
}

// goText is what of Go nobody reads who did not write it.
var goText = regexp.MustCompile(`runtime error|nil pointer|goroutine \d|interface \{|map\[string\]|0xc0[0-9a-f]{8}|%!|\.go:\d|strconv|ParseInt`)

// shell runs commands in a project, one after the other.
type shell struct {
	dir   string
	fresh map[string][]byte // the files of the log, as each command finds it
	list  string            // and its contexts
}

func newShell(f *testing.F) *shell {
	s := &shell{dir: f.TempDir()}
	for name, text := range map[string]string{
		"obelus.lua":       "return { synchronous = 'normal', drain = 0 }",
		"activities/a.lua": "Activity.register('echo', function(call) return call.x end)\nActivity.register('double', function(call) return { double = 2 * call.n } end)",
		"plans/echo.json":  `{"calls":[],"output":"†input"}`,
		"plans/double.lua": `return { calls = { { _tool = "double", n = "†input.n", _outputPath = "†state" } }, output = "†state.double" }`,
	} {
		file := filepath.Join(s.dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			f.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			f.Fatal(err)
		}
	}
	for _, args := range []string{"run plans/double.lua -i n:=2 -c order", "run plans/double.lua -i n:=3 -c held --approve always"} {
		if status, _, stderr := s.run("", strings.Fields(args)...); status != exitDone && status != exitWaiting {
			f.Fatal(stderr)
		}
	}
	_, s.list, _ = s.run("", "contexts", "--json")
	s.fresh = map[string][]byte{}
	files, err := filepath.Glob(filepath.Join(s.dir, ".obelus", "log.db*"))
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		if s.fresh[file], err = os.ReadFile(file); err != nil {
			f.Fatal(err)
		}
	}
	return s
}

// reset makes the log what it was.
func (s *shell) reset(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(s.dir, ".obelus", "log.db*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	for file, content := range s.fresh {
		if err := os.WriteFile(file, content, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *shell) run(stdin string, args ...string) (status int, stdout, stderr string) {
	var out, err bytes.Buffer
	status = run(Config{}, append([]string{"-C", s.dir}, args...), strings.NewReader(stdin), &out, &err)
	return status, out.String(), err.String()
}

// FuzzCommands holds that whatever a command is given, it ends with a status that
// is documented, says in words what is wrong, prints JSON and nothing else, and
// leaves nothing in the log if it refuses; and that what it takes comes out as it
// came in.
func FuzzCommands(f *testing.F) {
	which := func(prefix string) uint8 {
		for i, c := range commands {
			if strings.HasPrefix(c.args, prefix) {
				return uint8(i)
			}
		}
		panic(prefix)
	}
	for _, seed := range [][3]string{
		{"run", `{"a":[]}`, `a:={"0":1,"1":2,"2":3,"3":4}`}, {"run", "name=Ada", "a.b:=[1.50,null]"}, {"run", "-", "{"}, {"run", "@nothing", "=x"}, {"run", "a..b=c", ":=1"}, {"run", strings.Repeat("a.", 300) + "b=c", "{}"}, {"run", "a=\xff", "{}"},
		{"run", `{"n":1e400,"m":12345678901234567890}`, "n:=-0"}, {"run", "a:=", "\ufeff{}"},
		{"call", "x:=1", "_outputPath=†a || †b"}, {"call", " ", "=1"}, {"call", "x=†state", "_scopes:=[\"state\"]"}, {"call", "_outputPath=†(", "_instance=①"}, {"call", "x:=" + strings.Repeat("[", 255) + strings.Repeat("]", 255), "y=1"},
		{"append -c new", `{"type":"input","n":4}`, ""}, {"append -c new", "{\"type\":\"text\",\"text\":\"a\"}\n{\"type\":\"data\",\"data\":{\"a\":1},\"path\":\"†data.a\",\"_call\":{},\"date\":\"2025-10-26T12:00:00.123456Z\",\"seq\":3}", ""},
		{"append -c order", `[{"type":"state","double":{"x":1}},{"type":"sate"}]`, ""}, {"append -c order", `{"type":"data","kind":"state","data":{"double":[5]},"_call":{"_outputPath":"†state.double"},"_outputMethod":"push"}`, ""},
		{"approve -c held 1.1", "n:=4", "m.x=1"}, {"approve -c held 1.1", "n.=4", ""}, {"approve -c held 1.1", "n." + strings.Repeat("a.", 254) + "b=c", "x=y"}, {"approve -c held --", "1.1", ""}, {"reject", "no", ""}, {"resume", "1.1", ""}, {"fork", "copy", ""}, {"fork", "a b", ""},
		{"run plans/echo.json --approve", "echo,double", "lazy"}, {"get -c order -- X", "state.double", ""}, {"get -c order -- X", "†state.double * 2", ""}, {"get -c order -- X", `state["a`, ""}, {"get -c order --instance", "input", "①"}, {"why", "state", ""},
		{"log -c order --json --path", "state.double", "1h"}, {"log -c order --json --path", "", "2026-01-31"}, {"log -c order --json --path", "†", "-9223372036854775808ns"}, {"log -c order --json --model", "state,input.n", ""}, {"log --json -c", "o", ""},
		{"diff", "1", "3"}, {"diff", "order@2", "held"}, {"diff", "order@0", "x@y"}, {"prune", "30d", ""}, {"prune", "2026-01-31T12:00:00Z", ""}, {"prune", "99999999999d", ""}, {"sql", "SELECT * FROM calls", ""}, {"sql", "DELETE FROM messages", ""}, {"sql", "SELECT x'ff', 1e999, 'a'; SELECT 2", ""}, {"sql", "", ""},
		{"get -c order --at", "2", ""}, {"get -c order --at", "1e3", ""}, {"check", "plans/double.lua", ""}, {"check", "../x", ""},
	} {
		f.Add(which(seed[0]), seed[1], seed[2])
	}
	s := newShell(f)
	f.Fuzz(func(t *testing.T, number uint8, x, y string) {
		if strings.HasPrefix(x, "@") || strings.HasPrefix(y, "@") || strings.ContainsRune(x+y, 0) {
			return // a file of this machine, or what no shell passes
		}
		given := x + "\n" + y
		command := commands[int(number)%len(commands)]
		args := strings.Fields(command.args)
		for i := range args {
			args[i] = strings.NewReplacer("X", x, "Y", y).Replace(args[i])
		}
		if command.writes {
			defer s.reset(t)
		}
		status, stdout, stderr := s.run(x, args...)
		if !slices.Contains([]int{exitDone, exitFailed, exitUsage, exitWaiting}, status) || status != exitDone && stdout+stderr == "" {
			t.Fatalf("%q ends with %d\n%s\n%s", args, status, stdout, stderr)
		}
		if m := goText.FindString(stderr); m != "" && !strings.ContainsAny(given, `%\`) && !strings.Contains(given, m) {
			t.Fatalf("%q shows Go (%s): %s", args, m, stderr)
		}
		if !utf8.ValidString(stderr) && utf8.ValidString(given) || status == exitUsage && args[0] != "check" && !strings.HasPrefix(stderr, "obelus: ") {
			t.Fatalf("%q says %q", args, stderr)
		}
		for line := range strings.Lines(stdout) {
			if _, err := store.DecodeJSON([]byte(line)); err != nil && args[0] != "fork" && args[0] != "prune" && args[0] != "check" && args[0] != "why" {
				t.Fatalf("%q prints %q: %v", args, line, err)
			}
		}
		if !command.writes {
			return
		}
		if status == exitUsage {
			if _, list, _ := s.run("", "contexts", "--json"); list != s.list {
				t.Fatalf("%q ends with %d and leaves\n%swhere there was\n%s", args, status, list, s.list)
			}
			return
		}
		if broken, _, stderr := s.run("", "calls", "--json", "-c", "held"); broken != exitDone {
			t.Fatalf("%q is taken, and then the log can't be read: %s", args, stderr)
		}
		switch {
		case args[0] == "append":
			s.exported(t, args[2], x)
		case args[0] == "run" && args[2] == "-i":
			if _, again, stderr := s.run("", "run", "plans/echo.json", "-i", strings.TrimSpace(stdout)); again != stdout {
				t.Fatalf("%q gives %s, which gives %s%s", args, stdout, again, stderr)
			}
		}
	})
}

// exported holds that what log --json prints of a context is taken back as the
// same messages.
func (s *shell) exported(t *testing.T, name, given string) {
	t.Helper()
	_, first, stderr := s.run("", "log", "--json", "-c", name)
	if status, _, stderr := s.run(first, "append", "-c", "copy"); status != exitDone {
		t.Fatalf("%q is taken, and what it prints is not:\n%s%s", given, first, stderr)
	}
	_, second, _ := s.run("", "log", "--json", "-c", "copy")
	if a, b := anonymous(t, first), anonymous(t, second); a != b {
		t.Fatalf("%q is printed as\n%s, and read back\n%s%s", given, a, b, stderr)
	}
}

// anonymous is what log --json prints without what is given anew to messages that
// come in.
func anonymous(t *testing.T, log string) string {
	t.Helper()
	var lines []string
	for line := range strings.Lines(log) {
		message := map[string]json.RawMessage{}
		if err := json.Unmarshal([]byte(line), &message); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"call", "context", "date"} {
			delete(message, name)
		}
		text, err := json.Marshal(message)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(text))
	}
	return strings.Join(lines, "\n")
}

// FuzzWords holds that words come through the prompt as they are: quoted as a
// shell has it, those of any line give the same words again.
func FuzzWords(f *testing.F) {
	for _, line := range []string{``, ` `, `a b`, `a  "b c"\ d`, `'it'\''s' ""`, `"`, `\`, `'\'`, `"\""`, `x:='{"a": "†b"}'`, "a\tb", "\xff", "†'x"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		words, err := cli.Split(line)
		if err != nil {
			if !strings.HasPrefix(err.Error(), line) {
				t.Fatalf("it does not say which line is wrong: %v", err)
			}
			return
		}
		var quoted []string
		for _, word := range words {
			if strings.ContainsAny(line, "\"'\\") || strings.Contains(line, word) {
				quoted = append(quoted, "'"+strings.ReplaceAll(word, "'", `'\''`)+"'")
				continue
			}
			t.Fatalf("%q has no word %q", line, word)
		}
		again, err := cli.Split(strings.Join(quoted, " "))
		if err != nil || !slices.Equal(again, words) {
			t.Fatalf("%q gives %q, and those %q, %v", line, words, again, err)
		}
	})
}
