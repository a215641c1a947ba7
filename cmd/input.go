package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"obelus/cmd/internal/exit"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// readInputs merges the values of -i from left to right into one object.
func readInputs(ctx context.Context, a *app, inputs []string) (any, error) {
	if len(inputs) == 0 {
		return nil, nil
	}
	var merged any = map[string]any{}
	for _, text := range inputs {
		place, v, err := readInput(ctx, a, text)
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

// hintTextInput adds to an error about the input how to give what is no text: key=text always
// gives one.
func hintTextInput(err error, inputs []string) error {
	var message *plan.MessageError
	if !errors.As(err, &message) || !message.Input {
		return err
	}
	for _, text := range inputs {
		key, value, ok := strings.Cut(text, "=")
		if !ok || strings.HasSuffix(key, ":") || !strings.Contains(err.Error(), "input."+key+": got string, want ") {
			continue
		}
		if _, wrong := store.DecodeJSON([]byte(value)); wrong != nil {
			return fmt.Errorf("%w: %s=… gives a text, %[2]s:=… any JSON", err, key)
		}
		return fmt.Errorf("%w: %s=%s gives a text: did you mean %[2]s:=%[3]s?", err, key, value)
	}
	return err
}

// hintTextParameters tells a person of input that was given as text, though it reads as another value,
// where a call failed since a parameter that is that input wants another type.
func hintTextParameters(a *app, calls []plan.Source, outcome *journal.Outcome, inputs []string) {
	for _, text := range inputs {
		key, value, ok := strings.Cut(text, "=")
		if !ok || strings.HasSuffix(key, ":") {
			continue
		}
		if _, wrong := store.DecodeJSON([]byte(value)); wrong != nil {
			continue
		}
		fails := func(r journal.Record) bool {
			message, _ := r.Error["message"].(string)
			parameter, _, isType := strings.Cut(message, ": got string, want ")
			if r.Status != journal.Failed || !isType || r.Position > len(calls) {
				return false
			}
			call, _ := calls[r.Position-1].Call.(map[string]any)
			return call[parameter] == store.Dagger+"input."+key
		}
		if slices.ContainsFunc(outcome.Calls, fails) {
			a.term.say("%s=%s gives a text: did you mean -i %[1]s:=%[2]s?", key, value)
		}
	}
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

// isStdin tells of a value of -i that stands for stdin, as curl has it too.
func isStdin(text string) bool { return text == "-" || text == "@-" }

// readInput reads one value of -i, and the place where it is to stand: {…}, @file, - for
// stdin, key=text or key:=json.
func readInput(ctx context.Context, a *app, text string) (place []string, v any, err error) {
	switch {
	case strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "{"):
		v, err = decodeObject([]byte(text))
	case isStdin(text):
		content, unread := readFileOrStdin(ctx, a, "-")
		if unread != nil {
			return nil, nil, unread
		}
		v, err = decodeObject(content)
	case strings.HasPrefix(text, "@"):
		content, unread := readFile(ctx, text[1:])
		if unread != nil {
			return nil, nil, fmt.Errorf("can't read the file: %w", plainError(unread))
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

// readFileOrStdin reads a file, or stdin where it is called -, until ctx ends: a pipe may hold
// back what it has for ever.
func readFileOrStdin(ctx context.Context, a *app, file string) ([]byte, error) {
	if file != "-" {
		return readFile(ctx, file)
	}
	return waitFor(ctx, func() ([]byte, error) { return readAll(a.stdin) })
}

func readFile(ctx context.Context, file string) ([]byte, error) {
	return waitFor(ctx, func() ([]byte, error) {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return readAll(f)
	})
}

// mostRead is more than SQLite keeps in one row.
const mostRead = 1 << 30

// readAll reads to the end, of which a device may have none.
func readAll(r io.Reader) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(r, mostRead+1))
	if err == nil && len(content) > mostRead {
		err = fmt.Errorf("it has more than %d bytes", mostRead)
	}
	return content, err
}

// waitFor reads something, or gives up when ctx ends.
func waitFor[T any](ctx context.Context, read func() (T, error)) (T, error) {
	type answer struct {
		read T
		err  error
	}
	answered := make(chan answer, 1)
	go func() {
		v, err := read()
		answered <- answer{v, err}
	}()
	select {
	case a := <-answered:
		return a.read, a.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
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

// readFlag reads what a flag says of keys; what it says last of one counts.
func readFlag(flag string, pairs []string) (map[string]any, error) {
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

// plainError takes from an error of the file system what a person needs.
func plainError(err error) error {
	var path *os.PathError
	var call *os.SyscallError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &call):
		return call.Err
	}
	return err
}
