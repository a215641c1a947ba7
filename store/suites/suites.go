// Package suites finds published test suites, such as the ones of YAML, JSON and CSV, for tests.
// Their data is not part of this repository.
package suites

import (
	"os"
	"path/filepath"
	"testing"
)

// Dir returns the folder of a suite, such as "yaml". It skips the test, and says so, where
// the suite is absent.
//
// The suites lie in the folder that the environment variable OBELUS_SUITES names. Without it
// they lie in ../shared/data/suites, seen from the root of the module.
func Dir(t testing.TB, name string) string {
	t.Helper()
	root := os.Getenv("OBELUS_SUITES")
	if root == "" {
		root = filepath.Join(moduleRoot(t), "..", "shared", "data", "suites")
	}
	dir := filepath.Join(root, name)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		t.Skipf("skipped: the suite %s is not in %s; OBELUS_SUITES can name another folder", name, root)
	}
	return dir
}

// moduleRoot returns the folder with go.mod at or above the folder of the package under test,
// in which go test runs its binary.
func moduleRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		above := filepath.Dir(dir)
		if above == dir {
			t.Fatal("no folder above this test holds go.mod")
		}
		dir = above
	}
}
