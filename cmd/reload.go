package cmd

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"obelus/cmd/internal/human"
	"obelus/cmd/internal/term"
	"obelus/host"
)

// printReload prints which scripts have been loaded, or the error that keeps the old ones.
// withSource adds the lines of source that an error names.
func printReload(t *term.Terminal, r host.Reload, withSource func(error) error) {
	if r.Err != nil {
		t.Error(errors.Join(withSource(r.Err), fmt.Errorf("the scripts stay as they were (generation %d)", r.Generation.Number)))
		return
	}
	t.Infof("generation %d: %s (%s)", r.Generation.Number, reloadedFiles(r), human.Duration(r.Took))
	if len(r.Pending) > 0 {
		t.Error(errors.New(pendingSettings(r)))
	}
}

// pendingSettings says which settings take effect only when the host is started again.
func pendingSettings(r host.Reload) string {
	granted := func(name string) bool { return name == "allow" || name == "serve.tokens" }
	if r.Withheld && !slices.ContainsFunc(r.Pending, func(name string) bool { return !granted(name) }) {
		return fmt.Sprintf("%s grants more than before: that counts when the host is started again, or on SIGHUP under serve", host.SettingsFile)
	}
	return fmt.Sprintf("%s: a change of %s counts when the host is started again", host.SettingsFile, strings.Join(r.Pending, " and "))
}

// reloadedFiles names the files that were added, changed or removed.
func reloadedFiles(r host.Reload) string {
	var parts []string
	for _, part := range []struct {
		what  string
		files []string
	}{{"added", r.Added}, {"changed", r.Changed}, {"removed", r.Removed}} {
		if len(part.files) > 0 {
			parts = append(parts, part.what+" "+strings.Join(part.files, " "))
		}
	}
	if len(parts) == 0 {
		return "nothing has changed"
	}
	return strings.Join(parts, ", ")
}

// logReload logs a reload as a record.
func logReload(logger *slog.Logger, r host.Reload) {
	attrs := []any{"generation", r.Generation.Number, "digest", r.Generation.Digest, "took", r.Took, "added", r.Added, "changed", r.Changed, "removed", r.Removed}
	if len(r.Pending) > 0 {
		attrs = append(attrs, "pending", r.Pending)
	}
	if r.Err != nil {
		problems, _ := host.Problems(r.Err)
		logger.Error("reload", append(attrs, "error", r.Err.Error(), "check", problems)...)
		return
	}
	logger.Info("reload", attrs...)
}
