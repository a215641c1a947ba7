package store

import "bytes"

// PlainJSON returns the text of a file or of standard input as JSON: comments (// to the end of the
// line, and /* */) and a comma after the last element of an object or array are replaced by spaces,
// so that all else keeps its place. The reader reports what is wrong with the rest. A text with
// neither is returned as it is.
func PlainJSON(text []byte) []byte {
	given, comma, last := text, -1, byte(0) // comma: offset of a comma after an element, with only space since
	blank := func(from, to int) {
		if &text[0] == &given[0] {
			text = bytes.Clone(given)
		}
		for i := from; i < to; i++ {
			if text[i] != '\n' && text[i] != '\r' {
				text[i] = ' '
			}
		}
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == ' ', c == '\t', c == '\r', c == '\n':
			continue
		case bytes.HasPrefix(text[i:], []byte("//")), bytes.HasPrefix(text[i:], []byte("/*")):
			end := commentEnd(text, i)
			if end < 0 {
				return text
			}
			blank(i, end)
			i = end - 1
			continue
		case c == ',' && bytes.IndexByte([]byte("[{,:\x00"), last) < 0:
			comma = i
		case (c == ']' || c == '}') && comma >= 0:
			blank(comma, comma+1)
			comma = -1
		default:
			comma = -1
		}
		if last = text[i]; last == '"' {
			i = stringEnd(text, i)
		}
	}
	return text
}

// commentEnd returns the end of a comment that begins at an offset; -1 if it has none.
func commentEnd(text []byte, at int) int {
	end, length := []byte("\n"), 0
	if text[at+1] == '*' {
		end, length = []byte("*/"), 2
	}
	switch n := bytes.Index(text[at+2:], end); {
	case n >= 0:
		return at + 2 + n + length
	case length > 0:
		return -1
	}
	return len(text)
}

// stringEnd returns the offset of the quote that closes a string, or the end of the text.
func stringEnd(text []byte, at int) int {
	for at++; at < len(text) && text[at] != '"'; at++ {
		if text[at] == '\\' {
			at++
		}
	}
	return at
}
