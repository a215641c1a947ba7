package expr

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"obelus/engine/spell"
	"obelus/store"
)

// ParseCondition compiles a text that is an expression however it begins, as an output path is. One
// without a reference is refused: it would always give the same.
func ParseCondition(text string) (*Expr, error) {
	if !strings.Contains(text, store.Dagger) {
		return nil, fmt.Errorf("%q has no reference%s", text, meantCondition(text))
	}
	e, err := compile(text)
	if err == nil && len(e.Reads()) == 0 {
		err = fmt.Errorf("%q has no reference: its † stands in a text", text)
	}
	if err != nil {
		return nil, err
	}
	return e, nil
}

// bareName finds the names in a condition without daggers that may be meant as references.
var bareName = regexp.MustCompile(`"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[\p{L}_][\p{L}\p{N}_]*(?:\.[\p{L}\p{N}_]+)+`)

// meantCondition returns a hint to the condition that may be meant by a text without references.
func meantCondition(text string) string {
	word := strings.ToLower(strings.TrimSpace(text))
	switch {
	case slices.Contains([]string{"true", "yes", "on"}, word):
		return " (did you mean true, which is no text?)"
	case slices.Contains([]string{"false", "no", "off"}, word), spell.Nearest(word, []string{"false"}) != "":
		return " (did you mean false, which is no text?)"
	}
	if made, err := WithDaggers(text); err == nil {
		return fmt.Sprintf(" (did you mean %q?)", made)
	}
	made := bareName.ReplaceAllStringFunc(text, func(name string) string {
		if strings.ContainsAny(name[:1], `"'`) {
			return name
		}
		return store.Dagger + name
	})
	if _, err := compile(made); err == nil && made != text {
		return fmt.Sprintf(" (did you mean %q?)", made)
	}
	return ", and so is always the same: a reference begins with †"
}
