package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheckPath_Addresses: an address is no path of a log or a copy; nothing is made for it, and
// nothing behind its scheme is told.
func TestCheckPath_Addresses(t *testing.T) {
	t.Chdir(t.TempDir())
	log, err := Open("log.db", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for _, scheme := range []string{"postgres", "mysql", "file", "s3", "HTTPS", "sqlite+x", "a.b-c"} {
		address := scheme + "://u:secret@h/db"
		_, opened := Open(address, Options{})
		_, read := Open(address, Options{ReadOnly: true})
		_, restored := Restore(t.Context(), address, "other.db", false)
		_, replaced := Restore(t.Context(), "log.db", address, true)
		for what, err := range map[string]error{"open": opened, "read": read, "backup": log.Backup(t.Context(), address), "restore": restored, "replace": replaced} {
			if !errors.Is(err, ErrNotOurs) || !strings.HasPrefix(err.Error(), scheme+"://… is an address") || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s of %s gives %v", what, scheme, err)
			}
		}
		if _, err := os.Lstat(scheme + ":"); err == nil {
			t.Errorf("a folder was made for %s", scheme)
		}
	}
	for _, path := range []string{"a:b", "a/b://c", filepath.Join(t.TempDir(), "x"), "postgres", "c://x"} {
		if err := CheckPath(path); err != nil {
			t.Error(err)
		}
	}
}
