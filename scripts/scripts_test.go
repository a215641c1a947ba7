package scripts

import (
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestInitHoldsTheWholeProject(t *testing.T) {
	var got []string
	err := fs.WalkDir(Init(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			got = append(got, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{".gitignore", ".luarc.json", "activities/hello.lua", "obelus.lua", "plans/hello.lua", "tests/hello_test.lua"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
