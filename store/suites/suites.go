// Package suites finds published test suites, such as the ones of YAML, JSON and CSV, for tests.
// Their data is not part of this repository: the environment variable OBELUS_SUITES names the
// folder that holds them.
package suites

import (
	"os"
	"path/filepath"
	"testing"
)

// Dir returns the folder of a suite, such as "yaml": that of its name in the folder that the
// environment variable OBELUS_SUITES names. It skips the test, and says why, where there is none.
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
