package setting

import (
	"encoding/json"
	"strconv"
	"time"

	"obelus/engine/duration"
)

// Text reads a text that is not empty.
func Text(v any) (string, error) {
	text, ok := v.(string)
	if !ok || text == "" {
		return "", WrongType("a string", v)
	}
	return text, nil
}

// Texts reads a list of texts.
func Texts(v any) ([]string, error) {
	if object, ok := v.(map[string]any); ok && len(object) == 0 {
		return []string{}, nil
	}
	list, ok := v.([]any)
	texts := make([]string, len(list))
	for i, e := range list {
		text, isText := e.(string)
		ok = ok && isText
		texts[i] = text
	}
	if !ok {
		return nil, WrongType("a list of strings", v)
	}
	return texts, nil
}

// Positive reads an integer from 1.
func Positive(v any) (int, error) {
	if i, err := Count(v); err == nil && i > 0 {
		return i, nil
	}
	return 0, WrongType("a whole number above 0", v)
}

// Duration reads a number of seconds, or text like "5s", "1m30s" or "3d".
func Duration(v any) (time.Duration, error) {
	d, err := duration.Read(v)
	if err != nil {
		return 0, WrongType(`a duration: a number of seconds or text like "5s"`, v)
	}
	return d, nil
}

// PositiveDuration reads a duration above zero.
func PositiveDuration(v any) (time.Duration, error) {
	d, err := Duration(v)
	if err == nil && d == 0 {
		err = WrongType("a duration above 0", v)
	}
	return d, err
}

// Depth reads a depth of values that a log can hold together with the message around them.
func Depth(v any) (int, error) {
	n, err := Positive(v)
	if err == nil && n > 200 {
		err = WrongType("at most 200", v)
	}
	return n, err
}

// Size reads a number of bytes, or text like "64MB": a K is 1024.
func Size(v any) (int, error) {
	if text, ok := v.(string); ok {
		if n, ok := ParseSize(text); ok {
			return n, nil
		}
	}
	if n, ok := v.(json.Number); ok {
		if i, err := strconv.Atoi(string(n)); err == nil && i > 0 {
			return i, nil
		}
	}
	return 0, WrongType(`a size: a number of bytes or text like "64MB"`, v)
}
