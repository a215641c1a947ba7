package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"obelus/cmd/internal/term"
)

// atPrompt is a session of repl.
func atPrompt(t *testing.T, dir, terminal string, typed []reply) (said string, status int, restored bool) {
	t.Helper()
	s := converse(t, dir, terminal, 24, typed, "repl")
	return s.said, s.status, s.restored
}

var prompting = map[string]string{
	"obelus.lua": `return { drain = "10s" }`,
	"activities/a.lua": `
		Activity.register("slow", function(call) require("time").sleep(call.s or 20) return "slept" end)
		Activity.register("note", function(call) return call.x end)`,
	"plans/p.lua": `return { context = { Message.state{ first = { second = 5 } } }, calls = { { _tool = "note", x = 1, _outputPath = "†state.x" } } }`,
}

// TestPrompt_Edits holds that lines are edited by the keys that readline has, wide
// characters too.
func TestPrompt_Edits(t *testing.T) {
	const left, home, end, wordLeft = "\x1b[D", "\x1b[H", "\x1b[F", "\x1bb"
	said, status, restored := atPrompt(t, project(t, prompting), "xterm", []reply{
		{"> ", "1+2\x01100*(\x05)\r"}, // Ctrl-A, Ctrl-E
		{"\n300\n> ", "1000+" + left + "0" + end + "1\r"},
		{"\n10001\n> ", "nosense x\x15=2^10\x17\x17=2^11\r"},
		{"\n2048\n> ", "'one two'" + wordLeft + "six " + home + "\x1b[C\x1b[C\x7f\x04O\r"},
		{"\n\"Oe six two\"\n> ", "#'中文字'" + left + left + "\x7f\r"},
		{"\n6\n> ", "'kept' dropped" + wordLeft + "\x0b\r"},
		{"\n\"kept\"\n> ", "\x04"},
	})
	if status != exitDone || !restored || !strings.HasSuffix(said, "> \n") {
		t.Errorf("it ended with %d, the terminal restored: %v\n%s", status, restored, said)
	}
	if first, _, _ := strings.Cut(said, "> "); !strings.Contains(first, "run PLAN and call TOOL run\n") {
		t.Errorf("it greets with\n%s", first)
	}
}

// TestPrompt_History holds that a line is there again in the next session, which can
// look for it.
func TestPrompt_History(t *testing.T) {
	dir := project(t, prompting)
	atPrompt(t, dir, "xterm", []reply{{"> ", "40+2\r"}, {"\n42\n> ", "'other'\r"}, {"\"other\"\n> ", "\x04"}})
	said, _, _ := atPrompt(t, dir, "xterm", []reply{{"> ", "\x1b[A\x1b[A\r"}, {"\n42\n> ", "\x12oth\r"}, {"\"other\"\n> ", "\x04"}})
	says(t, said, "\n42\n", "(reverse-i-search)`oth': 'other'", "\n\"other\"\n")
	if info, err := os.Stat(filepath.Join(dir, ".obelus", "history")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info, err)
	}
	long := strings.Repeat("1\n2\n", term.MaxHistory+1)
	write(t, filepath.Join(dir, ".obelus", "history"), long)
	atPrompt(t, dir, "xterm", []reply{{"> ", "\x04"}})
	if kept, err := os.ReadFile(filepath.Join(dir, ".obelus", "history")); err != nil || string(kept) != long[:2*term.MaxHistory] {
		t.Errorf("%d bytes of the history are kept: %v", len(kept), err)
	}
}

// TestPrompt_Pasted holds that lines that are pasted mean what they say, with tabs
// too.
func TestPrompt_Pasted(t *testing.T) {
	said, _, _ := atPrompt(t, project(t, prompting), "xterm", []reply{
		{"> ", "function f(a)\r\tif a > 1 then\r\t\treturn\t'big'\r\tend\r\treturn 'small'\rend\rf(1)\rf(2)\r"},
		{"\n\"small\"\n", ""},
		{"\n\"big\"\n> ", "\x04"},
	})
	if strings.Contains(said, "coroutine") || strings.Contains(said, "returnx") {
		t.Errorf("a tab has been taken for a question:\n%s", said)
	}
}

// TestPrompt_Interrupted holds that Ctrl-C ends what runs, and that the session goes on; a second
// one ends it, and leaves the terminal as it was.
func TestPrompt_Interrupted(t *testing.T) {
	said, status, restored := atPrompt(t, project(t, prompting), "xterm", []reply{
		{"> ", "print('on') while true do end\r"},
		{"\non\n", "\x03"},
		{"stdin:1: interrupted\n> ", "1+1\r"},
		{"\n2\n> ", "call slow\r"},
		{"1.1 slow ", "\x03"},
		{"once more stops it now", "\x03"},
	})
	if status != exitInterrupted || !restored {
		t.Errorf("it ended with %d, the terminal restored: %v\n%s", status, restored, said)
	}
	said, status, restored = atPrompt(t, project(t, prompting), "xterm", []reply{{"> ", "begun"}, {"begun", "SIGTERM"}})
	if status != exitTerminated || !restored || !strings.HasSuffix(said, "begun\n") {
		t.Errorf("it ended with %d, the terminal restored: %v\n%s", status, restored, said)
	}
}

// TestPrompt_OwnsStdin holds that nothing else reads what is typed: what reads stdin would
// wait for its end.
func TestPrompt_OwnsStdin(t *testing.T) {
	_, status, _ := atPrompt(t, project(t, prompting), "xterm", []reply{
		{"> ", "run plans/p.lua -\r"},
		{"-: the prompt reads stdin itself\n> ", "run plans/p.lua @-\r"},
		{"@-: the prompt reads stdin itself\n> ", "\x04"},
	})
	if status != exitDone {
		t.Errorf("it ended with %d", status)
	}
}

// TestPrompt_Completes holds that Tab completes names, tools and paths, and lists
// them where there are several.
func TestPrompt_Completes(t *testing.T) {
	dir := project(t, prompting)
	obelusOutput(t, exitDone, "-C", dir, "run", "-q", filepath.Join(dir, "plans/p.lua"), "-c", "c")
	said, _, _ := atPrompt(t, dir, "xterm", []reply{
		{"> ", "†sta\t.fi\t.se\t\r"},
		{"\n5\n> ", "call no\t x:=3\r"},
		{"\n3\n> ", "run pl\t\r"},
		{"\nnull\n> ", "string.re\t\t"},
		{"reverse", "\x15table.con\t({1,2}, '-')\r"},
		{"\n\"1-2\"\n> ", "\x04"},
	})
	says(t, said, "†state.first.second", "call note x:=3", "run plans/p.lua", "string.re", "rep ", "reverse", "table.concat({1,2}, '-')")
}

// TestPrompt_DumbTerminal holds that who sits at a terminal that can't move its
// cursor is asked for lines all the same.
func TestPrompt_DumbTerminal(t *testing.T) {
	said, status, restored := atPrompt(t, project(t, prompting), "dumb", []reply{
		{"Ctrl-D leaves\n> ", "x = {\n"},
		{"\n>> ", "7}\n"},
		{"\n> ", "print('on') while true do end\n"},
		{"\non\n", "\x03"},
		{"interrupted\n> ", "x[1]\n"},
		{"\n7\n> ", "for i = 1, 2 do\n"},
		{"\n>> ", "\x03"},
		{"\n> ", "1+1\n"},
		{"\n2\n> ", "\x04"},
	})
	if status != exitDone || !restored {
		t.Errorf("it ended with %d, the terminal restored: %v\n%s", status, restored, said)
	}
}
