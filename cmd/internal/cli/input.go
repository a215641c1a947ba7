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

// ReadInputs merges the values of -i from left to right into one object.
func ReadInputs(ctx context.Context, stdin io.Reader, inputs []string) (any, error) {
	if len(inputs) == 0 {
		return nil, nil
	}
	var merged any = map[string]any{}
	for _, text := range inputs {
		place, v, err := readInput(ctx, stdin, text)
		if err == nil {
			merged, err = layOver(merged, place, v)
		}
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			return nil, exit.Usagef("-i %s: %s", text, err)
		}
	}
	return merged, nil
}

// layOver puts a value at a place in another one, and where both are objects its keys
// beside what is there. It may change either.
func layOver(v any, place []string, there any) (any, error) {
	if len(place) == 0 {
		over, ok := there.(map[string]any)
		object, ok2 := v.(map[string]any)
		if !ok || !ok2 {
			return there, nil
		}
		for key, value := range over {
			object[key], _ = layOver(object[key], nil, value) // at no place it always fits
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
		list[i], err = layOver(list[i], rest, there)
		return list, err
	}
	object, ok := v.(map[string]any)
	if !ok {
		object = map[string]any{}
	}
	var err error
	object[key], err = layOver(object[key], rest, there)
	return object, err
}

// IsStdin tells of a value of -i that stands for stdin, as curl has it too.
func IsStdin(text string) bool { return text == "-" || text == "@-" }

// readInput reads one value of -i, and the place where it is to stand: {…}, @file, - for
// stdin, key=text or key:=json.
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
	if !utf8.ValidString(text) { // what is not text would be stored as something else
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

// ReadFlag reads what a flag says of keys; what it says last of one counts.
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

// readNested reads a pair; dots in the key lead to a place.
func readNested(text string) (place []string, v any, err error) {
	key, v, err := readPair(text)
	return strings.Split(key, "."), v, err
}

func decodeObject(text []byte) (any, error) {
	v, err := store.DecodeGiven(text, store.MaxDepth)
	if err != nil {
		return nil, err
	}
	if _, ok := v.(map[string]any); !ok {
		return nil, fmt.Errorf("expected a JSON object, found %s", store.Describe(v))
	}
	return v, nil
}

// ReadPairs merges parameters, key=text or key:=json.
func ReadPairs(pairs []string) (map[string]any, error) {
	var params any = map[string]any{}
	for _, pair := range pairs {
		place, v, err := readNested(pair)
		if err == nil {
			params, err = layOver(params, place, v)
		}
		if err != nil {
			return nil, exit.Usagef("%s: %s", pair, err)
		}
	}
	return params.(map[string]any), nil
}
