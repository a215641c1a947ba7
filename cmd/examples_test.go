package cmd

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

const examples = "../examples/"

// copied is a copy of an example's folder.
func copied(t *testing.T, example string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(examples+example)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestExamples_Run runs every example, in a copy of its folder, and compares what
// it prints: plans/NAME.lua gives expected.json, from input.json if there is
// one; and for each expected/PLAN.json or expected/PLAN-and-more.json there is
// such a plan, with an input of that name if it needs one. A plan that asks a model
// has a cassette, tests/cassettes/NAME.json.
func TestExamples_Run(t *testing.T) {
	folders, err := os.ReadDir(examples)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range folders {
		if e.Name() == "embed" || e.Name() == "bench" { // Go programs, with tests of their own
			continue
		}
		t.Run(e.Name(), func(t *testing.T) {
			dir := copied(t, e.Name())
			obelusOutput(t, exitDone, "check", "-q", "-C", dir)
			if e.Name() == "expenses" || e.Name() == "triage" || e.Name() == "nightly" { // which need a person
				return
			}
			cases, _ := filepath.Glob(filepath.Join(dir, "expected", "*.json"))
			for _, expected := range cases {
				name := filepath.Base(expected)
				runExample(t, planFor(t, dir, name), filepath.Join(dir, "input", name), expected)
			}
			if len(cases) == 0 {
				runExample(t, filepath.Join(dir, "plans", e.Name()+".lua"), filepath.Join(dir, "input.json"), filepath.Join(dir, "expected.json"))
			}
		})
	}
}

// planFor finds the plan whose name a case begins with.
func planFor(t *testing.T, dir, name string) string {
	plans, _ := filepath.Glob(filepath.Join(dir, "plans", "*.lua"))
	for _, plan := range slices.Backward(plans) {
		if strings.HasPrefix(name, strings.TrimSuffix(filepath.Base(plan), ".lua")) {
			return plan
		}
	}
	t.Fatal("no plan for the case ", name)
	return ""
}

func runExample(t *testing.T, plan, input, expected string) {
	t.Helper()
	want, err := os.ReadFile(expected)
	if err != nil {
		t.Fatal("an example says what it prints: ", err)
	}
	args := []string{"run", "-q", plan}
	if _, err := os.Stat(input); err == nil {
		args = append(args, "-i", "@"+input)
	}
	cassette := filepath.Join(filepath.Dir(plan), "..", "tests", "cassettes", strings.TrimSuffix(filepath.Base(plan), ".lua")+".json")
	if _, err := os.Stat(cassette); err == nil {
		args = append(args, "--cassette", cassette)
	}
	if got := obelusOutput(t, exitDone, args...); got != string(want) {
		t.Errorf("%s prints\n%s\nand not\n%s", filepath.Base(plan), got, want)
	}
}

// TestExamples_Expenses takes a claim through the hands of a person: each step is a
// process of its own.
func TestExamples_Expenses(t *testing.T) {
	step := func(dir string, status int, args ...string) string {
		t.Helper()
		c := program(t, dir, args...)
		out, _ := c.Output()
		if got := c.ProcessState.ExitCode(); got != status {
			t.Fatalf("%s: exit status %d, not %d", args, got, status)
		}
		return string(out)
	}
	for _, test := range []struct {
		name, amount string
		decision     []string
		want         string
	}{
		{"small", "80", nil, `"Dear Ada, you have been paid 80."`},
		{"approved", "420", []string{"approve", "1.4"}, `"Dear Ada, you have been paid 420."`},
		{"corrected", "420", []string{"approve", "1.4", "--set", "amount:=400"}, `"Dear Ada, you have been paid 400."`},
		{"rejected", "420", []string{"reject", "1.4", "--reason", "no receipt"}, `"Dear Ada, your claim was refused: no receipt."`},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := copied(t, "expenses")
			run := []string{"run", "-q", "plans/expenses.lua", "-c", "claim", "-i", "employee=Ada", "-i", `lines:=[{"what": "train", "amount": ` + test.amount + `}]`}
			if test.decision == nil {
				if got := step(dir, exitDone, run...); got != test.want+"\n" {
					t.Errorf("it gives %s, not %s", got, test.want)
				}
				return
			}
			step(dir, exitWaiting, run...)
			var held struct {
				Call, Tool string
				Arguments  struct{ Amount json.Number }
			}
			if err := json.Unmarshal([]byte(step(dir, exitDone, "approvals", "--json")), &held); err != nil {
				t.Fatal(err)
			}
			if held.Call != "1.4" || held.Tool != "payLarge" || held.Arguments.Amount != "420" {
				t.Errorf("held is %+v", held)
			}
			step(dir, exitWaiting, "resume", "-q") // nobody has decided
			step(dir, exitDone, append(test.decision, "-q")...)
			if got := step(dir, exitDone, "resume", "-q"); got != test.want+"\n" {
				t.Errorf("it gives %s, not %s", got, test.want)
			}
		})
	}
}

