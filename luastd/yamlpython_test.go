package luastd

import (
	"encoding/json"
	"maps"
	"math/rand"
	"os/exec"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"obelus/luastd/internal/formats"
	"obelus/luastd/internal/oracle"
)

// pyYAML reads lines of JSON with a YAML text and the name of one of PyYAML's loaders, and
// writes what the loader makes of the text. BaseLoader takes all scalars for text, SafeLoader
// gives those without quotes the meaning that YAML 1.1 gives them.
const pyYAML = `
import json, sys, yaml
for line in sys.stdin:
    try:
        question = json.loads(line)
        answer = {"value": yaml.load(question["text"], getattr(yaml, question["loader"]))}
    except Exception as e:
        answer = {"error": str(e)}
    try:
        print(json.dumps(answer), flush=True)
    except Exception as e:
        print(json.dumps({"error": str(e)}), flush=True)
`

type pyAnswer struct {
	Value any
	Error string
}

// startPyYAML starts a reader, or skips the test where there is none.
func startPyYAML(t testing.TB, loader string) func(text string) pyAnswer {
	t.Helper()
	if out, err := exec.Command("python3", "-c", "import yaml").CombinedOutput(); err != nil {
		t.Skipf("skipped: python3 with PyYAML is not here: %v: %s", err, out)
	}
	ask := oracle.Start(t, "python3", "-c", pyYAML)
	return func(text string) (answer pyAnswer) {
		ask(map[string]string{"text": text, "loader": loader}, &answer)
		return answer
	}
}

// yamlStyles writes random values in all styles of YAML.
type yamlStyles struct {
	random *rand.Rand
	b      strings.Builder
}

func (w *yamlStyles) one(of ...string) string { return of[w.random.Intn(len(of))] }

// lineEnd ends a line, with comments and blank lines now and then.
func (w *yamlStyles) lineEnd() {
	w.b.WriteString(w.one("", "", "", " ", " # c", "  #c: d", "\t# \"e") + "\n")
	for w.random.Intn(6) == 0 {
		w.b.WriteString(w.one("", "  ", "# f: g", "   # - h", "\t") + "\n")
	}
}

// text is text that no reader takes for anything else, of one line or several.
func (w *yamlStyles) text() string {
	words := []string{}
	for range 1 + w.random.Intn(4) {
		words = append(words, w.one("a", "bc", "d#e", "f:g", "-h", "x-y", "é", "1a", "x,y", "[z", "it's",
			"q\"q", "&r", "*s", "!t", "%u", "?v", "w?", "{", "|", ">", "#"))
	}
	return strings.Join(words, w.one(" ", " ", "\n", "\n\n", "  "))
}

func (w *yamlStyles) value(depth int) any {
	n := w.random.Intn(6)
	if depth == 0 {
		n %= 3
	}
	switch {
	case n < 3:
		return w.text()
	case n == 3 && w.random.Intn(3) == 0:
		return []any{}
	case n == 3:
		list := []any{}
		for range 1 + w.random.Intn(3) {
			list = append(list, w.value(depth-1))
		}
		return list
	}
	object := map[string]any{}
	for range 1 + w.random.Intn(3) {
		object[w.text()] = w.value(depth - 1)
	}
	return object
}

var (
	plainStart = regexp.MustCompile(`^[a-z0-9é-]([^ #]|$)`)
	plainNever = regexp.MustCompile(`  | #|\n+[#&*!%?{|>\["'-]`)
	lineEnds   = regexp.MustCompile(`\n+`)
	oneBlank   = regexp.MustCompile(`([^ \n]) ([^ \n#])`)
)

// scalar writes text where lines that go on are indented by more than n spaces. The name of a
// value stays on its line.
func (w *yamlStyles) scalar(text string, n int, flow, key bool) {
	oneLine := key && strings.Contains(text, "\n")
	next := "\n" + strings.Repeat(" ", n+1+w.random.Intn(3))
	folded := func(s string) string { // with blank lines for line ends, line ends for blanks
		s = lineEnds.ReplaceAllStringFunc(s, func(m string) string { return "\n" + m[1:] + next })
		if key {
			return s
		}
		return oneBlank.ReplaceAllStringFunc(s, func(m string) string {
			before, after, _ := strings.Cut(m, " ")
			return before + w.one(" ", " ", " ", next, " "+next) + after
		})
	}
	switch n := w.random.Intn(4); {
	case n < 2 && !oneLine && plainStart.MatchString(text) && !plainNever.MatchString(text) &&
		!(flow && strings.ContainsAny(text, ",[]{}?")):
		w.b.WriteString(folded(text))
	case n == 2 && !oneLine:
		w.b.WriteString("'" + folded(strings.ReplaceAll(text, "'", "''")) + "'")
	default:
		quoted := yamlQuoted(text)
		if !key && !strings.Contains(text, "  ") {
			quoted = strings.ReplaceAll(quoted, " ", w.one(" \\"+next, " ", "\\x20"))
		}
		w.b.WriteString(quoted)
	}
}

