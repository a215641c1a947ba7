package cmd

import (
	"encoding/binary"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/rogpeppe/go-internal/testscript"

	"obelus/host"
	"obelus/host/model/modeltest"
)

// atOnce as GORACE lets a process end without the second for which it else
// waits for races that show late: the tests start hundreds.
const atOnce = "atexit_sleep_ms=0"

func TestMain(m *testing.M) {
	host.Worker()
	if os.Getenv(asObelus) != "" { // this test binary as the program, see start
		if point := os.Getenv(asMortal); point != "" {
			wrapLog = mortals(point)
		}
		os.Exit(Main(programConfig()))
	}
	os.Setenv("GORACE", atOnce)
	testscript.Main(m, map[string]func(){"obelus": func() { os.Exit(Main(Config{})) }})
}

// TestScripts runs the program as a user would: one script for each command,
// and for each way of failing. A script that needs a program that is not here
// says so.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"lock": lock, "query": query, "provider": provider(t), "status": status, "wide": encode, "capture": capture},
		Setup: func(env *testscript.Env) error {
			env.Setenv("NO_COLOR", "1")
			env.Setenv("GORACE", atOnce)
			return nil
		},
	})
}

// capture sets a variable to what the group of a pattern matches on stdout: "capture HASH 'plan (\w+)'".
func capture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: capture name pattern")
	}
	found := regexp.MustCompile("(?m)" + args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
	if len(found) != 2 {
		ts.Fatalf("%q matches nothing on stdout", args[1])
	}
	ts.Setenv(args[0], found[1])
}

// provider starts a provider of models, "provider ANSWERS [NUM_CTX]", and puts its address into obelus.lua,
// where that has URL. It answers by the lines of the file, each a JSON value, one after the other; a
// line that begins with ! is something that goes wrong, see [modeltest.Fault].
func provider(t *testing.T) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) < 1 || len(args) > 2 {
			ts.Fatalf("usage: provider answers [num_ctx]")
		}
		lines := strings.Split(strings.TrimSpace(ts.ReadFile(args[0])), "\n")
		faults := map[string]modeltest.Fault{"!schema": modeltest.RefusesSchema, "!unauthorized": modeltest.Unauthorized, "!refuses": modeltest.Refuses, "!slow": modeltest.Slow}
		server := modeltest.NewServer(t)
		if len(args) == 2 {
			var err error
			server.NumCtx, err = strconv.Atoi(args[1])
			ts.Check(err)
		}
		line := func(r *modeltest.Request) string {
			if r.Number > len(lines) {
				return "!error"
			}
			return lines[r.Number-1]
		}
		server.Fault = func(r *modeltest.Request) modeltest.Fault {
			if text := line(r); text == "!error" {
				return modeltest.QuotaUsedUp
			} else {
				return faults[text]
			}
		}
		server.Answer = func(r *modeltest.Request) modeltest.Reply {
			return modeltest.Reply{Text: line(r), Input: 100, Output: 10}
		}
		settings := ts.MkAbs("obelus.lua")
		text := strings.ReplaceAll(ts.ReadFile(settings), "URL", server.URL)
		ts.Check(os.WriteFile(settings, []byte(text), 0o600))
	}
}

// encode copies a text file in another encoding: "wide utf16 TO FROM", or mark for UTF-8 with a
// byte order mark.
func encode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: wide utf16|mark to from")
	}
	text := "\ufeff" + ts.ReadFile(args[2])
	made := []byte(text)
	if args[0] == "utf16" {
		made = nil
		for _, unit := range utf16.Encode([]rune(text)) {
			made = binary.LittleEndian.AppendUint16(made, unit)
		}
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), made, 0o600))
}
