// Package suites finds published test suites, such as the ones of YAML, JSON and CSV, for tests.
// Their data is not part of this repository: the environment variable OBELUS_SUITES names the
// folder that holds them.
package suites

import (
	"os"
	"path/filepath"
	"testing"
)

// Dir returns the folder of a suite, such as "yaml", in the folder that the environment variable
// OBELUS_SUITES names. If there is none, it skips the test and says why.
func Dir(t testing.TB, name string) string {
	t.Helper()
	root := os.Getenv("OBELUS_SUITES")
	if root == "" {
		t.Skipf("skipped: the suite %s is not here: OBELUS_SUITES names no folder with published suites", name)
	}
	dir := filepath.Join(root, name)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		t.Skipf("skipped: the suite %s is not in %s, which OBELUS_SUITES names", name, root)
	}
	return dir
}

// File returns the path of a file that is published on its own, such as a schema, in the folder
// that the environment variable OBELUS_SUITES names or beside that folder. If there is none, it
// skips the test and says why.
func File(t testing.TB, name string) string {
	t.Helper()
	root := os.Getenv("OBELUS_SUITES")
	if root == "" {
		t.Skipf("skipped: the file %s is not here: OBELUS_SUITES names no folder with published suites", name)
	}
	for _, dir := range []string{root, filepath.Dir(filepath.Clean(root))} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
			return filepath.Join(dir, name)
		}
	}
	t.Skipf("skipped: the file %s is neither in %s, which OBELUS_SUITES names, nor beside it", name, root)
	return ""
}
