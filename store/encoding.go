package store

import (
	"bytes"
	"errors"
	"strings"
)

// byteOrderMark is what some editors put before a text in UTF-8.
const byteOrderMark = "\ufeff"

// CheckEncoding refuses a text in UTF-16 or UTF-32, which a byte order mark or a zero byte beside
// the first characters shows: read as UTF-8 it would be reported as a syntax error.
func CheckEncoding(text []byte) error {
	start := string(text[:min(len(text), 4)])
	switch marked := strings.HasPrefix(start, "\xff\xfe") || strings.HasPrefix(start, "\xfe\xff"); {
	case strings.Count(start, "\x00") > 1 && bytes.Contains(text[:len(start)], []byte{0, 0}):
		return errors.New("it is UTF-32: save it as UTF-8")
	case marked, strings.Contains(start, "\x00"):
		return errors.New("it is UTF-16: save it as UTF-8")
	}
	return nil
}
