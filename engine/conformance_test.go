package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"obelus/engine"
	"obelus/store"
)

// A conformance case is a txtar file named after the clause that it holds. Its
// comment says in words what it shows. Its files, of which any other name is
// an error:
//
//	context.json    messages that the request brings
//	before.json     messages that the context holds before the run
//	input.json      the run's input
//	tools.json      tools by name
//	plan.json       the calls, or a request with calls, output and schema
//	append.json     messages appended when the run waits; then it is resumed
//
//	messages        the messages up to the plan, in canonical form, line by line
//	refused         the plan or a message is refused: the error, line by line
//	warnings        what check warns of, line by line
//	calls           each call: number tool status, then → paths, ! error, … reason
//	log             the messages that the run adds after its plan, exact at parallel 1
//	values          reference = JSON, or = missing; "reference @ instance" for an instance
//	output          the final output
//	status          of the run
const conformance = "testdata/conformance/*.txtar"

var caseFiles = []string{"context.json", "before.json", "input.json", "tools.json", "plan.json", "append.json",
	"messages", "refused", "warnings", "calls", "log", "values", "output", "status"}

// activities are what the plans of the cases call.
func activities() *engine.Registry {
	r := engine.NewRegistry()
	add := func(name string, f func(in engine.Invocation) (engine.Result, error)) {
		r.Activities[name] = &engine.Registered{Name: name, Activity: engine.ActivityFunc(func(_ context.Context, in engine.Invocation) (engine.Result, error) {
			return f(in)
		})}
	}
	add("value", func(in engine.Invocation) (engine.Result, error) { return engine.Result{Value: in.Call["value"]}, nil })
	add("updateUserStatus", func(in engine.Invocation) (engine.Result, error) {
		return engine.Result{Value: in.Call["newStatus"]}, nil
	})
	add("params", func(in engine.Invocation) (engine.Result, error) { return engine.Result{Value: in.Call}, nil })
	add("context", func(in engine.Invocation) (engine.Result, error) { return engine.Result{Value: in.Context}, nil })
	add("tool", func(in engine.Invocation) (engine.Result, error) { return engine.Result{Value: in.Tool}, nil })
	add("to", func(in engine.Invocation) (engine.Result, error) {
		return engine.Result{Value: in.Call["value"], To: in.Call["path"].(string)}, nil
	})
	add("message", func(in engine.Invocation) (engine.Result, error) {
		return engine.Result{Message: in.Call["message"].(map[string]any)}, nil
	})
	add("fail", func(in engine.Invocation) (engine.Result, error) {
		return engine.Result{}, &engine.Failure{Fields: map[string]any{"message": "no", "code": "denied"}}
	})
	add("fault", func(in engine.Invocation) (engine.Result, error) {
		return engine.Result{}, errors.New("a nil value was indexed")
	})
	return r
}

