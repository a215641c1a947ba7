package cmd

import (
	"encoding/binary"
	"os"
	"testing"
	"unicode/utf16"

	"obelus/host"

	"github.com/rogpeppe/go-internal/testscript"
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
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"lock": lock, "query": query, "status": status, "wide": encode},
		Setup: func(env *testscript.Env) error {
			env.Setenv("NO_COLOR", "1")
			env.Setenv("GORACE", atOnce)
			return nil
		},
	})
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
