package main

import (
	"os"
	"testing"

	"obelus/host"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	host.Worker()
	if os.Getenv(asObelus) != "" { // this test binary as the program, see start
		main()
	}
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
			return nil
		},
	})
}
