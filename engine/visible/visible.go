// Package visible shows people every character of a text, so that they read the same as a program.
package visible

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Text returns a text in which control characters, invisible ones, and those that change the order
// of others are escaped as JSON escapes them: \u202e. JSON stays the same JSON. Line ends and tabs
// stay as they are.
func Text(text string) string {
	var b strings.Builder
	done, before := 0, rune(0)
	for i, r := range text {
		if !isHidden(before, r) {
			before = r
			continue
		}
		b.WriteString(text[done:i])
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
		done, before = i+utf8.RuneLen(r), 0
	}
	if done == 0 {
		return text
	}
	return b.String() + text[done:]
}

// isHidden reports whether a character that follows another one is escaped. Joiners and variation
// selectors are left where they belong, in words and emoji: one of each after a character that is
// not ASCII, whose shape they choose.
func isHidden(before, r rune) bool {
	if r < utf8.RuneSelf {
		return unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t'
	}
	const nonJoiner, joiner = 0x200c, 0x200d
	selects := unicode.Is(unicode.Variation_Selector, r)
	if selects || r == nonJoiner || r == joiner {
		return before < utf8.RuneSelf || before == nonJoiner || before == joiner || selects && unicode.Is(unicode.Variation_Selector, before)
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point)
}
