package cmd

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"obelus/cmd/internal/term"
	"obelus/cmd/internal/termtest"
)

// reply is what a person types once the program has said something. SIGTERM is no
// text: the program is told to end. Nor is touch FILE, which makes one, nor obelus ARGS, which
// somebody else types.
type reply struct{ to, text string }

// session is what a person at a terminal sees of a program.
type session struct {
	written  string // all of it
	said     string // the same, without what moves the cursor
	status   int
	restored bool // the terminal was left as it had been
}

// steering is what moves a terminal's cursor.
var steering = regexp.MustCompile(`\x1b\[[0-9;]*[A-Za-z]|\a`)

// converse runs the program at a terminal of 60 columns.
func converse(t *testing.T, dir, terminal string, rows int, typed []reply, args ...string) session {
	t.Helper()
	person, tty := termtest.Open(t)
	termtest.Resize(t, person, 60, rows)
	before, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	before.Lflag |= unix.NOFLSH // or ^C throws away what was written and has not been read here yet
	if err := unix.IoctlSetTermios(int(tty.Fd()), unix.TCSETS, before); err != nil {
		t.Fatal(err)
	}
	c := program(t, dir, args...)
	c.Env = append(c.Env, "TERM="+terminal, "NO_COLOR=1")
	c.Stdin, c.Stdout, c.Stderr = tty, tty, tty
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true} // so that ^C interrupts it
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(time.Minute, func() { c.Process.Kill() }).Stop()
	var s session
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.Wait()
		after, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
		s.restored = err == nil && *after == *before
		tty.Close()
	}()
	read, some := 0, make([]byte, 4096)
	for {
		n, err := person.Read(some)
		if errors.Is(err, io.EOF) || errors.Is(err, syscall.EIO) { // nobody has the other end any more
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		s.written += string(some[:n])
		s.said = strings.ReplaceAll(steering.ReplaceAllString(s.written, ""), "\r\n", "\n")
		for len(typed) > 0 {
			_, after, ok := strings.Cut(s.said[min(read, len(s.said)):], typed[0].to)
			if !ok {
				break
			}
			read = len(s.said) - len(after)
			if file, ok := strings.CutPrefix(typed[0].text, "touch "); ok {
				write(t, filepath.Join(dir, file), "")
			} else if args, ok := strings.CutPrefix(typed[0].text, "obelus "); ok {
				obelusOutput(t, exitDone, append([]string{"-C", dir}, strings.Fields(args)...)...)
			} else if typed[0].text == "SIGTERM" {
				c.Process.Signal(syscall.SIGTERM)
			} else if _, err := person.WriteString(typed[0].text); err != nil {
				t.Fatal(err)
			}
			typed = typed[1:]
		}
	}
	<-ended
	s.status = c.ProcessState.ExitCode()
	for _, line := range typed {
		t.Errorf("it was never said: %q; but\n%s", line.to, s.said)
	}
	return s
}

// atTerminal runs the program at a terminal whose cursor can't be moved, and gives
// all that stood there and how it ended.
func atTerminal(t *testing.T, dir string, typed []reply, args ...string) (said string, status int) {
	t.Helper()
	s := converse(t, dir, "dumb", 24, typed, args...)
	return s.said, s.status
}

// says holds that texts stand in what was said, one after the other.
func says(t *testing.T, said string, texts ...string) {
	t.Helper()
	rest := said
	for _, text := range texts {
		_, after, ok := strings.Cut(rest, text)
		if !ok {
			t.Fatalf("%q is not said, or not there, in\n%s", text, said)
		}
		rest = after
	}
}

var paying = map[string]string{
	"obelus.lua": "return {}",
	"activities/pay.lua": `
		Tool.register("pay", { properties = { amount = { type = "number" } }, _scopes = { const = { "state.limit" } } })
		Activity.register("pay", function(call) return call.amount end)
		Activity.register("note", function(call) return call.x end)`,
	"plans/pay.lua": `return {
		context = { Message.state{limit = 100} },
		calls = {
			{ _tool = "pay", amount = 12, _outputPath = "†state.first" },
			{ _tool = "pay", amount = 13, x = "†state.first", _outputPath = "†state.second || †state.refused" },
			{ _tool = "note", x = "†state.refused.message", _outputPath = "†state.note" },
		},
		output = "†state.note",
	}`,
}

