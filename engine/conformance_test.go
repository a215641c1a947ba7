package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/engine/replay"
	"obelus/store"
	"obelus/store/memory"
)

// A conformance case is a txtar file named after the clause that it holds, with the number of its
// section. Its comment says in words what it shows; what it has in quotation marks is the text of
// PROTOCOL.md. Its files, of which any other name is
// an error:
//
//	context.json    messages that the request brings
//	before.json     messages that the context holds before the run
//	input.json      the run's input
//	tools.json      tools by name
//	plan.json       the calls, or a request with calls, output, schema, mode and scopes
//	solutions.json  what the request's planner answers, ask by ask; {} after the last. In them and in
//	                requests "to" is the path of Output.to, to which the output is sent
//	delegates.json  requests by name; those that end in .json are files
//	model.json      what the model answers, by tool, or {"fail": text}, or an outcome; without it
//	                there is none
//	proposals.json  what the model plans, ask by ask; {} after the last; a request says "planned": {…}
//	approve         the policy of approval
//	append.json     messages appended when the run waits; then it is resumed
//	append.X.json   the same for the context X
//	then.json       a request that is run in the context once the first has ended
//	decisions       what a person decides once the run has come to its halt, line by
//	                line; after each group the run is resumed: see decide
//
//	messages        the messages up to the plan, in canonical form, line by line
//	refused         the plan or a message is refused: the error, line by line
//	warnings        what check warns of, line by line
//	asked           the kinds of each ask of the planner, line by line; of delegates after their
//	                context
//	questions       what the model is asked, line by line in the order of the calls
//	shown           the kinds that the model is shown with each question, line by line
//	groups          the calls of each request for latent calls, line by line; the model answers several
//	                calls by one request in the cases that have it, at most three
//	proposed        what the model that plans is shown, ask by ask
//	answered        how a model answered each latent call: call, plan or asked, then ~ why the answer
//	                that it gave with the plan was set aside
//	held            each hold before the decisions: context, call, tool, arguments, scopes
//	undecided       decisions that are refused: the errors, line by line
//	children        each context of a delegate: its name and status, then its messages up to its plan
//	calls           each call: number tool status, then → paths, ! error, … reason, × attempts if
//	                there were several, … what or until when it waits
//	handled         each failure that went to the last alternative: call, code and message
//	log             the messages that the run adds after its first plan, exact at parallel 1
//	values          reference = JSON, or = missing; "reference @ instance" for an
//	                instance, "X:reference" in the context X
//	output          the final output
//	status          of the run
const conformance = "testdata/conformance/*.txtar"

var caseFiles = []string{"context.json", "before.json", "input.json", "tools.json", "plan.json", "solutions.json",
	"delegates.json", "model.json", "proposals.json", "approve", "append.json", "then.json", "decisions",
	"messages", "refused", "warnings", "asked", "questions", "shown", "groups", "proposed", "answered", "held", "undecided", "children", "calls", "handled", "log", "values", "output", "status"}

