package cli

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"obelus/engine/spell"
	"obelus/host"
)

// NearPlan returns an existing plan file for a name without its folder or its ending, or with a
// spelling mistake; "" if there is none.
func NearPlan(plan string) string {
	folder, name := filepath.Split(plan)
	stem := strings.TrimSuffix(name, filepath.Ext(name))
	if stem == "" {
		return ""
	}
	for _, folder := range []string{folder, filepath.Join(folder, "plans")} {
		entries, _ := os.ReadDir(cmp.Or(folder, ".")) // a folder that can't be read suggests nothing
		files := map[string]string{}
		for _, entry := range entries {
			base, ending := entry.Name(), filepath.Ext(entry.Name())
			if isPlan := ending == ".lua" || ending == ".json"; isPlan && base != host.SettingsFile && !entry.IsDir() {
				file := filepath.Join(folder, base)
				files[base], files[strings.TrimSuffix(base, ending)] = file, file
			}
		}
		near := spell.Nearest(name, slices.Sorted(maps.Keys(files)))
		if file := cmp.Or(files[name], files[stem], files[near]); file != "" {
			return file
		}
	}
	return ""
}
