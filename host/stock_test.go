package host

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// compareWithStock runs a chunk here and by a stock lua5.1, and compares the texts that
// it returns, line by line.
func compareWithStock(t *testing.T, source string) {
	t.Helper()
	stock, err := exec.LookPath("lua5.1")
	if err != nil {
		t.Skip("skipped: there is no lua5.1 here to compare with")
	}
	file := filepath.Join(t.TempDir(), "programs.lua")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(stock, "-e", `io.write(dofile("programs.lua"))`)
	cmd.Dir = filepath.Dir(file)
	want, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("the stock interpreter refuses: %s", want)
	}
	gots, wants := strings.Split(runProgram(t, source), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(gots), len(wants)) {
		if got, want := part(gots, i), part(wants, i); got != want {
			t.Errorf("line %d: got %q, stock Lua gives %q", i+1, got, want)
		}
	}
}
