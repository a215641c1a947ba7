package host

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"obelus/engine/plan"
	"obelus/luastd"
)

// effectiveGrants returns the permissions of the embedding program, else of the settings.
func (g *Generation) effectiveGrants() luastd.Grants {
	grants := g.settings.Allow
	if g.config.Grants != nil {
		grants = *g.config.Grants
	}
	grants.Root = cmp.Or(grants.Root, g.config.Dir)
	for _, s := range g.settings.secrets() {
		grants.Secrets = append(slices.Clip(grants.Secrets), s.name)
	}
	if !grants.Write.None() {
		grants.Guarded = append(slices.Clone(grants.Guarded), g.guardedPlaces()...)
	}
	return grants
}

// linkedPlaces returns the links in a place of scripts, and where they lead, also from folders that
// they lead to: scripts there may run.
func linkedPlaces(dir, place string) (places []string) {
	seen := map[string]bool{}
	var follow func(path string)
	follow = func(path string) {
		at := links(dir, path)
		places = append(places, at...)
		real := filepath.Join(dir, path)
		if len(at) > 0 {
			real = at[len(at)-1]
		}
		if seen[real] {
			return
		}
		seen[real] = true
		entries, _ := os.ReadDir(real) // none for a file or an absent path
		for _, entry := range entries {
			if entry.IsDir() || entry.Type()&os.ModeSymlink != 0 {
				follow(filepath.Join(path, entry.Name()))
			}
		}
	}
	follow(place)
	return places
}

// scriptPlaces are the places below the project that decide what runs.
var scriptPlaces = []string{SettingsFile, "activities", "lib", "plans", "tests"}

// guardedPlaces returns the places that a permission to write must name: the scripts, also behind
// links, and the log with the files beside it. A log in the project's own folder has only the files
// of its name.
func (g *Generation) guardedPlaces() (places []string) {
	dir := g.config.Dir
	if dir != "" {
		for _, name := range scriptPlaces {
			places = append(places, filepath.Join(dir, name))
			places = append(places, linkedPlaces(dir, name)...)
		}
	}
	log := g.config.DB
	if log == "" && dir != "" {
		log = filepath.Join(dir, filepath.FromSlash(cmp.Or(g.settings.DB, DefaultLog)))
	}
	log, err := filepath.Abs(log)
	switch {
	case log == "" || err != nil:
	case filepath.Dir(log) != dir:
		places = append(places, filepath.Dir(log))
	default:
		for _, ending := range []string{"", "-journal", "-wal", "-shm"} {
			places = append(places, log+ending)
		}
	}
	slices.Sort(places)
	return slices.Compact(places)
}

// writableScripts warns of permissions by which scripts can write scripts.
func (g *Generation) writableScripts() (all []plan.Problem) {
	sc := g.project.Scripts[SettingsFile]
	if sc == nil || g.config.Dir == "" {
		return nil
	}
	for _, entry := range g.settings.Allow.Write.List {
		name, err := filepath.Rel(g.config.Dir, inProject(g.config.Dir, entry))
		place, _, _ := strings.Cut(filepath.ToSlash(name), "/")
		if err == nil && slices.Contains(scriptPlaces, place) {
			all = append(all, plan.Problem{
				File: SettingsFile, Line: keyLine(sc, []string{"allow", "write"}), Severity: plan.SeverityWarning, Code: plan.CodePermission,
				Message: fmt.Sprintf("allow.write has %q, in %s: what is written there runs with all that the project allows", entry, place),
			})
		}
	}
	return all
}

// inProject returns the place on disk that an entry of a permission means.
func inProject(dir, entry string) string {
	if entry = filepath.FromSlash(entry); filepath.IsAbs(entry) {
		return filepath.Clean(entry)
	}
	return filepath.Join(dir, entry)
}