// TestTerminal_UnendedLines holds that what a script prints without an end of line is neither
// lost where lines move, nor stands before a line of somebody else's.
func TestTerminal_UnendedLines(t *testing.T) {
	dir := project(t, map[string]string{
		"obelus.lua":         "return {}",
		"activities/all.lua": `Activity.register("write", function(call) io.write(call.x) io.flush() io.write(call.x) end)`,
		"plans/p.lua":        `return { { _tool = "write", x = "abc", _outputPath = "†state.x" } }`,
	})
	said, _ := atTerminal(t, dir, nil, "run", "plans/p.lua", "-c", "c")
	says(t, said, "running\n| 1.1 abc\n| 1.1 abc\n✓ 1.1 write done", "\nnull\n")
}

// TestAsked_Decides holds that who sits at the terminal is asked about a call that is
// held, and that the run goes on with what they say.
func TestAsked_Decides(t *testing.T) {
	dir := project(t, paying)
	said, status := atTerminal(t, dir, []reply{
		{"approve? [y]es, [n]o, [l]ater: ", "perhaps\n"},
		{"approve? [y]es, [n]o, [l]ater: ", " Yes\n"},
		{"call 1.2 pay wants to run", ""},
		{"approve? [y]es, [n]o, [l]ater: ", "n\n"},
		{"why not? ", "too much\n"},
	}, "run", "plans/pay.lua", "-c", "c", "--approve", "pay")
	if status != exitDone {
		t.Errorf("it ended with %d", status)
	}
	says(t, said, "‖ call 1.1 pay wants to run\n    amount = 12\n  it may see state.limit: {\"state\":{\"limit\":100}}\n", "1.1 pay done", "call 1.2 pay wants to run", "\n\"too much\"\n")
}

// TestAsked_SomebodyElseDecides holds that a question about which somebody else decides goes away,
// and that who sits there is told who did, and what; and that the next one is asked as ever.
func TestAsked_SomebodyElseDecides(t *testing.T) {
	dir := project(t, paying)
	said, status := atTerminal(t, dir, []reply{
		{"approve? [y]es, [n]o, [l]ater: ", "obelus approve -q -c c 1.1 --set amount:=90 --by eva"},
		{"call 1.1 was approved by eva meanwhile, with amount=90\n", ""},
		{"call 1.2 pay wants to run", ""},
		{"approve? [y]es, [n]o, [l]ater: ", "n\n"},
		{"why not? ", "obelus reject -q -c c 1.2 --reason no --by mo"},
		{"call 1.2 was rejected by mo meanwhile\n", ""},
	}, "run", "plans/pay.lua", "-c", "c", "--approve", "pay")
	if status != exitDone {
		t.Errorf("it ended with %d", status)
	}
	says(t, said, "\n\"no\"\n")
}

// TestInterrupt_Twice holds that the last line says how the run goes on.
func TestInterrupt_Twice(t *testing.T) {
	dir := project(t, interrupting)
	write(t, filepath.Join(dir, "obelus.lua"), `return { drain = "300s", allow = { read = { "." } } }`)
	said, status := atTerminal(t, dir, []reply{
		{"slow has begun", "\x03"},
		{"interrupted: what runs may come to its end within 5m0s (the setting drain); once more stops it now", "\x03"},
	}, "run", "plans/slow.json", "-c", "c")
	if lines := strings.Split(strings.TrimSpace(said), "\n"); status != exitInterrupted || lines[len(lines)-1] != "interrupted: it goes on only by: obelus resume -c c" {
		t.Errorf("%d: %s", status, said)
	}
}

// TestInterrupt_Reported holds what is said of a run that is interrupted in its second tick, and of
// one that is done, where a call that nothing waits for comes to its end after an interrupt.
func TestInterrupt_Reported(t *testing.T) {
	interrupt := reply{"slow has begun", "\x03"}
	for _, test := range []struct {
		plan, drain string
		replies     []reply
		want        string
		status      int
	}{
		{"ticks", "0", []reply{interrupt}, "interrupted: it goes on only by: obelus resume -c c", exitInterrupted},
		{"detached", "'300s'", []reply{interrupt, {"once more stops it now", "touch go"}}, `"all of it"`, exitDone},
	} {
		dir := project(t, interrupting)
		write(t, filepath.Join(dir, "obelus.lua"), `return { drain = `+test.drain+`, allow = { read = { "." } }, model = "m", models = { m = { url = "http://127.0.0.1:1/v1", model = "m" } } }`)
		write(t, filepath.Join(dir, "plans/ticks.lua"), `return function(context)
			if not context.state then return { calls = { { _tool = "set", _outputPath = "†state.a" } } } end
			return { calls = { { _tool = "slow", _outputPath = "†state.b" } } }
		end`)
		write(t, filepath.Join(dir, "plans/detached.lua"), `return { calls = { { _tool = "slow" } }, output = "all of it" }`)
		write(t, filepath.Join(dir, "activities/set.lua"), `Activity.register("set", function() return 1 end)`)
		said, status := atTerminal(t, dir, test.replies, "run", "plans/"+test.plan+".lua", "-c", "c")
		says(t, said, test.want)
		if status != test.status {
			t.Errorf("%s ends with %d", test.plan, status)
		}
	}
}

