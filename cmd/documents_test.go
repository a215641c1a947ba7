package cmd

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"obelus/host/model/modeltest"
	"obelus/store"
)

// documentedQuestion is one that DATABASE.md answers twice, by a command and a query.
type documentedQuestion struct {
	text    string
	command []string
	query   string
}

// questions reads the queries of DATABASE.md: a comment with the command and,
// two blanks after it, the question; then the query.
func questions(t *testing.T) (all []documentedQuestion) {
	t.Helper()
	text, err := os.ReadFile("DATABASE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(text), "```sql\n")
	block, _, _ = strings.Cut(block, "```")
	for line := range strings.Lines(block) {
		if comment, ok := strings.CutPrefix(line, "-- obelus "); ok {
			command, text, ok := strings.Cut(comment, "  ")
			if !ok {
				t.Fatalf("no question: %s", line)
			}
			all = append(all, documentedQuestion{strings.TrimSpace(text), strings.Fields(command), ""})
			continue
		}
		all[len(all)-1].query += line
	}
	return all
}

// historyProject is the project that the questions are asked of.
var historyProject = map[string]string{
	"obelus.lua": `return {}`,
	"activities/order.lua": `
Activity.register("decide", function(call) print("amount:", call.amount) return { amount = call.amount } end)
Activity.register("pay", function() return nil, "no money" end)`,
	"plan.json": `{"context": [{"type": "input", "amount": 3.5}], "calls": [
		{"_tool": "decide", "amount": "†input.amount", "_outputPath": "†state.approval"},
		{"_tool": "decide", "amount": 12, "after": "†state.approval", "_outputPath": "†state.approval"},
		{"_tool": "pay", "amount": "†state.approval.amount", "_outputPath": "†state.receipt"},
		{"_tool": "decide", "amount": "†state.receipt", "_outputPath": "†state.letter"},
		{"_tool": "pay", "amount": 1, "_outputPath": "†state.gift || †state.excuse"},
		{"_tool": "pay", "amount": 2, "_outputPath": "†state.tip"}]}`,
}

// TestDatabase_CommandAndQueryAgree: for each question in DATABASE.md the command and the query
// give the same answer, the query in obelus sql and in a stock sqlite3.
func TestDatabase_CommandAndQueryAgree(t *testing.T) {
	dir := t.TempDir()
	for name, text := range historyProject {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	obelusOutput(t, 1, "run", "-q", "-c", "order-7", filepath.Join(dir, "plan.json"))
	obelusOutput(t, 1, "-C", dir, "resume", "-q", "-c", "order-7", "--skip", "1.6")
	obelusOutput(t, 1, "run", "-q", "-c", "order-8", filepath.Join(dir, "plan.json"))
	askModel(t, filepath.Join(dir, ".obelus", "log.db"))
	_, err := exec.LookPath("sqlite3")
	stock := err == nil
	if !stock {
		t.Log("there is no sqlite3 here: the queries are asked of obelus sql alone")
	}
	all := questions(t)
	if len(all) < 7 {
		t.Fatalf("only %d questions", len(all))
	}
	for _, q := range all {
		t.Run(q.text, func(t *testing.T) {
			got := records(t, obelusOutput(t, 0, "-C", dir, "--json", "sql", q.query))
			if len(got) == 0 {
				t.Fatal("the query gives nothing")
			}
			if stock {
				db := filepath.Join(dir, ".obelus", "log.db")
				out, err := exec.Command("sqlite3", "-readonly", "-json", db, q.query).Output()
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(got, records(t, string(out))); diff != "" {
					t.Errorf("(-obelus sql +sqlite3):\n%s", diff)
				}
			}
			if q.command[0] == "sql" {
				return
			}
			answer := records(t, obelusOutput(t, 0, append([]string{"-C", dir, "--json"}, q.command...)...))
			if diff := cmp.Diff(columnsOf(t, answer, got[0], q), got); diff != "" {
				t.Errorf("(-%s +query):\n%s", strings.Join(q.command, " "), diff)
			}
		})
	}
}

// askModel runs a plan of one call that a model answers, in a log.
func askModel(t *testing.T, db string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"obelus.lua": `return { model = "m", models = { m = { url = "` + modeltest.NewServer(t).URL + `", model = "x", keep = true, price = { input = 1, output = 2 } } } }`,
		"plan.lua":   `return { tools = { judge = {} }, calls = { { _tool = "judge", _outputPath = "†state.a" } } }`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	obelusOutput(t, 0, "run", "-q", "-c", "asked", "--db", db, filepath.Join(dir, "plan.lua"))
}

// records reads JSON values, those of arrays each for itself. Numbers keep
// their value, not their text.
func records(t *testing.T, text string) (all []any) {
	t.Helper()
	for d := json.NewDecoder(strings.NewReader(text)); d.More(); {
		var v any
		if err := d.Decode(&v); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if many, ok := v.([]any); ok {
			all = append(all, many...)
		} else {
			all = append(all, v)
		}
	}
	return all
}

// columnsOf gives what a command says the shape that the query gives its
// answer: the same columns, JSON as text.
func columnsOf(t *testing.T, answer []any, like any, q documentedQuestion) (rows []any) {
	t.Helper()
	for _, v := range answer {
		row := map[string]any{}
		for column := range like.(map[string]any) {
			row[column] = columnOf(t, v, column, q)
		}
		rows = append(rows, row)
	}
	return rows
}

func columnOf(t *testing.T, answer any, column string, q documentedQuestion) any {
	t.Helper()
	field := func(path ...string) any {
		v := answer
		for _, name := range path {
			object, _ := v.(map[string]any)
			v = object[name]
		}
		return v
	}
	switch {
	case column == "value" && q.command[0] == "get":
		return encoded(t, answer)
	case column == "value":
		path, err := store.ParsePath(field("path").(string))
		if err != nil {
			t.Fatal(err)
		}
		return encoded(t, field(append([]string{"data"}, path.Segments()...)...))
	case column == "data":
		for _, name := range []string{"data", "plan", "message", "tool"} {
			if v := field(name); v != nil {
				return encoded(t, v)
			}
		}
	case column == "message":
		if handled := field("handled", "message"); handled != nil {
			return handled
		}
		return field("error", "message")
	case column == "tool" && slices.Contains(q.command, "log"):
		return field("_call", "_tool")
	}
	return field(column)
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// TestPromises_NamedTestsExist holds that every test that PROMISES.md and the README name exists.
func TestPromises_NamedTestsExist(t *testing.T) {
	promises, err := os.ReadFile("PROMISES.md")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]bool{}
	err = filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, match := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(source), -1) {
			tests[match[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(string(promises)+string(readme), -1)
	if len(named) < 80 {
		t.Errorf("PROMISES.md names %d tests", len(named))
	}
	for _, match := range named {
		if !tests[match[1]] {
			t.Errorf("PROMISES.md or the README names %s, which is no test", match[1])
		}
	}
}

// documents returns the texts of all documents, by file.
func documents(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, pattern := range []string{"*.md", "../*.md", "../.github/*.md", "../engine/*.md", "../engine/decisions/*.md", "../examples/*/*.md"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			texts[file] = string(text)
		}
	}
	return texts
}

// TestDocuments_LinksLeadSomewhere holds that each link of a document to a file of the repository
// leads to one that exists.
func TestDocuments_LinksLeadSomewhere(t *testing.T) {
	links := 0
	for file, text := range documents(t) {
		for _, match := range regexp.MustCompile(`\]\(([^():]+)\)`).FindAllStringSubmatch(text, -1) {
			target, _, _ := strings.Cut(match[1], "#")
			if target == "" {
				continue
			}
			links++
			if _, err := os.Stat(filepath.Join(filepath.Dir(file), target)); err != nil {
				t.Errorf("%s: the link to %s: %v", file, match[1], err)
			}
		}
	}
	if links < 100 {
		t.Errorf("there are %d links", links)
	}
}

// TestDocuments_ActsAreShown holds that each row of ACTS.md says whether a statement holds, why
// Obelus differs where it does, and which case or command shows it.
func TestDocuments_ActsAreShown(t *testing.T) {
	verdict := regexp.MustCompile(`^holds( [^:]*)?([;:] .*)?$|^differs: .+, because .+$`)
	shown := regexp.MustCompile("\\(testdata/conformance/|`obelus ([a-z]+)")
	commands := map[string]bool{"help": true}
	for _, c := range subcommands(&app{}) {
		commands[c.Name()] = true
	}
	rows := 0
	for line := range strings.Lines(documents(t)[filepath.Join("..", "engine", "ACTS.md")]) {
		line = strings.ReplaceAll(strings.TrimSpace(line), `\|`, "")
		cells := strings.Split(strings.Trim(line, "|"), " | ")
		if !strings.HasPrefix(line, "| ") || strings.HasSuffix(line, "| shown by |") {
			continue
		}
		rows++
		if len(cells) != 3 {
			t.Errorf("%d cells: %s", len(cells), line)
			continue
		}
		obelus := strings.TrimSpace(cells[1])
		if _, reason, differs := strings.Cut(obelus, "differs: "); !verdict.MatchString(obelus) || differs && !strings.Contains(reason, ", because ") {
			t.Errorf("it does not hold, and does not differ because of something: %s", line)
		}
		found := shown.FindAllStringSubmatch(cells[2], -1)
		if len(found) == 0 {
			t.Errorf("nothing shows it: %s", line)
		}
		for _, match := range found {
			if match[1] != "" && !commands[match[1]] {
				t.Errorf("there is no command %s: %s", match[1], line)
			}
		}
	}
	if rows < 40 {
		t.Errorf("there are %d rows", rows)
	}
}

// TestDocuments_NamesOfGo holds that each name of Go in the documents, such as plan.Literal,
// exists.
func TestDocuments_NamesOfGo(t *testing.T) {
	packages := map[string]string{"cmd": ".", "engine": "../engine", "host": "../host", "journal": "../engine/journal",
		"plan": "../engine/plan", "store": "../store", "web": "../host/web"}
	for file, text := range documents(t) {
		for _, match := range regexp.MustCompile("`([a-z]+)\\.([A-Z]\\w*)(\\.[A-Z]\\w*)*`").FindAllStringSubmatch(text, -1) {
			dir, ours := packages[match[1]]
			if ours && !declares(t, dir, match[2]) {
				t.Errorf("%s names %s, which does not exist", file, match[0])
			}
		}
	}
}

// declares reports whether a package has a function, type, variable or constant of a name.
func declares(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return regexp.MustCompile(`(?m)^(func|type|var|const|\t)\s*` + name + `\b`).Match(source)
	})
}

// TestSurfaceDoc_NamesAllFlags holds that the table of commands in SURFACE.md has each command with
// all of its own flags, and no other flag. The flags of permissions have a section of their own.
func TestSurfaceDoc_NamesAllFlags(t *testing.T) {
	surface, err := os.ReadFile("SURFACE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(surface), "| command | does |\n")
	table, after, _ := strings.Cut(table, "\n\n")
	rows := map[string]string{} // by command
	for row := range strings.Lines(table) {
		for _, usage := range regexp.MustCompile("`(?:obelus )?([a-z]+)[^`]*`").FindAllStringSubmatch(strings.Split(row, " | ")[0], -1) {
			if !strings.Contains(rows[usage[1]], row) {
				rows[usage[1]] += row
			}
		}
	}
	for _, c := range subcommands(&app{}) {
		row, ok := rows[c.Name()]
		if !ok {
			t.Errorf("SURFACE.md has no row for %s", c.Name())
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			named := regexp.MustCompile(`--`+f.Name+`\b`).MatchString(row) || f.Shorthand != "" && regexp.MustCompile(`-`+f.Shorthand+`\b`).MatchString(row)
			if strings.HasPrefix(f.Name, "allow-") {
				named = strings.Contains(after, "--"+f.Name)
			}
			if !named {
				t.Errorf("SURFACE.md does not name the flag --%s of %s", f.Name, c.Name())
			}
		})
		for _, flag := range regexp.MustCompile(`--([a-z][a-z-]*)`).FindAllStringSubmatch(row, -1) {
			if c.Flags().Lookup(flag[1]) == nil && !isFlagOfOther(row, flag[1]) {
				t.Errorf("SURFACE.md names the flag --%s, which %s does not have", flag[1], c.Name())
			}
		}
	}
}

// isFlagOfOther reports whether a flag in a row of SURFACE.md is of another command that the row
// names, or of all commands.
func isFlagOfOther(row, flag string) bool {
	if flag == "json" || flag == "context" {
		return true
	}
	return slices.ContainsFunc(subcommands(&app{}), func(c *cobra.Command) bool {
		return strings.Contains(row, c.Name()) && c.Flags().Lookup(flag) != nil
	})
}
