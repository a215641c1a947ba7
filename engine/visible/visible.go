// Package visible shows people every character of a text, so that they read the same as a program,
// and commands so that a shell reads what they read.
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

// isHidden reports whether a character that follows another one is escaped. One joiner or
// variation selector is left where it chooses the shape of the character before it, in emoji and
// some scripts.
func isHidden(before, r rune) bool {
	const nonJoiner, joiner = 0x200c, 0x200d
	isSign := before >= utf8.RuneSelf && unicode.In(before, unicode.So, unicode.Sk) // as emoji are
	switch {
	case r < utf8.RuneSelf:
		return unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t'
	case r == nonJoiner || r == joiner:
		return !isSign && !unicode.In(before, joining...) && !unicode.Is(unicode.Variation_Selector, before)
	case unicode.Is(unicode.Variation_Selector, r):
		return !isSign && !unicode.In(before, unicode.Han, unicode.Mongolian)
	}
	return !unicode.Is(unicode.Prepended_Concatenation_Mark, r) &&
		unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point)
}

// joining are the scripts that are written with joiners.
var joining = []*unicode.RangeTable{
	unicode.Arabic, unicode.Bengali, unicode.Devanagari, unicode.Gujarati, unicode.Gurmukhi, unicode.Kannada, unicode.Khmer, unicode.Malayalam,
	unicode.Mongolian, unicode.Myanmar, unicode.Nko, unicode.Oriya, unicode.Sinhala, unicode.Syriac, unicode.Tamil, unicode.Telugu, unicode.Tibetan,
}
