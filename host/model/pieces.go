package model

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"obelus/store"
)

// pieces is a text that comes in several JSON strings. They are joined before they are decoded: a
// provider may cut an answer within a character, and between the two escapes of one.
type pieces struct {
	raw   []byte // the insides of the strings
	shown int    // number of bytes of raw that next has returned
}

// add adds a JSON string, and of another value that is not null its JSON text.
func (p *pieces) add(value json.RawMessage) {
	switch {
	case len(value) == 0 || string(value) == "null":
	case value[0] == '"':
		p.raw = append(p.raw, value[1:len(value)-1]...)
	default:
		var text bytes.Buffer
		if json.Compact(&text, value) == nil { // no line ends are left
			p.raw = append(p.raw, strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text.String())...)
		}
	}
}

// next returns the text that was added since the last call, for display. A character that may not
// be complete waits for the next one.
func (p *pieces) next() string {
	added := p.raw[p.shown:]
	added = added[:len(added)-incompleteEnd(added)]
	p.shown += len(added)
	return decodeInside(added)
}

// text returns the whole text. Its error says where the text is not valid UTF-8, or has half a
// character; there the text has U+FFFD.
func (p *pieces) text() (string, error) {
	if bytes.IndexByte(p.raw, '\\') < 0 && utf8.Valid(p.raw) { // the usual case
		return string(p.raw), nil
	}
	v, err := store.DecodeJSON(quoted(p.raw))
	if err != nil {
		return decodeInside(p.raw), err
	}
	return v.(string), nil
}

// quoted returns the JSON string with an inside.
func quoted(inside []byte) []byte {
	return append(append([]byte{'"'}, inside...), '"')
}

// decodeInside decodes the inside of a JSON string, with U+FFFD where it is no text.
func decodeInside(inside []byte) (text string) {
	if bytes.IndexByte(inside, '\\') < 0 && utf8.Valid(inside) {
		return string(inside)
	}
	_ = json.Unmarshal(quoted(inside), &text)
	return text
}

// incompleteEnd returns how many bytes at the end of the inside of a JSON string may be the
// beginning of a character: an escape that another must follow, or a part of UTF-8.
func incompleteEnd(inside []byte) int {
	const escape = len(`\ud83d`)
	if at := len(inside) - escape; at >= 0 && inside[at] == '\\' && inside[at+1] == 'u' {
		before := inside[:at]
		isEscape := (len(before)-len(bytes.TrimRight(before, `\`)))%2 == 0
		unit, err := strconv.ParseUint(string(inside[at+2:]), 16, 16)
		if isEscape && err == nil && unit >= 0xd800 && unit < 0xdc00 {
			return escape
		}
	}
	for n := 1; n < utf8.UTFMax && n <= len(inside); n++ {
		if end := inside[len(inside)-n:]; utf8.RuneStart(end[0]) {
			if utf8.FullRune(end) {
				return 0
			}
			return n
		}
	}
	return 0
}
