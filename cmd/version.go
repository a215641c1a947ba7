package cmd

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is the release of this source. A build from a checkout adds its commit.
const version = "0.1.0"

func versionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "print the version",
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return printVersion(a) },
	}
}

func printVersion(a *app) error {
	commit := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				commit = s.Value[:min(12, len(s.Value))]
			}
		}
	}
	if a.json {
		return a.term.NDJSON(map[string]any{"version": version, "commit": commit, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH})
	}
	if commit != "" {
		commit = " (" + commit + ")"
	}
	return a.term.Line(fmt.Sprintf("obelus %s%s %s %s/%s", version, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH))
}