// withModels are the examples that ask a model, by answers that are recorded.
var withModels = []string{"analyst", "translator", "triage"}

// TestExamples_Models: the tests of an example that asks a model pass without one and use all that is
// recorded; what it prints does not depend on how many calls run at once; and a replay gives the same.
func TestExamples_Models(t *testing.T) {
	for _, example := range withModels {
		t.Run(example, func(t *testing.T) {
			dir := copied(t, example)
			c := program(t, dir, "test")
			if out, err := c.CombinedOutput(); err != nil || strings.Contains(string(out), "no test has used") {
				t.Errorf("%v\n%s", err, out)
			}
			want, err := os.ReadFile(filepath.Join(dir, "expected.json"))
			if err != nil {
				t.Fatal(err)
			}
			if example == "triage" { // of which a person rejects a call there
				want = nil
			}
			for _, parallel := range []string{"1", "2", "64"} {
				name := "at-" + parallel
				c := program(t, dir, "run", "-q", "plans/"+example+".lua", "-c", name, "--parallel", parallel, "--approve", "never", "--cassette", "tests/cassettes/"+example+".json")
				got, err := c.Output()
				if want == nil {
					want = got
				}
				if err != nil || string(got) != string(want) {
					t.Errorf("%s calls at once: %v\n%s", parallel, err, got)
				}
				if out, err := program(t, dir, "replay", name).CombinedOutput(); err != nil || !strings.Contains(string(out), "the same came out") {
					t.Errorf("replay: %v\n%s", err, out)
				}
			}
		})
	}
}

// TestExamples_Readmes runs the commands that the READMEs of the examples with models show, one after
// the other. One whose comment says so ends with exit status 3. What the last run or resume prints is
// expected.json.
func TestExamples_Readmes(t *testing.T) {
	words := regexp.MustCompile(`"[^"]*"|\S+`)
	for _, example := range withModels {
		t.Run(example, func(t *testing.T) {
			dir := copied(t, example)
			text, err := os.ReadFile(filepath.Join(dir, "README.md"))
			if err != nil {
				t.Fatal(err)
			}
			printed := ""
			for _, line := range regexp.MustCompile(`(?m)^obelus .*$`).FindAllString(string(text), -1) {
				command, comment, _ := strings.Cut(line, "  #")
				args := words.FindAllString(command, -1)[1:]
				for i := range args {
					args[i] = strings.Trim(args[i], `"`)
				}
				c := program(t, dir, args...)
				out, _ := c.Output()
				want := exitDone
				if strings.Contains(comment, "exit status 3") {
					want = exitWaiting
				}
				if got := c.ProcessState.ExitCode(); got != want {
					t.Fatalf("%s: exit status %d, not %d", command, got, want)
				}
				if args[0] == "run" || args[0] == "resume" {
					printed = string(out)
				}
			}
			want, err := os.ReadFile(filepath.Join(dir, "expected.json"))
			if err != nil || printed != string(want) {
				t.Errorf("the commands of the README print\n%s\nand not\n%s\n%v", printed, want, err)
			}
		})
	}
}