// TestTerminal_ControlCharacters holds that names and values, which may come from
// anywhere, neither move the cursor nor begin a line of their own nor turn what
// a person reads.
func TestTerminal_ControlCharacters(t *testing.T) {
	dir := project(t, map[string]string{
		"obelus.lua": "return {}",
		"activities/a.lua": `
			Activity.register("bad\27[2J\n✓ 1.9 other", function(call) return call.x end)
			Activity.register("fails", function() return nil, "\226\128\174no\27[2J" end)`,
		"plans/p.lua": `
			local evil = "a\27[2J\n‖ b\194\155c\226\128\174d"
			return { calls = {
				{ _tool = "bad\27[2J\n✓ 1.9 other", x = evil, _instance = evil, _outputPath = "†state.x" },
				{ _tool = "fails", x = evil, _instance = evil, _outputPath = "†state.y" },
				{ _tool = "fails", x = "†input.z", _instance = evil, _outputPath = "†state.z" },
			} }`,
	})
	run, _ := atTerminal(t, dir, []reply{{"[l]ater: ", "y\n"}, {"[l]ater: ", "y\n"}}, "run", "plans/p.lua", "-c", "c", "--approve", "always")
	says(t, run, `x = "a\u001b[2J\n‖ b\u009bc\u202ed"`, "bad\ufffd[2J\ufffd✓ 1.9 other")
	shown := map[string]string{"run": run}
	for _, args := range [][]string{{"calls"}, {"log"}, {"log", "-v"}, {"graph"}, {"get", "state"}, {"why", "state.x"}, {"contexts"},
		{"sql", "SELECT substr(instance, 1, 5) FROM calls"}, {"run", "plans/p.lua", "-c", "d", "--approve", "always", "--mode", "lazy"}} {
		shown[strings.Join(args, " ")], _ = atTerminal(t, dir, nil, args...)
	}
	obelusOutput(t, exitWaiting, "-C", dir, "run", "-q", "plans/p.lua", "-c", "e", "--approve", "always")
	shown["approvals"], _ = atTerminal(t, dir, nil, "approvals", "-c", "e")
	for command, text := range shown {
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "‖ b") || strings.HasPrefix(line, "✓ 1.9") || strings.ContainsAny(line, "\x1b\u009b\u202e") {
				t.Errorf("%s: %q", command, line)
			}
		}
	}
}

// TestAsked_Later holds that a call about which nobody decides stays held, and that
// it is not asked about again.
func TestAsked_Later(t *testing.T) {
	dir := project(t, paying)
	for _, a := range []string{"l\n", "\x04"} { // or Ctrl-D
		said, status := atTerminal(t, dir, []reply{{"approve? [y]es, [n]o, [l]ater: ", a}}, "run", "plans/pay.lua", "--approve", "pay")
		if n := strings.Count(said, "approve?"); status != exitWaiting || n != 1 {
			t.Errorf("it ended with %d, and asked %d times:\n%s", status, n, said)
		}
		says(t, said, "is held for a person: obelus approve")
	}
}

// TestAsked_AboutADelegate holds that a delegate's call has the name in a question that
// it has in the lines about it: the call that is delegated may look the same.
func TestAsked_AboutADelegate(t *testing.T) {
	dir := project(t, map[string]string{
		"obelus.lua": "return {}",
		"activities/a.lua": `
			Activity.register("pay", function(call) return call.amount end)
			Delegate.register("helper", function() return { calls = { { _tool = "pay", amount = 2, _outputPath = "†result" } }, output = "†result" } end)`,
		"plans/p.lua": `return { calls = { { _tool = "pay", amount = 1, _delegate = "helper", _outputPath = "†state.x" } }, output = "†state.x" }`,
	})
	said, status := atTerminal(t, dir, []reply{
		{"‖ call 1.1 pay wants to run\n    amount = 1\n  approve? [y]es, [n]o, [l]ater: ", "y\n"},
		{"‖ call 1.1/1.1 pay wants to run\n    amount = 2\n  approve? [y]es, [n]o, [l]ater: ", "y\n"},
	}, "run", "plans/p.lua", "-c", "c", "--approve", "always")
	if status != exitDone {
		t.Errorf("it ended with %d:\n%s", status, said)
	}
}

