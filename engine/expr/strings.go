package expr

import (
	"strings"
	"unicode/utf8"
)

func split(ev *evaluation, args []any) (any, error) {
	limit := -1
	if len(args) < 2 || len(args) > 3 {
		return fail("split takes a string, what stands between its parts, and perhaps how many there may be")
	}
	if len(args) == 3 {
		n, _ := numberOf(args[2])
		if !n.isInt {
			return fail("how many parts split may make is an integer, and not %s", strings.Replace(describe(args[2]), "a number", "a number with a fraction", 1))
		}
		limit = n.i
	}
	text, ok := args[0].(string)
	separator, ok2 := args[1].(string)
	if !ok || !ok2 {
		return fail("split takes strings, not %s and %s", describe(args[0]), describe(args[1]))
	}
	if err := ev.spend(extent(text)); err != nil {
		return nil, err
	}
	parts := []any{}
	for _, part := range strings.SplitN(text, separator, limit) {
		parts = append(parts, part)
	}
	return parts, ev.spend(len(parts))
}

func join(ev *evaluation, args []any) (any, error) {
	separator := ""
	if len(args) < 1 || len(args) > 2 {
		return fail("join takes an array of strings, and perhaps what to put between them")
	}
	array, ok := args[0].([]any)
	if !ok {
		return fail("join takes an array of strings, not %s", describe(args[0]))
	}
	if len(args) == 2 {
		if separator, ok = args[1].(string); !ok {
			return fail("join puts a string between strings, not %s", describe(args[1]))
		}
	}
	texts := make([]string, len(array))
	for i, e := range array {
		text, ok := e.(string)
		if !ok {
			return fail("join takes an array of strings, and element %d is %s", i, describe(e))
		}
		if err := ev.spend(len(text) + len(separator)); err != nil {
			return nil, err
		}
		texts[i] = text
	}
	return strings.Join(texts, separator), nil
}

func replace(ev *evaluation, args []any) (any, error) {
	if len(args) != 3 {
		return fail("replace takes a string, what to look for and what to put there")
	}
	texts := make([]string, 3)
	for i, arg := range args {
		text, ok := arg.(string)
		if !ok {
			return fail("replace takes strings, not %s", describe(arg))
		}
		texts[i] = text
	}
	if err := ev.spend(len(texts[0]) + strings.Count(texts[0], texts[1])*len(texts[2])); err != nil {
		return nil, err
	}
	return strings.ReplaceAll(texts[0], texts[1], texts[2]), nil
}

// charactersBefore returns how many characters stand before a byte of a text; -1 before none.
func charactersBefore(text string, at int) int {
	if at < 0 {
		return at
	}
	return utf8.RuneCountInString(text[:at])
}

// orSpace returns the second of two texts, and a space where there is one text.
func orSpace(texts []string) string {
	if len(texts) == 1 {
		return " "
	}
	return texts[1]
}

func trim(ev *evaluation, args []any) (any, error) {
	text := args[0].(string)
	cost := extent(text)
	if len(args) == 1 {
		return strings.TrimSpace(text), ev.spend(cost)
	}
	cut := args[1].(string)
	if err := ev.spend(cost + len(text)/16*len(cut)); err != nil {
		return nil, err
	}
	return strings.Trim(text, cut), nil
}

// length is len, which counts the characters of a text.
func length(ev *evaluation, args []any) (any, error) {
	switch v := args[0].(type) {
	case string:
		return utf8.RuneCountInString(v), ev.spend(extent(v))
	case []any:
		return len(v), nil
	case groups:
		return len(v), nil
	}
	return len(args[0].(map[string]any)), nil
}

// slice is v[from:to], which counts a string's characters, as len does.
func slice(ev *evaluation, args []any) (any, error) {
	var bounds [2]int
	for i := range bounds {
		v, err := toInteger(ev, args[i+1:i+2])
		if err != nil {
			return nil, err
		}
		bounds[i] = v.(int)
	}
	from, to := bounds[0], bounds[1]
	if array, ok := args[0].([]any); ok {
		start, end := withinLength(from, len(array)), withinLength(to, len(array))
		return array[min(start, end):end], nil
	}
	text := args[0].(string)
	if from < 0 || to < 0 {
		n := utf8.RuneCountInString(text)
		from, to = withinLength(from, n), withinLength(to, n)
	}
	start := byteOf(text, from)
	return text[start : start+byteOf(text[start:], max(0, to-from))], ev.spend(extent(text))
}

// withinLength returns a bound of a slice, which counts from the end where it is below 0, within
// the length.
func withinLength(bound, length int) int {
	if bound < 0 {
		bound += length
	}
	return min(max(bound, 0), length)
}

// byteOf finds where a text's nth character begins.
func byteOf(text string, n int) int {
	for i := range text {
		if n--; n < 0 {
			return i
		}
	}
	return len(text)
}
