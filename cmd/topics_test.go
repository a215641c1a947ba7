package cmd

import (
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"obelus/engine/expr"
	"obelus/host"
	"obelus/luastd"
	"obelus/scripts"
	"obelus/store"
)

// topic is what help prints about a topic.
func topic(t *testing.T, name string) string {
	t.Helper()
	return obelusOutput(t, 0, "help", name)
}

// section is what a topic says from a heading to the next empty line but one.
func section(t *testing.T, topic, heading string) string {
	t.Helper()
	_, text, ok := strings.Cut(topic, "\n"+heading)
	if !ok {
		t.Fatalf("there is no %s", heading)
	}
	_, list, _ := strings.Cut(text, "\n\n")
	list, _, _ = strings.Cut(list, "\n\n")
	return list
}

// terms are the names that a list explains, sorted.
func terms(list string) (names []string) {
	for _, match := range regexp.MustCompile(`(?m)^  (\w+)  +\S`).FindAllStringSubmatch(list, -1) {
		names = append(names, match[1])
	}
	slices.Sort(names)
	return names
}

// fieldsOf are the names of a struct's fields in lower case, sorted.
func fieldsOf(v any) (names []string) {
	for field := range reflect.TypeOf(v).Fields() {
		names = append(names, strings.ToLower(field.Name))
	}
	slices.Sort(names)
	return names
}

// annotated are the fields of a class in the annotations of globals and settings, sorted.
func annotated(t *testing.T, class string) (names []string) {
	t.Helper()
	text, err := os.ReadFile("../scripts/types/globals.lua")
	if err != nil {
		t.Fatal(err)
	}
	_, fields, _ := strings.Cut(string(text)+host.TableTypes(), "---@class "+class+"\n")
	fields, _, _ = strings.Cut(fields, "\n\n")
	for _, match := range regexp.MustCompile(`(?m)^---@field (\w+)`).FindAllStringSubmatch(fields, -1) {
		names = append(names, match[1])
	}
	slices.Sort(names)
	return names
}

// methods are the output methods, sorted. The annotations of globals must have them in this order.
func methods(t *testing.T) (names []string) {
	t.Helper()
	for _, method := range store.Methods {
		names = append(names, string(method))
	}
	text, err := os.ReadFile("../scripts/types/globals.lua")
	if err != nil {
		t.Fatal(err)
	}
	if want := `---@field _outputMethod? "` + strings.Join(names, `"|"`) + "\"\n"; !strings.Contains(string(text), want) {
		t.Errorf("scripts/types/globals.lua lacks the line %s", want)
	}
	slices.Sort(names)
	return names
}

// TestTopics_NameAllFields holds what help tells to what there is.
func TestTopics_NameAllFields(t *testing.T) {
	serving := fieldsOf(host.Serving{})
	serving[slices.Index(serving, "noresume")] = "resume"
	slices.Sort(serving)
	settings, plans := topic(t, "settings"), topic(t, "plans")
	_, keys, _ := strings.Cut(settings, "    }\n\n")
	keys, _, _ = strings.Cut(keys, "\n\n")
	for _, c := range []struct {
		what      string
		told, are []string
	}{
		{"settings", terms(keys), annotated(t, "obelus.Settings")},
		{"permissions", terms(section(t, settings, "ALLOW.")), []string{"env", "model", "net", "read", "write"}},
		{"limits", terms(section(t, settings, "LIMITS.")), fieldsOf(host.Limits{})},
		{"settings of serve", terms(section(t, settings, "SERVE.")), serving},
		{"models", terms(section(t, topic(t, "models"), "FIELDS")), annotated(t, "obelus.Model")},
		{"options", terms(section(t, topic(t, "activities"), "OPTIONS")), annotated(t, "obelus.ActivityOptions")},
		{"arguments", terms(section(t, topic(t, "activities"), "THE FUNCTION")), []string{"call", "context", "key", "tool"}},
		{"methods", terms(section(t, plans, "METHODS.")), methods(t)},
	} {
		if diff := cmp.Diff(c.are, c.told); diff != "" {
			t.Errorf("%s (-there are +help tells of):\n%s", c.what, diff)
		}
	}
	for _, name := range annotated(t, "obelus.Call") {
		if !strings.Contains(section(t, plans, "A CALL"), "  "+name+" ") {
			t.Errorf("help plans does not tell of %s", name)
		}
	}
	for _, name := range fieldsOf(luastd.Grants{}) {
		if name != "root" && name != "bounds" && name != "guarded" && name != "secrets" && !strings.Contains(settings, "--allow-"+name) {
			t.Errorf("help settings does not tell of --allow-%s", name)
		}
	}
}

