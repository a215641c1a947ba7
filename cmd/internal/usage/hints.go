package usage

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// HintTextInput adds to an error about the input how to give a value that is not text: key=text
// always gives text.
func HintTextInput(err error, inputs []string) error {
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

// HintTextParameters returns a hint for each input that was given as text though it reads as
// another JSON value, if a call failed because the parameter that refers to it wants another type.
func HintTextParameters(calls []plan.Source, outcome *journal.Outcome, inputs []string) (hints []string) {
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
			hints = append(hints, fmt.Sprintf("%s=%s gives a text: did you mean -i %[1]s:=%[2]s?", key, value))
		}
	}
	return hints
}

// HintTextArgument returns how JSON is given, if a parameter was given as text and its tool wants
// another type.
func HintTextArgument(message string, pairs []string) string {
	for _, pair := range pairs {
		key, value, _ := strings.Cut(pair, "=")
		if !strings.HasSuffix(key, ":") && strings.HasPrefix(message, key+": got string, want ") && json.Valid([]byte(value)) {
			return fmt.Sprintf(" (%s=%s is text; JSON is given as %[1]s:=%[2]s)", key, value)
		}
	}
	return ""
}
