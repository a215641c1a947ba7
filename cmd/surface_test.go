package cmd

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var updateSurface = flag.Bool("update-surface", false, "write testdata/surface anew")

// TestSurface_OfPackages compares what the packages for other programs export, with its
// documentation, with what was decided: it grows by a change of testdata/surface alone.
//
//	go test ./cmd -run TestSurface -update-surface
func TestSurface_OfPackages(t *testing.T) {
	for _, name := range []string{"store", "engine", "engine/plan", "host", "host/supervise", "host/web", "cmd"} {
		t.Run(name, func(t *testing.T) {
			text, err := exec.Command("go", "doc", "-all", "obelus/"+name).Output()
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", "surface", strings.ReplaceAll(name, "/", "_")+".txt")
			if *updateSurface {
				if err := os.WriteFile(file, text, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(text)); diff != "" {
				t.Errorf("the exported surface has changed; if that is meant, write it anew by go test ./cmd -run TestSurface -update-surface:\n%s", diff)
			}
		})
	}
}
