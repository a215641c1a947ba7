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

func TestFile_OfTheEnvironmentAlone(t *testing.T) {
	root := t.TempDir()
	suites1 := filepath.Join(root, "suites")
	if err := os.Mkdir(suites1, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(suites1, "within.json"), filepath.Join(root, "beside.json")} {
		if err := os.WriteFile(path, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		root, name string
		want       string // "" for a test that is skipped
	}{
		{suites1, "within.json", filepath.Join(suites1, "within.json")},
		{suites1, "beside.json", filepath.Join(root, "beside.json")},
		{suites1 + "/", "beside.json", filepath.Join(root, "beside.json")},
		{suites1, "nowhere.json", ""},
		{root, "suites", ""},
		{"", "beside.json", ""},
	} {
		t.Setenv("OBELUS_SUITES", test.root)
		got := ""
		t.Run("in "+test.root, func(t *testing.T) { got = suites.File(t, test.name) })
		if got != test.want {
			t.Errorf("%s in %q: %q, want %q", test.name, test.root, got, test.want)
		}
	}
}