// TestReadme_Examples runs the commands by which the README runs examples, in copies of their folders.
func TestReadme_Examples(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^ *(?:go run \./cmd/|\$ )obelus (.*examples/(\w+).*)$`).FindAllStringSubmatch(string(text), -1)
	if len(found) < 4 {
		t.Fatalf("the README runs %d commands", len(found))
	}
	copies := map[string]string{}
	for _, match := range found {
		command, _, _ := strings.Cut(match[1], "  #")
		example := match[2]
		if copies[example] == "" {
			copies[example] = filepath.ToSlash(copied(t, example))
		}
		c := program(t, copies[example], strings.Fields(strings.ReplaceAll(command, "examples/"+example, copies[example]))...)
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", command, err, out)
		}
	}
}

// TestExamples_Nightly runs a night beside the shop of the example, by hand and by a server, with a
// day on which it fails.
func TestExamples_Nightly(t *testing.T) {
	shop := filepath.Join(t.TempDir(), "shop")
	if out, err := exec.Command("go", "build", "-o", shop, "../examples/nightly/shop").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	c := exec.Command(shop, "-addr", "127.0.0.1:0")
	said, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	lines := bufio.NewScanner(said)
	next := func() string {
		if !lines.Scan() {
			t.Fatal("the shop has gone:", lines.Err())
		}
		return lines.Text()
	}
	_, address, _ := strings.Cut(next(), " at ")
	dir := copied(t, "nightly")
	at := func(status int, args ...string) string {
		return obelusOutput(t, status, append([]string{"-C", dir}, args...)...)
	}
	plan := filepath.Join(dir, "plans/nightly.lua")
	at(exitWaiting, "run", "-q", plan, "-c", "night", "-i", "shop="+address, "-i", "due=2026-11-26T02:00:00Z")
	if got := at(exitDone, "approvals", "--json"); strings.Count(got, `"tool":"release"`) != 2 {
		t.Errorf("there wait %s", got)
	}
	at(exitDone, "approve", "-q", "2.1")
	at(exitDone, "reject", "-q", "2.2", "--reason", "not paid yet")
	report := at(exitDone, "resume", "-q", "-r")
	for _, line := range []string{"| b4 | Brouwer & Sons | 4200.00 | released |", "| d2 | Dijkstra | 1500.00 | stopped: not paid yet |", "4 orders, 5800.40 in all."} {
		if !strings.Contains(report, line) {
			t.Errorf("the report lacks %q:\n%s", line, report)
		}
	}
	if written, err := os.ReadFile(filepath.Join(dir, "reports/2026-11-26.md")); string(written)+"\n" != report && string(written) != report || err != nil {
		t.Errorf("the file has %q, %v", written, err)
	}
	if got := next(); got != "released: b4" {
		t.Errorf("the shop says %q", got)
	}
	// The address of the alert is that of the schedule.
	alert := filepath.Join(dir, "plans/alert.lua")
	text, err := os.ReadFile(alert)
	if err == nil {
		err = os.WriteFile(alert, []byte(strings.ReplaceAll(string(text), "http://127.0.0.1:8099", address)), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	p, url := serving(t, dir, "-q")
	status, body := post(url+"/v1/runs", `{"plan":"plans/nightly.lua","context":"closed","wait":true,"input":{"shop":"`+address+`","due":"2027-01-01T02:00:00Z"}}`)
	if status != 200 || body["status"] != "failed" {
		t.Errorf("%d: %v", status, body)
	}
	if got := next(); !strings.HasPrefix(got, "alert: closed has failed: ") || !strings.Contains(got, "410: closed") {
		t.Errorf("the shop says %q", got)
	}
	p.ends(syscall.SIGTERM)
	at(exitDone, "test", "-q")
	if got := at(exitDone, "schedules"); !strings.Contains(got, "nightly") {
		t.Errorf("its schedules: %s", got)
	}
}
