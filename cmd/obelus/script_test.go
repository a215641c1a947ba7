package main

import (
	"os"
	"testing"

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
			opened = mortals(point)
		}
		main()
	}
	os.Setenv("GORACE", atOnce)
	testscript.Main(m, map[string]func(){"obelus": main})
}

// TestScripts runs the program as a user would: one script for each command,
// and for each way of failing. A script that needs a program that is not here
// says so.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"lock": lock, "query": query, "status": status},
		Setup: func(env *testscript.Env) error {
			env.Setenv("NO_COLOR", "1")
			env.Setenv("GORACE", atOnce)
			return nil
		},
	})
}
