package suites_test

import (
	"os"
	"path/filepath"
	"testing"

	"obelus/store/suites"
)

func TestDir_OfTheEnvironmentAlone(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "csv"), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		root, suite string
		want        string // "" for a test that is skipped
	}{
		{root, "csv", filepath.Join(root, "csv")},
		{root, "yaml", ""},
		{"", "csv", ""},
	} {
		t.Setenv("OBELUS_SUITES", test.root)
		got := ""
		t.Run("in "+test.root, func(t *testing.T) { got = suites.Dir(t, test.suite) })
		if got != test.want {
			t.Errorf("%s in %q: %q, want %q", test.suite, test.root, got, test.want)
		}
	}
}
