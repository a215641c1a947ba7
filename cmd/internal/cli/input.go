package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"obelus/cmd/internal/exit"
	"obelus/store"
)

// ReadInputs merges the values of -i from left to right into one object, which is absent without
// any.
func ReadInputs(ctx context.Context, stdin io.Reader, inputs []string) (none store.Optional, err error) {
	if len(inputs) == 0 {
		return none, nil
	}
	var merged any = map[string]any{}
	for _, text := range inputs {
		place, v, err := readInput(ctx, stdin, text)
		if err == nil {
			merged, err = merge(merged, place, v)
		}
		switch {
		case ctx.Err() != nil:
			return none, ctx.Err()
		case err != nil:
			return none, exit.Usagef("-i %s: %s", text, err)
		}
	}
	return store.Optional{Value: merged, Set: merged != nil}, nil
}

// merge returns v with a value at a place. Where both are objects, the keys of the new one are
// added to the old one. It may change either.
func merge(v any, place []string, there any) (any, error) {
	if len(place) == 0 {
		over, ok := there.(map[string]any)
		object, ok2 := v.(map[string]any)
		if !ok || !ok2 {
			return there, nil
		}
		for key, value := range over {
			object[key], _ = merge(object[key], nil, value) // without a place it always fits
		}
		return object, nil
	}
	key, rest := place[0], place[1:]
	if list, ok := v.([]any); ok {
		i, err := strconv.Atoi(key)
		if err != nil || strconv.Itoa(i) != key || i < 0 || i > len(list) {
			return nil, fmt.Errorf("what is there is an array of %d, in which only an index from 0 to %[1]d can be given, not %s", len(list), key)
		}
		if i == len(list) {
			list = append(list, nil)
		}
		list[i], err = merge(list[i], rest, there)
		return list, err
	}
	object, ok := v.(map[string]any)
	if !ok {
		object = map[string]any{}
	}
	var err error
	object[key], err = merge(object[key], rest, there)
	return object, err
}

// IsStdin reports whether a value of -i means stdin.
func IsStdin(text string) bool { return text == "-" || text == "@-" }

// readInput reads one value of -i, and its place: {…}, @file, - for stdin, key=text or key:=json.
func readInput(ctx context.Context, stdin io.Reader, text string) (place []string, v any, err error) {
	switch {
	case strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "{"):
		v, err = decodeObject([]byte(text))
	case IsStdin(text):
		content, unread := ReadFileOrStdin(ctx, stdin, "-")
		if unread != nil {
			return nil, nil, unread
		}
		v, err = decodeObject(content)
	case strings.HasPrefix(text, "@"):
		content, unread := readFile(ctx, text[1:])
		if unread != nil {
			return nil, nil, fmt.Errorf("can't read the file: %w", PlainError(unread))
		}
		v, err = decodeObject(content)
	default:
		place, v, err = readNested(text)
		if errors.Is(err, errNoPair) {
			err = fmt.Errorf("%w, {…}, @file or -", err)
		}
	}
	return place, v, err
}

var errNoPair = errors.New("expected key=text, key:=json")

// readPair reads key=text or key:=json.
func readPair(text string) (key string, v any, err error) {
	key, value, ok := strings.Cut(text, "=")
	if !ok || key == "" || key == ":" {
		return "", nil, errNoPair
	}
	if !utf8.ValidString(text) { // invalid UTF-8 would be stored as other text
		return "", nil, fmt.Errorf("it is not valid UTF-8")
	}
	v = value
	if name, isJSON := strings.CutSuffix(key, ":"); isJSON {
		key = name
		if v, err = store.DecodeGiven([]byte(value), store.MaxDepth); err != nil {
			return "", nil, err
		}
	}
	if slices.Contains(strings.Split(key, "."), "") {
		return "", nil, fmt.Errorf("the key %q has an empty part", key)
	}
	return key, v, nil
}

// ReadFlag reads the pairs of a flag. The last one of a key counts.
func ReadFlag(flag string, pairs []string) (map[string]any, error) {
	all := map[string]any{}
	for _, pair := range pairs {
		key, v, err := readPair(pair)
		if err != nil {
			return nil, exit.Usagef("--%s %s: %s", flag, pair, err)
		}
		all[key] = v
	}
	return all, nil
}

// readNested reads a pair whose key leads to a place by dots.
func readNested(text string) (place []string, v any, err error) {
	key, v, err := readPair(text)
	return strings.Split(key, "."), v, err
}

func decodeObject(text []byte) (any, error) {
	v, err := store.DecodeGiven(store.PlainJSON(text), store.MaxDepth)
	if err != nil {
		return nil, err
	}
	if _, ok := v.(map[string]any); !ok {
		return nil, fmt.Errorf("expected a JSON object, found %s", store.Describe(v))
	}
	return v, nil
}

// ReadPairs reads parameters, key=text or key:=json, into one object.
func ReadPairs(pairs []string) (map[string]any, error) {
	var params any = map[string]any{}
	for _, pair := range pairs {
		place, v, err := readNested(pair)
		if err == nil {
			params, err = merge(params, place, v)
		}
		if err != nil {
			return nil, exit.Usagef("%s: %s", pair, err)
		}
	}
	return params.(map[string]any), nil
}
