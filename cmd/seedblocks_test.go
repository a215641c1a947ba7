package cmd

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"obelus/store"
)

// seedBlock is one JSON value of a text.
type seedBlock struct {
	line  int
	text  string // with the comments above it
	value any
	plain string // the value alone, from its first bracket to its last
}

var (
	seedFence = regexp.MustCompile("(?ms)^[ \t]*```(\\w*)[^\n]*\n(.*?)^[ \t]*```")
	// A block begins with any comments, each on a line of its own, and a bracket.
	seedStart = regexp.MustCompile(`(?m)^[ \t]*(?://[^\n]*\n[ \t]*)*[{\[]`)
)

// seedBlocks returns the JSON values of a text in their order: those of its fenced blocks of JSON,
// or, where nothing is fenced, those that begin a line.
func seedBlocks(t *testing.T, text string) (blocks []seedBlock) {
	t.Helper()
	fences := seedFence.FindAllStringSubmatchIndex(text, -1)
	if fences == nil {
		return seedValues(t, text, 1, false)
	}
	for _, at := range fences {
		if text[at[2]:at[3]] != "json" {
			continue
		}
		line := 1 + strings.Count(text[:at[4]], "\n")
		found := seedValues(t, text[at[4]:at[5]], line, true)
		if len(found) == 0 {
			t.Errorf("line %d: the block has no value", line)
		}
		blocks = append(blocks, found...)
	}
	return blocks
}

// seedValues returns the JSON values that begin a line, with the comments above them. whole says
// that the text has nothing else.
func seedValues(t *testing.T, text string, line int, whole bool) (blocks []seedBlock) {
	t.Helper()
	at := 0
	for {
		found := seedStart.FindStringIndex(text[at:])
		rest := len(text)
		if found != nil {
			rest = at + found[0]
		}
		if whole && strings.TrimSpace(text[at:rest]) != "" {
			t.Errorf("line %d: a block of JSON has more than values: %s", line, text[at:rest])
		}
		if found == nil {
			return blocks
		}
		line += strings.Count(text[at:rest], "\n")
		block := seedBlock{line: line}
		open := at + found[1] - 1
		// The comments are replaced by spaces, so that the value ends where it does in the text.
		decoder := json.NewDecoder(bytes.NewReader(store.PlainJSON([]byte(text[open:]))))
		if err := decoder.Decode(&block.value); err != nil {
			t.Fatalf("line %d: a block is no JSON: %v", line, err)
		}
		end := open + int(decoder.InputOffset())
		block.text, block.plain = dedent(text[rest:end]), text[open:end]
		blocks = append(blocks, block)
		line += strings.Count(text[rest:end], "\n")
		at = end
	}
}

// dedent takes the indentation of the first line from each line.
func dedent(text string) string {
	indent := text[:len(text)-len(strings.TrimLeft(text, " \t"))]
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], indent)
	}
	return strings.Join(lines, "\n")
}

// seedShape returns the kind of a block: messages, plan, fragment or solution, and "" for any other.
func seedShape(v any) string {
	has := func(v any, name string) bool {
		object, _ := v.(map[string]any)
		_, ok := object[name]
		return ok
	}
	items, isList := v.([]any)
	if !isList {
		items = []any{v}
	}
	object, _ := v.(map[string]any)
	message := func(v any) bool { return has(v, "type") }
	call := func(v any) bool { return has(v, "_tool") }
	switch {
	case len(items) == 0:
		return ""
	case !slices.ContainsFunc(items, func(v any) bool { return !message(v) }):
		return "messages"
	case !slices.ContainsFunc(items, func(v any) bool { return !message(v) && !call(v) }):
		return "plan"
	case has(v, "calls"):
		return "solution"
	case len(object) > 0 && !slices.ContainsFunc(slices.Collect(maps.Keys(object)), func(key string) bool { return !strings.HasPrefix(key, "_") }):
		return "fragment"
	}
	return ""
}

// seedCalls returns the calls of a plan or solution.
func seedCalls(v any) (calls []map[string]any) {
	items, isList := v.([]any)
	if !isList {
		items = []any{v}
	}
	for _, v := range items {
		object := v.(map[string]any)
		if list, ok := object["calls"].([]any); ok {
			calls = append(calls, seedCalls(list)...)
		} else if object["_tool"] != nil {
			calls = append(calls, object)
		}
	}
	return calls
}

// seedTexts returns the texts of messages, their types aside.
func seedTexts(items []any) (texts []string) {
	for _, v := range items {
		for name, v := range v.(map[string]any) {
			if text, ok := v.(string); ok && name != "type" {
				texts = append(texts, text)
			}
		}
	}
	return texts
}

// seedCase is a value of a meta-property and what must come of it.
type seedCase struct {
	given   any    // nil: left out
	path    string // where the result is then
	granted string // the result, which is what the scopes grant; "" if the call is refused
}

const allGranted = `{"input":{"b":2},"state":{"a":1}}`

// seedCases returns the cases for the schema of a meta-property, none if there is no rule for it.
func seedCases(property string, schema map[string]any) []seedCase {
	items, _ := schema["items"].(map[string]any)
	constant, prescribed := schema["const"]
	path, isText := constant.(string)
	switch {
	case property == "_outputPath" && isText:
		return []seedCase{{nil, path, allGranted}, {path, path, allGranted}, {"†state.other", "", ""}}
	case property == "_outputPath" && schema["pattern"] == "^†":
		return []seedCase{{"†state.chosen", "†state.chosen", allGranted}, {"†data.x && †data.y", "†data.y", allGranted}, {"(†state.a || †state.b)", "", ""}}
	case property == "_scopes" && prescribed && cmp.Equal(constant, []any{"input"}):
		return []seedCase{{nil, "†seen", `{"input":{"b":2}}`}, {constant, "†seen", `{"input":{"b":2}}`}, {[]any{"state"}, "", ""}}
	case property == "_scopes" && cmp.Equal(items["enum"], []any{"state", "input"}):
		return []seedCase{{[]any{"state"}, "†seen", `{"state":{"a":1}}`}, {[]any{"input", "state"}, "†seen", allGranted}, {[]any{"meta"}, "", ""}}
	}
	return nil
}