func TestConformance(t *testing.T) {
	files, err := filepath.Glob(conformance)
	if err != nil || len(files) == 0 {
		t.Fatal("no cases: ", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		for _, parallel := range []int{1, 8} {
			t.Run(fmt.Sprintf("%s/parallel=%d", name, parallel), func(t *testing.T) {
				archive, err := txtar.ParseFile(file)
				if err != nil {
					t.Fatal(err)
				}
				newCase(t, archive, parallel).run()
			})
		}
	}
}

type conformanceCase struct {
	t        *testing.T
	parallel int
	files    map[string]string
	log      store.Log
	registry *engine.Registry
}

func newCase(t *testing.T, archive *txtar.Archive, parallel int) *conformanceCase {
	c := &conformanceCase{t: t, parallel: parallel, files: map[string]string{}, log: store.NewMemory(), registry: activities()}
	for _, f := range archive.Files {
		known := false
		for _, name := range caseFiles {
			known = known || name == f.Name
		}
		if !known {
			t.Fatalf("unknown file %q in the case", f.Name)
		}
		c.files[f.Name] = strings.TrimSpace(string(f.Data))
	}
	if len(strings.TrimSpace(string(archive.Comment))) == 0 {
		t.Fatal("the case does not say what it shows")
	}
	if text, ok := c.files["tools.json"]; ok {
		tools, _ := c.json(text).(map[string]any)
		for name, schema := range tools {
			tool, err := engine.NewTool(name, schema)
			if err != nil {
				t.Fatal(err)
			}
			c.registry.Tools[name] = tool
		}
	}
	return c
}

func (c *conformanceCase) json(text string) any {
	c.t.Helper()
	v, err := store.DecodeJSON([]byte(text))
	if err != nil {
		c.t.Fatalf("%v in %s", err, text)
	}
	return v
}

func (c *conformanceCase) messages(file string) ([]store.Message, error) {
	text, ok := c.files[file]
	if !ok {
		return nil, nil
	}
	return store.ParseMessages([]byte(text))
}

// request builds what the case runs; an error is one of its messages.
func (c *conformanceCase) request() (*engine.Request, error) {
	context, err := c.messages("context.json")
	if err != nil {
		return nil, err
	}
	request := &engine.Request{Context: context}
	plan, ok := c.files["plan.json"]
	if !ok {
		plan = "[]"
	}
	calls := c.json(plan)
	if object, ok := calls.(map[string]any); ok {
		calls = object["calls"]
		request.Output, request.HasOutput = object["output"]
		request.Schema = object["schema"]
	}
	for _, call := range calls.([]any) {
		request.Calls = append(request.Calls, engine.Source{Call: call})
	}
	return request, nil
}

func (c *conformanceCase) run() {
	ctx := context.Background()
	outcome, after, err := c.execute(ctx)
	if want, ok := c.files["refused"]; ok {
		if err == nil {
			c.t.Fatal("nothing was refused")
		}
		c.compare("refused", err.Error(), want)
		c.checkNothingWritten(ctx)
		return
	}
	if err != nil {
		c.t.Fatal(err)
	}
	c.checkOutcome(outcome)
	c.checkValues(ctx)
	if want, ok := c.files["log"]; ok && c.parallel == 1 {
		c.compare("log", c.print(ctx, after, 0), c.canonical(want))
	}
	if want, ok := c.files["messages"]; ok {
		c.compare("messages", c.print(ctx, 0, after-1), c.canonical(want))
	}
}

func (c *conformanceCase) checkNothingWritten(ctx context.Context) {
	before, _ := c.messages("before.json")
	head, err := c.log.Head(ctx, "c")
	if head != int64(len(before)) || head == 0 && !errors.Is(err, store.ErrNoContext) {
		c.t.Errorf("what was refused left a trace: the context is at %d, %v", head, err)
	}
}

func (c *conformanceCase) execute(ctx context.Context) (outcome *engine.Outcome, after int64, err error) {
	before, err := c.messages("before.json")
	if err != nil {
		return nil, 0, err
	}
	if len(before) > 0 {
		if _, err := engine.Append(ctx, c.log, "c", before); err != nil {
			return nil, 0, err
		}
	}
	request, err := c.request()
	if err != nil {
		return nil, 0, err
	}
	c.checkWarnings(request)
	start := engine.Start{Context: "c", Request: request}
	if text, ok := c.files["input.json"]; ok {
		start.Input, start.HasInput = c.json(text), true
	}
	runner := &engine.Runner{Log: c.log, Registry: c.registry, Parallel: c.parallel, Now: func() time.Time {
		return time.Date(2025, 10, 26, 12, 0, 0, 0, time.UTC)
	}}
	if outcome, err = runner.Run(ctx, start); err != nil {
		return nil, 0, err
	}
	if more, err := c.messages("append.json"); len(more) > 0 || err != nil {
		if outcome.Status != engine.RunWaiting {
			c.t.Fatalf("the run is %s before append.json, not waiting", outcome.Status)
		}
		if _, err := engine.Append(ctx, c.log, "c", more); err != nil {
			return nil, 0, err
		}
		if outcome, err = runner.Resume(ctx, engine.Resume{Context: "c"}); err != nil {
			return nil, 0, err
		}
	}
	for m, err := range c.log.Messages(ctx, store.Filter{Context: "c", Type: store.TypePlan}) {
		if err != nil {
			c.t.Fatal(err)
		}
		after = m.Seq
	}
	return outcome, after, nil
}

func (c *conformanceCase) checkWarnings(request *engine.Request) {
	want, ok := c.files["warnings"]
	if !ok {
		return
	}
	plan, err := engine.Compile(request, c.registry, engine.NothingExists)
	if err != nil {
		c.t.Fatal(err)
	}
	var lines []string
	for _, p := range plan.Warnings {
		lines = append(lines, p.Code+": "+p.Error())
	}
	c.compare("warnings", strings.Join(lines, "\n"), want)
}

func (c *conformanceCase) checkOutcome(outcome *engine.Outcome) {
	if want, ok := c.files["calls"]; ok {
		var lines []string
		for _, r := range outcome.Calls {
			lines = append(lines, describeRecord(r))
		}
		c.compare("calls", strings.Join(lines, "\n"), want)
	}
	if want, ok := c.files["output"]; ok {
		c.compare("output", string(store.EncodeJSON(outcome.Output)), string(store.EncodeJSON(c.json(want))))
	}
	status := "done"
	if want, ok := c.files["status"]; ok {
		status = want
	}
	c.compare("status", strings.TrimSuffix(fmt.Sprintf("%s: %s", outcome.Status, outcome.Error), ": "), status)
}

func describeRecord(r engine.Record) string {
	line := fmt.Sprintf("%s %s %s", r.Call, r.Tool, r.Status)
	for _, path := range r.Writes {
		line += " → " + path
	}
	if r.Error != nil {
		line += fmt.Sprintf(" ! %s: %s", r.Error["code"], strings.ReplaceAll(fmt.Sprint(r.Error["message"]), "\n", " / "))
	}
	if r.Reason != "" {
		line += " … " + r.Reason
	}
	if len(r.WaitingOn) > 0 {
		line += " … " + strings.Join(r.WaitingOn, " ")
	}
	return line
}

func (c *conformanceCase) checkValues(ctx context.Context) {
	for n, line := range strings.Split(c.files["values"], "\n") {
		if line == "" {
			continue
		}
		ref, want, ok := strings.Cut(line, " = ")
		if !ok {
			c.t.Fatalf("values, line %d: no “ = ” in %q", n+1, line)
		}
		ref, instance, _ := strings.Cut(ref, " @ ")
		at := int64(0)
		if before, seq, ok := strings.Cut(ref, " at "); ok {
			ref = before
			at, _ = strconv.ParseInt(seq, 10, 64)
		}
		resolved, err := store.Resolver{Log: c.log, Context: "c", At: at}.Resolve(ctx, store.MustParsePath(ref), instance)
		if err != nil {
			c.t.Fatal(err)
		}
		got := "missing"
		if resolved.Exists {
			got = string(store.EncodeJSON(resolved.Value))
		}
		if want != "missing" {
			want = string(store.EncodeJSON(c.json(want)))
		}
		c.compare(line, got, want)
	}
}

// print gives the messages after a seq and up to another, one a line, without
// what any run has differently.
func (c *conformanceCase) print(ctx context.Context, after, at int64) string {
	var lines []string
	for m, err := range c.log.Messages(ctx, store.Filter{Context: "c", After: after, At: at}) {
		if err != nil {
			c.t.Fatal(err)
		}
		text, err := json.Marshal(m)
		if err != nil {
			c.t.Fatal(err)
		}
		message := c.json(string(text)).(map[string]any)
		delete(message, "date")
		delete(message, "context")
		delete(message, "seq")
		lines = append(lines, string(store.EncodeJSON(message)))
	}
	return strings.Join(lines, "\n")
}

func (c *conformanceCase) canonical(lines string) string {
	var all []string
	for _, line := range strings.Split(lines, "\n") {
		all = append(all, string(store.EncodeJSON(c.json(line))))
	}
	return strings.Join(all, "\n")
}

func (c *conformanceCase) compare(what, got, want string) {
	c.t.Helper()
	if got != want {
		c.t.Errorf("%s (-want +got):\n%s", what, cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")))
	}
}
