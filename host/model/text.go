package model

// cutText returns the beginning of a text, of at most some bytes, with a mark where it is cut.
func cutText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return validPrefix(text, most) + "…"
}

// validPrefix returns the longest beginning of at most some bytes that cuts no character.
func validPrefix(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && text[most]&0xC0 == 0x80 {
		most--
	}
	return text[:most]
}
