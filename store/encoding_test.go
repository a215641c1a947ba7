package store_test

import (
	"encoding/binary"
	"testing"
	"unicode/utf16"

	"obelus/store"
)

// wide is a text in UTF-16, with a byte order mark or without one.
func wide(text string, order binary.AppendByteOrder, marked bool) []byte {
	var made []byte
	if marked {
		text = "\ufeff" + text
	}
	for _, unit := range utf16.Encode([]rune(text)) {
		made = order.AppendUint16(made, unit)
	}
	return made
}

func TestDecode_WideEncodings(t *testing.T) {
	const text = `{"type": "state", "a": 1}`
	for _, marked := range []bool{true, false} {
		for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
			const want = "it is UTF-16: save it as UTF-8"
			given := wide(text, order, marked)
			if _, err := store.DecodeJSON(given); err == nil || err.Error() != want {
				t.Errorf("%v: got %v", order, err)
			}
			if _, err := store.ParseMessages(given); err == nil || err.Error() != want {
				t.Errorf("%v, messages: got %v", order, err)
			}
		}
	}
	if _, err := store.DecodeJSON([]byte("{\x00\x00\x00}\x00\x00\x00")); err == nil || err.Error() != "it is UTF-32: save it as UTF-8" {
		t.Errorf("got %v", err)
	}
	marked := []byte("\ufeff" + text)
	if m, err := store.ParseMessages(marked); err != nil || len(m) != 1 {
		t.Errorf("got %v, %v", m, err)
	}
	if _, err := store.DecodeGiven(marked, store.MaxDepth); err != nil {
		t.Error(err)
	}
}

func TestStringSize_AsEncoded(t *testing.T) {
	texts := []string{"", "plain", "é†😀", "\u2028\u2029", "\ufffd", "\xff\xc3", "a\xe2\x80", "<&>", "\x7f"}
	for c := range 0x80 {
		texts = append(texts, "x"+string(rune(c))+"y")
	}
	for _, text := range texts {
		if got, want := store.StringSize(text), len(store.EncodeJSON(text))-2; got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
}