// block writes a value behind a mark; n is the indentation of the mark.
func (w *yamlStyles) block(v any, n int, listed bool) {
	indent := n + 1 + w.random.Intn(3)
	switch v := v.(type) {
	case string:
		if body, _ := strings.CutSuffix(v, "\n"); w.random.Intn(3) == 0 && !strings.HasPrefix(v, " ") {
			mark, indent := w.one("|", "|", ">"), max(indent, 1) // PyYAML wants one
			w.b.WriteString(" " + mark + "-" + w.one("", " # c") + "\n")
			for _, line := range strings.Split(body, "\n") {
				if line == "" {
					w.b.WriteString(w.one("", strings.Repeat(" ", indent)) + "\n")
					continue
				}
				w.b.WriteString(strings.Repeat(" ", indent) + line + "\n")
				if mark == ">" && strings.Contains(body, "\n") {
					w.b.WriteString("\n")
				}
			}
			return
		}
		w.b.WriteString(w.one(" ", "  ", "\n"+strings.Repeat(" ", indent)))
		w.scalar(v, n, false, false)
		w.lineEnd()
	case []any:
		if len(v) == 0 || w.random.Intn(3) == 0 {
			w.b.WriteString(" ")
			w.flow(v, n)
			w.lineEnd()
			return
		}
		start := "\n"
		if listed && w.random.Intn(2) == 0 {
			indent++
			start = strings.Repeat(" ", indent-n-1)
		} else if !listed && n >= 0 && w.random.Intn(3) == 0 {
			indent = n
		}
		for _, e := range v {
			if start == "\n" {
				w.b.WriteString(w.one("", " # c") + start)
			}
			if start == "" || start == "\n" {
				w.b.WriteString(strings.Repeat(" ", indent))
			} else {
				w.b.WriteString(start)
			}
			w.b.WriteString("-")
			w.block(e, indent, true)
			start = ""
		}
	case map[string]any:
		if w.random.Intn(3) == 0 {
			w.b.WriteString(" ")
			w.flow(v, n)
			w.lineEnd()
			return
		}
		w.b.WriteString(w.one("", " # c") + "\n")
		for _, name := range slices.Sorted(maps.Keys(v)) {
			w.b.WriteString(strings.Repeat(" ", indent))
			w.scalar(name, indent, false, true)
			w.b.WriteString(w.one(":", " :"))
			w.block(v[name], indent, false)
		}
	}
}

// flow writes a value between brackets.
func (w *yamlStyles) flow(v any, n int) {
	gap := func() {
		indent := strings.Repeat(" ", n+1)
		w.b.WriteString(w.one("", " ", "\n"+indent, " # c\n "+indent, "\n\n"+indent))
	}
	switch v := v.(type) {
	case string:
		w.scalar(v, n, true, false)
	case []any:
		w.b.WriteString("[")
		for i, e := range v {
			if gap(); i > 0 {
				w.b.WriteString(",")
				gap()
			}
			w.flow(e, n)
		}
		gap()
		w.b.WriteString("]")
	case map[string]any:
		w.b.WriteString("{")
		for i, name := range slices.Sorted(maps.Keys(v)) {
			if gap(); i > 0 {
				w.b.WriteString(",")
				gap()
			}
			w.scalar(name, n, true, true)
			w.b.WriteString(w.one(": ", " : "))
			w.flow(v[name], n)
		}
		gap()
		w.b.WriteString("}")
	}
}

// checkYAMLStyles writes a random value in all styles and reads it back. It returns the text
// and the value.
func checkYAMLStyles(t *testing.T, seed int64) (text string, v any) {
	t.Helper()
	w := &yamlStyles{random: rand.New(rand.NewSource(seed))}
	v = w.value(3)
	w.b.WriteString("---")
	w.block(v, -1, false)
	got, _, err := decodeYAML(w.b.String())
	if err != nil || !reflect.DeepEqual(got, v) {
		t.Fatalf("%s\ngot %#v, %v\nwant %#v", w.b.String(), got, err, v)
	}
	return w.b.String(), v
}

func TestYAML_AllStyles(t *testing.T) {
	for seed := range int64(5000) {
		checkYAMLStyles(t, seed)
	}
}

// FuzzYAML_AllStyles has PyYAML read too what random values are written as.
func FuzzYAML_AllStyles(f *testing.F) {
	for i := range int64(500) {
		f.Add(i)
	}
	python := startPyYAML(f, "BaseLoader")
	f.Fuzz(func(t *testing.T, seed int64) {
		text, v := checkYAMLStyles(t, seed)
		if strings.Contains(text, "\t") {
			return // PyYAML does not take it for a blank everywhere
		}
		if answer := python(text); answer.Error != "" || !reflect.DeepEqual(answer.Value, v) {
			t.Fatalf("%s\nPyYAML reads %#v, %s\nwant %#v", text, answer.Value, answer.Error, v)
		}
	})
}

// TestYAML_EncodedIsReadByPyYAML holds that what yaml.encode writes means the same to PyYAML.
func TestYAML_EncodedIsReadByPyYAML(t *testing.T) {
	python := startPyYAML(t, "SafeLoader")
	random := rand.New(rand.NewSource(2))
	for range 3000 {
		v := randomYAMLValue(random, 3)
		text := encodeYAML(v, func(int) bool { return false })
		var want any // with numbers as Go's JSON reads them
		if err := json.Unmarshal([]byte(formats.CompactJSON(v)), &want); err != nil {
			t.Fatal(err)
		}
		if answer := python(text); answer.Error != "" || !reflect.DeepEqual(answer.Value, want) {
			t.Fatalf("%s\nPyYAML reads %#v, %s\nwant %#v", text, answer.Value, answer.Error, want)
		}
	}
}
