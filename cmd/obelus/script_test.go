package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
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

// TestExamples runs every example that has an input or an expected output, in
// a copy of its folder, and compares what it prints.
func TestExamples(t *testing.T) {
	examples, err := os.ReadDir("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range examples {
		t.Run(e.Name(), func(t *testing.T) {
			dir := t.TempDir()
			source := "../../examples/" + e.Name()
			if err := os.CopyFS(dir, os.DirFS(source)); err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(source + "/expected.json")
			if err != nil {
				t.Fatal("an example says what it prints: ", err)
			}
			args := []string{"run", "-q", dir + "/plans/" + e.Name() + ".lua"}
			if _, err := os.Stat(dir + "/input.json"); err == nil {
				args = append(args, "-i", "@"+dir+"/input.json")
			}
			got := obelusOutput(t, exitDone, args...)
			if got != string(want) {
				t.Errorf("it prints\n%s\nand not\n%s", got, want)
			}
			obelusOutput(t, exitDone, "check", "-q", "-C", dir)
		})
	}
}