// TestTopics_ArePrinted holds that help prints each topic that it lists, also one whose name a
// command has.
func TestTopics_ArePrinted(t *testing.T) {
	listed := regexp.MustCompile(`(?m)^  obelus help (\S+) +\S`).FindAllStringSubmatch(obelusOutput(t, 0, "help"), -1)
	texts, err := filepath.Glob("internal/topics/texts/*.txt")
	if err != nil || len(texts) == 0 || len(listed) < len(texts) {
		t.Fatal(err, texts, listed)
	}
	for _, match := range listed {
		printed := topic(t, match[1])
		if strings.Contains(printed, "\nUsage:\n") {
			t.Errorf("help %s is about a command", match[1])
		}
		text, err := os.ReadFile(filepath.Join("internal/topics/texts", match[1]+".txt"))
		want := regexp.MustCompile(`\{\{(\w+)\}\}\n`).ReplaceAllStringFunc(string(text), func(list string) string {
			return host.TableHelp(strings.Trim(list, "{}\n"))
		})
		if err == nil && strings.TrimSpace(printed) != strings.TrimSpace(want) {
			t.Errorf("help %s prints another text than texts/%[1]s.txt", match[1])
		}
		texts = slices.DeleteFunc(texts, func(file string) bool { return filepath.Base(file) == match[1]+".txt" })
	}
	if len(texts) > 0 {
		t.Errorf("help lists none of %s", texts)
	}
}

// TestTopics_FitATerminal holds that the topics that people wrote fit a terminal.
func TestTopics_FitATerminal(t *testing.T) {
	for _, name := range []string{"activities", "expressions", "models", "plans", "settings"} {
		for line := range strings.Lines(topic(t, name)) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 82 {
				t.Errorf("%d characters: %s", n, line)
			}
		}
	}
}

// TestTopics_Expressions evaluates the examples of expressions, and holds that every function has one.
func TestTopics_Expressions(t *testing.T) {
	text := topic(t, "expressions")
	_, context, _ := strings.Cut(text, "-- context\n")
	context, _, _ = strings.Cut(context, "\n\n")
	data, err := store.DecodeJSON([]byte(context))
	if err != nil {
		t.Fatal(err)
	}
	lookup := expr.LookupIn(data.(map[string]any))
	shown, examples := map[string]bool{}, 0
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		at := strings.Index(line, "†")
		if at < 0 || !strings.HasPrefix(line, "  ") || strings.HasPrefix(line, "    o") {
			continue
		}
		if name := strings.TrimSpace(line[:at]); name != "" {
			shown[name] = true
		}
		parts := regexp.MustCompile(` {2,}`).Split(line[at:], -1)
		if len(parts) == 1 { // what it gives stands in the next line
			parts = append(parts, strings.TrimSpace(lines[i+1]))
		}
		examples++
		e, err := expr.Parse(parts[0])
		if err != nil {
			t.Error(err)
			continue
		}
		got, missing, err := e.Eval(t.Context(), lookup)
		given := string(store.EncodeJSON(got))
		if missing != nil {
			given = "missing"
		}
		if err != nil || given != parts[1] {
			t.Errorf("%s gives %s, not %s (%v)", parts[0], given, parts[1], err)
		}
	}
	for _, name := range expr.Functions() {
		if !shown[name] {
			t.Errorf("help expressions has no example of %s", name)
		}
	}
	if examples < 80 {
		t.Errorf("%d examples were found", examples)
	}
}

// TestTopics_Examples runs what the topics show: the files of one project.
func TestTopics_Examples(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	files := regexp.MustCompile(`(?m)^    -- (\S+\.lua)\n(?:    .*\n|\n)+`)
	found := 0
	for _, name := range []string{"activities", "plans", "settings"} {
		for _, match := range files.FindAllStringSubmatch(topic(t, name), -1) {
			write(match[1], match[0])
			found++
		}
	}
	if found != 3 {
		t.Fatalf("%d files", found)
	}
	write("activities/rest.lua", `
Activity.register("pay", function(call) return "paid " .. call.amount end)
Activity.register("refuse", function(call) return "refused: " .. call.reason end)`)
	for amount, want := range map[string]string{"12": `"paid 12"`, "120": `"refused: more than the limit"`} {
		if got := obelusOutput(t, 0, "-C", dir, "run", "-q", filepath.Join(dir, "plans/refund.lua"), "--approve", "never", "-i", "amount:="+amount); strings.TrimSpace(got) != want {
			t.Errorf("for %s the plan gives %s, not %s", amount, got, want)
		}
	}
	text := topic(t, "modules")
	for _, want := range []string{"\nhttp: requests to other machines.", "\n  http.get(url: string, options?: Options) -> Answer?, string? err\n", "\n  Answer\n", "\n  Request, with the fields of Options\n",
		"\n  re.split(s: string, pattern: string, n?: integer) -> string[] parts\n", "\n      count: only the first so many\n", "\n      status integer\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("help modules does not tell %q", want)
		}
	}
	modules, err := fs.Glob(scripts.Types(), "*.lua") // which are held to what there is
	if err != nil || len(modules) < 10 {
		t.Fatal(modules, err)
	}
	for _, file := range modules {
		name := strings.TrimSuffix(file, ".lua")
		if name != "globals" && name != "testing" && !strings.Contains(text, "\n"+name+": ") {
			t.Errorf("help modules does not tell of %s", name)
		}
	}
}