// activities are what the plans of the cases call. They may run ahead of the log.
func activities(ahead bool) *plan.Registry {
	r := plan.NewRegistry()
	add := func(name string, f func(in plan.Invocation) (plan.Result, error)) {
		r.Activities[name] = &plan.Registered{Name: name, Activity: able{run: func(_ context.Context, in plan.Invocation) (plan.Result, error) {
			return f(in)
		}, ahead: func(context.Context, plan.Invocation) bool { return ahead }}}
	}
	add("value", func(in plan.Invocation) (plan.Result, error) { return plan.Result{Value: in.Call["value"]}, nil })
	add("updateUserStatus", func(in plan.Invocation) (plan.Result, error) {
		return plan.Result{Value: in.Call["newStatus"]}, nil
	})
	add("greetUser", func(in plan.Invocation) (plan.Result, error) {
		return plan.Result{Value: fmt.Sprintf("Hello, %s!", in.Call["userName"])}, nil
	})
	add("verifyUser", func(in plan.Invocation) (plan.Result, error) {
		if in.Call["userId"] == "perfect-stranger" {
			return plan.Result{}, plan.NewFailure("nobody knows them")
		}
		return plan.Result{Value: true}, nil
	})
	add("generateSummary", func(in plan.Invocation) (plan.Result, error) {
		text, _, _ := strings.Cut(in.Call["text"].(string), " of")
		return plan.Result{Value: text}, nil
	})
	add("logEvent", func(in plan.Invocation) (plan.Result, error) {
		state := in.Context["state"].(map[string]any)
		return plan.Result{Value: map[string]any{"event": in.Call["eventName"], "userId": state["userId"]}}, nil
	})
	add("params", func(in plan.Invocation) (plan.Result, error) { return plan.Result{Value: in.Call}, nil })
	add("context", func(in plan.Invocation) (plan.Result, error) { return plan.Result{Value: in.Context}, nil })
	add("tool", func(in plan.Invocation) (plan.Result, error) { return plan.Result{Value: in.Tool}, nil })
	add("to", func(in plan.Invocation) (plan.Result, error) {
		return plan.Result{Value: in.Call["value"], To: in.Call["path"].(string)}, nil
	})
	add("message", func(in plan.Invocation) (plan.Result, error) {
		return plan.Result{Message: in.Call["message"].(map[string]any)}, nil
	})
	add("fail", func(in plan.Invocation) (plan.Result, error) {
		return plan.Result{}, &plan.Failure{Fields: map[string]any{"message": "no", "code": "denied"}}
	})
	add("failWith", func(in plan.Invocation) (plan.Result, error) {
		return plan.Result{}, &plan.Failure{Fields: in.Call["fields"].(map[string]any)}
	})
	r.Activities["slow"] = &plan.Registered{Name: "slow", Activity: plan.ActivityFunc(func(ctx context.Context, _ plan.Invocation) (plan.Result, error) {
		<-ctx.Done() // it takes all the time that it has
		return plan.Result{}, ctx.Err()
	})}
	add("fault", func(in plan.Invocation) (plan.Result, error) {
		return plan.Result{}, errors.New("a nil value was indexed")
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
		for _, way := range []struct {
			parallel int
			ahead    bool
		}{{1, false}, {1, true}, {8, true}} {
			t.Run(fmt.Sprintf("%s/parallel=%d/ahead=%v", name, way.parallel, way.ahead), func(t *testing.T) {
				archive, err := txtar.ParseFile(file)
				if err != nil {
					t.Fatal(err)
				}
				newCase(t, archive, way.parallel, way.ahead).run()
			})
		}
	}
}

type conformanceCase struct {
	t        *testing.T
	parallel int
	files    map[string]string
	log      store.Log
	registry *plan.Registry
	runner   *engine.Runner

	mu        sync.Mutex // holds what planners and the model were asked
	asked     []string
	questions []question
	groups    []string
	proposed  []string
}

func newCase(t *testing.T, archive *txtar.Archive, parallel int, ahead bool) *conformanceCase {
	c := &conformanceCase{t: t, parallel: parallel, files: map[string]string{}, log: memory.New(), registry: activities(ahead)}
	for _, f := range archive.Files {
		if !slices.Contains(caseFiles, f.Name) && appendsTo(f.Name) == "" {
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
			tool, err := plan.NewTool(name, schema)
			if err != nil {
				t.Fatal(err)
			}
			c.registry.Tools[name] = tool
		}
	}
	c.addDelegates()
	c.addModel()
	c.log = datingLog{c.log}
	c.runner = &engine.Runner{Log: c.log, Registry: c.registry, Parallel: parallel, Ticks: 5, Now: conformanceDate, Rest: 10 * time.Second}
	c.runner.WithoutChance()
	return c
}

func conformanceDate() time.Time { return time.Date(2025, 10, 26, 12, 0, 0, 0, time.UTC) }

// datingLog is a log that dates what has no date by the clock of the cases, since dates never
// go back.
type datingLog struct{ store.Log }

func (l datingLog) Append(ctx context.Context, b store.Batch) (store.Appended, error) {
	b.Messages, b.Journal = slices.Clone(b.Messages), slices.Clone(b.Journal)
	for i := range b.Messages {
		if m := &b.Messages[i]; m.Date.IsZero() {
			m.Date = conformanceDate()
		}
	}
	for i := range b.Journal {
		if e := &b.Journal[i]; e.Date.IsZero() {
			e.Date = conformanceDate()
		}
	}
	return l.Log.Append(ctx, b)
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
func (c *conformanceCase) request() (*plan.Request, error) {
	plan, ok := c.files["plan.json"]
	if !ok {
		plan = "[]"
	}
	request := c.readRequest(c.json(plan))
	if text, ok := c.files["solutions.json"]; ok {
		request.Planner = c.planner(c.json(text))
	}
	context, err := c.messages("context.json")
	request.Context = context
	return request, err
}

func (c *conformanceCase) run() {
	ctx := context.Background()
	outcome, opening, err := c.execute(ctx)
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
	c.checkOutcome(ctx, outcome)
	c.checkValues(ctx)
	c.checkOthers(ctx)
	c.checkReplay(ctx)
	all := c.print(ctx, "c")
	if want, ok := c.files["log"]; ok && c.parallel == 1 {
		after := all[opening:]
		if len(after) > 0 && strings.HasSuffix(after[0], `"type":"plan"}`) {
			after = after[1:]
		}
		c.compare("log", strings.Join(after, "\n"), c.canonical(want))
	}
	if want, ok := c.files["messages"]; ok {
		c.compare("messages", strings.Join(all[:opening], "\n"), c.canonical(want))
	}
}

// checkReplay holds that what the log says comes out again, whatever the clause.
func (c *conformanceCase) checkReplay(ctx context.Context) {
	replayed, err := replay.Run(ctx, c.runner, "c", nil)
	var unfinished *engine.UnfinishedError
	if errors.As(err, &unfinished) {
		return
	}
	if err != nil {
		c.t.Errorf("replayed: %v", err)
		return
	}
	for _, d := range replayed.Differences {
		c.t.Errorf("replayed, call %s %s: %s in the log, %s now", d.Call, d.What, store.EncodeJSON(d.Recorded), store.EncodeJSON(d.Replayed))
	}
}

func (c *conformanceCase) checkNothingWritten(ctx context.Context) {
	before, _ := c.messages("before.json")
	head, err := c.log.Head(ctx, "c")
	if head != int64(len(before)) || head == 0 && !errors.Is(err, store.ErrNoContext) {
		c.t.Errorf("what was refused left a trace: the context is at %d, %v", head, err)
	}
	if children := c.contexts(ctx)[1:]; len(children) > 0 {
		c.t.Errorf("what was refused left contexts: %v", children)
	}
}

// execute runs the case to its end. The run's own messages begin after those of
// the opening.
func (c *conformanceCase) execute(ctx context.Context) (outcome *journal.Outcome, opening int, err error) {
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
	opening = len(before) + len(request.Context)
	start := engine.Start{Context: "c", Request: request}
	if text, ok := c.files["input.json"]; ok {
		start.Input = store.Some(c.json(text))
		opening++
	}
	if text, ok := c.files["approve"]; ok {
		if start.Approve, err = plan.ParsePolicy(text); err != nil {
			return nil, 0, err
		}
	}
	if outcome, err = c.runner.Run(ctx, start); err != nil {
		return nil, 0, err
	}
	if c.appendMore(ctx, outcome.Status) {
		outcome = c.resume(ctx, request)
	}
	outcome = c.decide(ctx, request, outcome)
	if text, ok := c.files["then.json"]; ok {
		outcome, err = c.runner.Run(ctx, engine.Start{Context: "c", Request: c.readRequest(c.json(text))})
	}
	return outcome, opening, err
}

func (c *conformanceCase) checkWarnings(request *plan.Request) {
	want, ok := c.files["warnings"]
	if !ok {
		return
	}
	plan, err := plan.Compile(request, c.registry, plan.NothingExists)
	if err != nil {
		c.t.Fatal(err)
	}
	var lines []string
	for _, p := range plan.Warnings {
		lines = append(lines, p.Code+": "+p.Error())
	}
	c.compare("warnings", strings.Join(lines, "\n"), want)
}

func (c *conformanceCase) checkOutcome(ctx context.Context, outcome *journal.Outcome) {
	if want, ok := c.files["calls"]; ok {
		records, err := journal.In(c.log, "c").Records(ctx)
		if err != nil {
			c.t.Fatal(err)
		}
		lines := describeTried(records)
		c.compare("calls", strings.Join(lines, "\n"), want)
		last := describeTried(outcome.Calls)
		c.compare("the outcome's calls", strings.Join(last, "\n"), strings.Join(lines[max(0, len(lines)-len(last)):], "\n"))
	}
	if want, ok := c.files["answered"]; ok {
		records, err := journal.In(c.log, "c").Records(ctx)
		if err != nil {
			c.t.Fatal(err)
		}
		c.compare("answered", strings.Join(describeAnswers(records), "\n"), want)
	}
	if want, ok := c.files["handled"]; ok {
		c.compare("handled", strings.Join(describeHandled(outcome.Calls), "\n"), want)
	}
	if want, ok := c.files["output"]; ok {
		c.compare("output", string(store.EncodeJSON(outcome.Output)), string(store.EncodeJSON(c.json(want))))
	}
	status := "done"
	if want, ok := c.files["status"]; ok {
		status = want
	}
	c.compare("status", strings.TrimSuffix(fmt.Sprintf("%s: %s", outcome.Status, outcome.Error), ": "), status)
	last, err := journal.In(c.log, "c").LastRun(ctx)
	if err != nil || outcome.First != last.Event.First || outcome.Tick != last.Tick {
		c.t.Errorf("the outcome has ticks %d to %d; the journal, %d to %d; %v", outcome.First, outcome.Tick, last.Event.First, last.Tick, err)
	}
}

// describeTried describes calls with their attempts, where there were several.
func describeTried(records []journal.Record) (lines []string) {
	for i, line := range describeAll(records) {
		if n := records[i].Attempts; n > 1 {
			line += fmt.Sprintf(" × %d", n)
		}
		lines = append(lines, line)
	}
	return lines
}

// describeAnswers says of each latent call that has an answer, or had one, where that came from.
func describeAnswers(records []journal.Record) (lines []string) {
	for _, r := range records {
		line := r.Call
		if r.Answered != nil {
			line += " " + r.Answered.How
		}
		if r.SetAside != nil {
			line += " ~ " + r.SetAside.String() + ": " + string(r.SetAside.Value)
		}
		if line != r.Call {
			lines = append(lines, line)
		}
	}
	return lines
}

func describeAll(records []journal.Record) (lines []string) {
	for _, r := range records {
		lines = append(lines, describeRecord(r))
	}
	return lines
}

// describeHandled describes the failures that went to the last alternatives of calls.
func describeHandled(records []journal.Record) (lines []string) {
	for _, r := range records {
		if r.Handled != nil {
			lines = append(lines, r.Call+describeError(r.Handled))
		}
	}
	return lines
}

func describeRecord(r journal.Record) string {
	line := fmt.Sprintf("%s %s %s", r.Call, r.Tool, r.Status)
	for _, path := range r.Writes {
		line += " → " + path
	}
	if r.Error != nil {
		line += " !" + describeError(r.Error)
	}
	if r.Reason != "" {
		line += " … " + r.Reason
	}
	if due, ok := r.WaitsUntil(); ok {
		line += " … until " + store.FormatDate(due)
	}
	if len(r.WaitingOn) > 0 {
		line += " … " + strings.Join(r.WaitingOn, " ")
	}
	return line
}

func describeError(fields plan.Values) (text string) {
	if code, ok := fields["code"]; ok {
		text = fmt.Sprintf(" %s:", code)
	}
	return text + " " + strings.ReplaceAll(fmt.Sprint(fields["message"]), "\n", " / ")
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
		name := "c"
		if before, after, ok := strings.Cut(ref, ":†"); ok {
			name, ref = before, "†"+after
		}
		resolved, err := store.Resolver{Log: c.log, Context: name, At: at}.Resolve(ctx, store.MustParsePath(ref), instance)
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

// print gives the messages of a context, one a line, without what any run has
// differently.
func (c *conformanceCase) print(ctx context.Context, name string) (lines []string) {
	for m, err := range c.log.Messages(ctx, store.Filter{Context: name}) {
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
	return lines
}

// canonical writes each line that is JSON, or ends in it after a context, as
// print does.
func (c *conformanceCase) canonical(lines string) string {
	var all []string
	for _, line := range strings.Split(lines, "\n") {
		at := strings.IndexByte(line, '{')
		if at < 0 || at > 0 && !strings.HasSuffix(line[:at], ": ") {
			all = append(all, line)
			continue
		}
		all = append(all, line[:at]+string(store.EncodeJSON(c.json(line[at:]))))
	}
	return strings.Join(all, "\n")
}

func (c *conformanceCase) compare(what, got, want string) {
	c.t.Helper()
	if got != want {
		c.t.Errorf("%s (-want +got):\n%s", what, cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")))
	}
}
