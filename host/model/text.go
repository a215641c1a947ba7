package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"obelus/store"
)

// maxAnswerDepth bounds the nesting of an answer: the values in it may have store.MaxDepth.
const maxAnswerDepth = store.MaxDepth + 16

// decodeAnswer reads the JSON value of an answer. Where the provider does not hold the model to a
// schema, it may stand among other text.
func decodeAnswer(a *adapted, text string) (any, error) {
	if strings.TrimSpace(text) == "" {
		return nil, errors.New("the answer is empty")
	}
	v, err := store.DecodeGiven([]byte(text), maxAnswerDepth)
	if err == nil || json.Valid([]byte(text)) || a.step.mode == modeSchema {
		return v, notJSON(err)
	}
	found, ok := findJSON(text, a.root)
	if !ok {
		return nil, notJSON(err)
	}
	v, err = store.DecodeGiven([]byte(found), maxAnswerDepth)
	return v, notJSON(err)
}

// notJSON says that an answer is not JSON, and why.
func notJSON(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the answer is not JSON: %w", err)
}

// maxStarts bounds how many places of a text are tried as the beginning of a value.
const maxStarts = 64

// findJSON returns the first JSON value in a text: an array if root is "array", else an object; and
// if there is none, the other.
func findJSON(text, root string) (string, bool) {
	if _, after, ok := strings.Cut(text, "</think>"); ok { // some servers leave the reasoning in
		text = after
	}
	order := "{["
	if root == "array" {
		order = "[{"
	}
	for _, opening := range order {
		at := 0
		for range maxStarts {
			i := strings.IndexRune(text[at:], opening)
			if i < 0 {
				break
			}
			at += i
			var raw json.RawMessage
			if json.NewDecoder(strings.NewReader(text[at:])).Decode(&raw) == nil {
				return string(raw), true
			}
			at++
		}
	}
	fenced := strings.Trim(strings.TrimPrefix(strings.Trim(strings.TrimSpace(text), "`"), "json"), " \n\r\t")
	if json.Valid([]byte(fenced)) {
		return fenced, true
	}
	return "", false
}

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
