package view

import (
	"fmt"

	"obelus/cmd/internal/human"
	"obelus/engine/plan"
)

// Corrected returns an argument that a person corrected, with what it was and the reference that
// had given that, as far as they are known: "4, corrected by ada; was 5 ◂ †input.amount".
func Corrected(now any, by string, was plan.Values, refs map[string]string, name string) string {
	text := fmt.Sprintf("%s, corrected by %s", human.JSON(now), human.Printable(by))
	old, had := was[name]
	ref := refs[name]
	switch {
	case had:
		text += "; was " + human.JSON(old)
	case ref != "":
		text += "; was"
	}
	if ref != "" {
		text += " ◂ " + human.Printable(ref)
	}
	return text
}