// TestTerminal_Narrow holds that on a narrow terminal there is what has become of a call, and no
// bars in its place, and when a context was appended to, however long its plan's name.
func TestTerminal_Narrow(t *testing.T) {
	dir := project(t, map[string]string{
		"obelus.lua":                         "return {}",
		"activities/a.lua":                   `Activity.register("note", function() return nil, "a reason" end)`,
		"plans/with-a-name-that-is-long.lua": `return { { _tool = "note", _outputPath = "†state.x" } }`,
	})
	obelusOutput(t, exitFailed, "-C", dir, "run", "-q", "-c", "c", filepath.Join(dir, "plans/with-a-name-that-is-long.lua"))
	for command, want := range map[string]string{
		"calls":        `[0-9] (µs|ms|s)  a reason\n`,
		"calls --bars": `█`,
		"contexts":     `\nc  +failed  plans/w.*…  .* [0-9]{2}:[0-9]{2}:[0-9]{2}\n`,
	} {
		if said, _ := atTerminal(t, dir, nil, strings.Fields(command)...); !regexp.MustCompile(want).MatchString(said) {
			t.Errorf("%s shows\n%s", command, said)
		}
	}
}

// TestWhy_AtTerminal holds what an explanation looks like to a person: a tree, cut
// at the terminal's width.
func TestWhy_AtTerminal(t *testing.T) {
	dir := project(t, map[string]string{
		"obelus.lua":       "return {}",
		"activities/a.lua": `Activity.register("join", function(call) return call.a .. call.b end)`,
		"plans/p.lua": `return { calls = {
			{ _tool = "join", a = "†input.name", b = "!", _outputPath = "†state.once" },
			{ _tool = "join", a = "†state.once", b = "†input.name", _outputPath = "†state.all", _outputMethod = "push" },
		} }`,
	})
	obelusOutput(t, exitDone, "-C", dir, "run", "-q", "plans/p.lua", "-c", "c", "-i", "name="+strings.Repeat("x", 60))
	said, status := atTerminal(t, dir, nil, "why", "†state.all", "-c", "c")
	want := `†state.all = ["xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…
└─ #4 call 1.2 (join) wrote †state.all by push
   ├─ †input.name = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…
   │  └─ #1 came from outside: †input.name
   └─ †state.once = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…
      └─ #3 call 1.1 (join) wrote †state.once
         └─ †input.name (see above)
`
	if status != exitDone || said != want {
		t.Errorf("it ended with %d:\n%swant\n%s", status, said, want)
	}
}

// TestInterrupt_AtTerminal holds that what is written after the ^C of a terminal,
// the shell's prompt too, begins a line, and that the second one waits for nothing.
func TestInterrupt_AtTerminal(t *testing.T) {
	dir := project(t, map[string]string{
		"obelus.lua":         `return { drain = "100ms", serve = { addr = "127.0.0.1:0" } }`,
		"activities/all.lua": `Activity.register("slow", function() require("time").sleep(20) end)`,
		"plans/p.lua":        `return { { _tool = "slow", _outputPath = "†state.x" } }`,
	})
	write(t, filepath.Join(dir, "m.json"), `{"type":"state","x":1}`)
	obelusOutput(t, exitDone, "-C", dir, "append", "-q", "-c", "c", filepath.Join(dir, "m.json"))
	for _, test := range []struct {
		replies []reply
		args    []string
		status  int
		end     string
	}{
		{[]reply{{"†state", "\x03"}}, []string{"log", "--follow", "-c", "c"}, exitInterrupted, "\n\n"},
		{[]reply{{"running", "\x03"}, {"stops it now", "\x03"}}, []string{"run", "plans/p.lua"}, exitInterrupted, "stops it now\n\n"},
		{[]reply{{"serving", "\x03"}}, []string{"serve"}, exitDone, "\n\nending: what runs may come to its end; once more ends it now\n"},
	} {
		said, status := atTerminal(t, dir, test.replies, test.args...)
		// The terminal shows ^C once it has told the program, which may be quicker.
		if status != test.status || !strings.Contains(strings.ReplaceAll(said, "^C", ""), test.end) {
			t.Errorf("obelus %s ended with %d:\n%s", strings.Join(test.args, " "), status, said)
		}
	}
	var told strings.Builder
	moving := &term.Terminal{Err: &told, ErrTTY: true, Moves: true}
	moving.Interrupted(syscall.SIGTERM)
	moving.Interrupted(os.Interrupt)
	if got := told.String(); got != "\r\x1b[K" {
		t.Errorf("%q", got)
	}
}
