package luaerr

import (
	"strings"

	"obelus/engine/spell"
)

// DidYouMean returns the end of an error about an unknown name: ` (did you mean "timeout"?)` if one
// of the candidates is similar, the list of them all if they are few, else nothing.
func DidYouMean(name string, candidates []string) string {
	if near := spell.Nearest(name, candidates); near != "" {
		return ` (did you mean "` + near + `"?)`
	}
	if len(candidates) > 0 && len(candidates) <= 12 {
		return " (one of " + strings.Join(candidates, ", ") + ")"
	}
	return ""
}
