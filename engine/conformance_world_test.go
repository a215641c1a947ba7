package engine_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// What stands beside the engine in a conformance case: requests and their
// planners, delegates, the model, and those who append and decide.

// readRequest reads a list of calls, or a request with them.
func (c *conformanceCase) readRequest(v any) *plan.Request {
	object, ok := v.(map[string]any)
	if !ok {
		return &plan.Request{Calls: c.calls(v)}
	}
	request := &plan.Request{}
	for key, v := range object {
		var err error
		switch key {
		case "context":
			request.Context, err = store.ParseMessages(store.EncodeJSON(v))
		case "calls":
			request.Calls = c.calls(v)
		case "solutions":
			request.Planner = c.planner(v)
		case "planned":
			planning := &plan.Planning{}
			err = json.Unmarshal(store.EncodeJSON(v), planning)
			request.Planner = planning
		case "output":
			request.Output = store.Some(v)
		case "to":
			request.Choice = &plan.Choice{To: v.(string)}
		case "schema":
			request.Schema = v
		case "bridge":
			request.Bridge = v.(bool)
		case "mode":
			request.Mode = v.(string)
		case "scopes":
			request.Scopes, err = plan.ParseScopes(v)
		default:
			err = errors.New("unknown field")
		}
		if err != nil {
			c.t.Fatalf("%q of the request: %v", key, err)
		}
	}
	return request
}

func (c *conformanceCase) calls(v any) []plan.Source {
	list, ok := v.([]any)
	if !ok {
		c.t.Fatalf("expected a list of calls, found %s", store.EncodeJSON(v))
	}
	calls := make([]plan.Source, len(list))
	for i, call := range list {
		calls[i].Call = call
	}
	return calls
}

// planner answers with one solution after another.
func (c *conformanceCase) planner(v any) plan.Planner {
	solutions, n := v.([]any), 0
	return plan.PlannerFunc(func(_ context.Context, ask plan.Ask) (*plan.Solution, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		line := string(store.EncodeJSON(ask.Kinds))
		if ask.Context != "c" {
			line = ask.Context + ": " + line
		}
		c.asked = append(c.asked, line)
		if n++; n > len(solutions) {
			return &plan.Solution{}, nil
		}
		solution := solutions[n-1].(map[string]any)
		if text, ok := solution["error"]; ok {
			return nil, errors.New(text.(string))
		}
		answer := &plan.Solution{Output: solution["output"]}
		if to, ok := solution["to"].(string); ok {
			answer.Choice = &plan.Choice{To: to}
		}
		if calls, ok := solution["calls"]; ok {
			answer.Calls = c.calls(calls)
		}
		return answer, nil
	})
}

func (c *conformanceCase) addDelegates() {
	text, ok := c.files["delegates.json"]
	if !ok {
		return
	}
	files := map[string]*plan.Delegate{}
	for name, v := range c.json(text).(map[string]any) {
		d := &plan.Delegate{Request: c.readRequest(v)}
		if strings.HasSuffix(name, ".json") {
			d.Request.Name = name
			files[name] = d
			continue
		}
		c.registry.Delegates[name] = d
	}
	c.registry.File = func(name string) (*plan.Delegate, error) {
		if d, ok := files[name]; ok {
			return d, nil
		}
		return nil, fmt.Errorf("%s: no such file", name)
	}
}

// question is what the model was asked about a call.
type question struct {
	key   []string // context, tick and position
	line  string
	shown string
}

// caseModel is the model of a case: it answers by tool, and plans by the file of proposals.
type caseModel struct {
	c         *conformanceCase
	answers   map[string]any
	proposals []any
	asked     int
}

func (c *conformanceCase) addModel() {
	text, answers := c.files["model.json"]
	plans, proposes := c.files["proposals.json"]
	if !answers && !proposes {
		return
	}
	m := &caseModel{c: c}
	if answers {
		m.answers = c.json(text).(map[string]any)
	}
	c.registry.Model = plan.ModelFunc(m.Answer)
	if proposes {
		m.proposals = c.json(plans).([]any)
		c.registry.Model = m
	}
	if _, ok := c.files["groups"]; ok {
		c.registry.Model = &groupingModel{m}
	}
	c.registry.Models = map[string]plan.Model{"other": plan.ModelFunc(func(context.Context, plan.Question) (any, error) {
		return "the other model", nil
	})}
}

func (m *caseModel) Answer(_ context.Context, q plan.Question) (any, error) {
	line := store.EncodeJSON(map[string]any{"call": q.Call, "messages": listOf(q.Messages), "thoughts": listOf(q.Thoughts), "schema": q.Schema})
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	key := strings.FieldsFunc(q.Key, func(r rune) bool { return r == '/' || r == '.' })
	m.c.questions = append(m.c.questions, question{key, string(line), q.ID + printShown(q.Kinds, q.Prose)})
	answer, ok := m.answers[q.Call["_tool"].(string)]
	if !ok {
		m.c.t.Errorf("the model has no answer to %s", line)
	}
	object, _ := answer.(map[string]any)
	if object["fail"] != nil {
		return nil, plan.NewFailure("%s", object["fail"])
	}
	q.Meter.Spend(plan.Usage{Requests: 1, Input: 10, Output: 1})
	if !plan.IsOutcome(answer) {
		return answer, nil
	}
	result, failure, err := plan.ReadOutcome(q.Alternatives, answer)
	if failure != nil {
		return nil, failure
	}
	return result, err
}

func (m *caseModel) Propose(_ context.Context, p plan.Proposal) (*plan.Solution, error) {
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	var tools, errs, last []string
	for _, o := range p.Tools {
		name := o.Name
		if o.Latent {
			name += " (latent)"
		}
		tools = append(tools, name)
	}
	for _, e := range p.Errors {
		errs = append(errs, string(store.EncodeJSON(e)))
	}
	for _, l := range p.SoFar {
		last = append(last, strings.Join(strings.Fields(l.Call+" "+l.Tool+" "+l.Status+" "+strings.Join(l.Wrote, " ")+" "+l.Reason+" "+l.SetAside), " "))
	}
	line := p.Mode + printShown(p.Kinds, p.Prose) + " | " + strings.Join(tools, ", ")
	if p.Plan != nil {
		line += " | plan " + string(store.EncodeJSON(p.Plan))
	}
	for _, more := range [][]string{last, errs} {
		if len(more) > 0 {
			line += " | " + strings.Join(more, "; ")
		}
	}
	if p.Refused != nil {
		line += " | refused " + string(store.EncodeJSON(p.Refused))
	}
	for _, warning := range p.Warnings {
		line += " | warning " + warning
	}
	if p.Repeats != "" {
		line += " | repeats " + p.Repeats
	}
	m.c.proposed = append(m.c.proposed, line)
	p.Meter.Spend(plan.Usage{Requests: 1, Input: 100, Output: 20})
	if m.asked++; m.asked > len(m.proposals) {
		return &plan.Solution{}, nil
	}
	solution := m.proposals[m.asked-1].(map[string]any)
	if text, ok := solution["error"]; ok {
		return nil, errors.New(text.(string))
	}
	answer := &plan.Solution{Output: solution["output"]}
	if calls, ok := solution["calls"]; ok {
		answer.Calls = m.c.calls(calls)
	}
	cut, _ := solution["cut"].([]any)
	for _, path := range cut {
		answer.Cut = append(answer.Cut, path.(string))
	}
	return answer, nil
}

// printShown prints what a model is shown: each kind with its value, the scoped ones marked.
func printShown(kinds []plan.Shown, prose []plan.Prose) (line string) {
	for _, p := range prose {
		line += " " + map[bool]string{true: "system", false: "text"}[p.System] + ":" + p.Text
	}
	for _, k := range kinds {
		line += " " + store.KindPath(k.Kind).String()
		if k.Instance != "" {
			line += "@" + k.Instance
		}
		if k.Scoped {
			line += "*"
		}
		if k.Value.Set {
			line += "=" + string(store.EncodeJSON(k.Value.Value))
		}
		if k.Schema != nil {
			line += "~" + string(store.EncodeJSON(k.Schema))
		}
	}
	return line
}

// groupingModel answers several calls by one request.
type groupingModel struct{ *caseModel }

func (*groupingModel) Batch() (int, bool) { return 3, false }

func (m *groupingModel) AnswerAll(ctx context.Context, questions []plan.Question) []plan.Reply {
	var ids []string
	replies := make([]plan.Reply, len(questions))
	for i, q := range questions {
		ids = append(ids, q.ID)
		v, err := m.Answer(ctx, q)
		result, ok := v.(plan.Result)
		if !ok {
			result.Value = v
		}
		replies[i] = plan.Reply{Result: result, Err: err}
	}
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	m.c.groups = append(m.c.groups, strings.Join(ids, " "))
	return replies
}

func listOf(objects []map[string]any) []any {
	list := make([]any, len(objects))
	for i, object := range objects {
		list[i] = object
	}
	return list
}

// byNumber orders parts of names, numbers by what they count.
func byNumber(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

// appendMore appends what comes while the run waits.
func (c *conformanceCase) appendMore(ctx context.Context, status journal.RunStatus) (more bool) {
	for name := range c.files {
		to := appendsTo(name)
		if to == "" {
			continue
		}
		if status != journal.RunWaiting {
			c.t.Fatalf("the run is %s before %s, not waiting", status, name)
		}
		messages, err := c.messages(name)
		if err != nil {
			c.t.Fatal(err)
		}
		if _, err := c.log.Head(ctx, to); err != nil {
			c.t.Fatal(err)
		}
		if _, err := engine.Append(ctx, c.log, to, messages); err != nil {
			c.t.Fatal(err)
		}
		more = true
	}
	return more
}

// appendsTo tells to which context the messages of a file are appended.
func appendsTo(file string) string {
	if file == "append.json" {
		return "c"
	}
	name, ok := strings.CutPrefix(file, "append.")
	if name, isJSON := strings.CutSuffix(name, ".json"); ok && isJSON {
		return name
	}
	return ""
}

func (c *conformanceCase) resume(ctx context.Context, request *plan.Request) *journal.Outcome {
	outcome, err := c.runner.Resume(ctx, engine.Resume{Context: "c", Request: request})
	if err != nil {
		c.t.Fatal(err)
	}
	return outcome
}

// decide does what the case's person decides, group by group, and resumes the
// run after each. A line is one of
//
//	1.2 approve
//	1.2 approve {"amount": 3}     all arguments, as corrected
//	1.2 reject the reason
//	1.2 retry                     resumes the context with this decision
//	1.2 skip
//	release                       the plan; or "release 1.2.amount=5 without 1.3"
//	reject the reason             the plan
//
// and may begin with a context: "c.1.1: 1.2 approve".
func (c *conformanceCase) decide(ctx context.Context, request *plan.Request, outcome *journal.Outcome) *journal.Outcome {
	c.checkHeld(ctx)
	var undecided []string
	if text, ok := c.files["decisions"]; ok {
		for _, group := range strings.Split(text, "\n\n") {
			for _, line := range strings.Split(group, "\n") {
				if err := c.decideOne(ctx, line); err != nil {
					undecided = append(undecided, strings.ReplaceAll(err.Error(), "\n", " / "))
				}
			}
			outcome = c.resume(ctx, request)
		}
	}
	c.compare("undecided", strings.Join(undecided, "\n"), c.files["undecided"])
	return outcome
}

// decidePlan decides about a plan: "reject REASON", or "release", with the corrections and the calls to
// drop: "release 1.2.amount=5 without 1.3".
func (c *conformanceCase) decidePlan(ctx context.Context, d journal.PlanDecision, rest string) error {
	if d.Reject {
		d.Reason, rest = rest, ""
	}
	set, without, _ := strings.Cut(rest, "without ")
	d.Without = strings.Fields(without)
	for _, one := range strings.Fields(set) {
		place, text, _ := strings.Cut(one, "=")
		if d.Set == nil {
			d.Set = map[string]any{}
		}
		d.Set[place] = c.json(text)
	}
	_, err := c.runner.DecidePlan(ctx, d)
	return err
}

func (c *conformanceCase) decideOne(ctx context.Context, line string) error {
	d := journal.Decision{Context: "c"}
	if name, rest, ok := strings.Cut(line, ": "); ok && !strings.Contains(name, " ") {
		d.Context, line = name, rest
	}
	if verb, rest, _ := strings.Cut(line, " "); verb == "release" || verb == "reject" {
		return c.decidePlan(ctx, journal.PlanDecision{Context: d.Context, Reject: verb == "reject"}, rest)
	}
	call, line, _ := strings.Cut(line, " ")
	verb, rest, _ := strings.Cut(line, " ")
	d.Call = call
	again := engine.Resume{Context: d.Context}
	switch verb {
	case "retry":
		again.Retry = []string{call}
	case "skip":
		again.Skip = []string{call}
	case "result":
		again.Result = map[string]any{call: c.json(rest)}
	}
	switch {
	case len(again.Retry)+len(again.Skip)+len(again.Result) > 0:
		_, err := c.runner.Resume(ctx, again)
		return err
	case verb == "reject" && rest != "":
		d.Reject, d.Reason = true, rest
	case verb == "approve" && rest != "":
		d.Arguments = c.json(rest).(map[string]any)
	case verb != "approve":
		c.t.Fatalf("no decision: %q", line)
	}
	return c.runner.Decide(ctx, d)
}

func (c *conformanceCase) checkHeld(ctx context.Context) {
	want, ok := c.files["held"]
	if !ok {
		return
	}
	holds, err := journal.In(c.log, "c").Holds(ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	var lines []string
	for _, r := range holds {
		line := fmt.Sprintf("%s %s %s %s", r.Context, r.Call, r.Tool, store.EncodeJSON(map[string]any(r.Hold.Arguments)))
		lines = append(lines, strings.Join(append([]string{line}, r.Hold.Scopes...), " "))
	}
	c.compare("held", strings.Join(lines, "\n"), want)
}

// checkOthers compares what planners and the model were asked, and what became
// of delegates.
func (c *conformanceCase) checkOthers(ctx context.Context) {
	if want, ok := c.files["asked"]; ok {
		c.compare("asked", strings.Join(c.asked, "\n"), c.canonical(want))
	}
	slices.SortFunc(c.questions, func(a, b question) int { return slices.CompareFunc(a.key, b.key, byNumber) })
	if want, ok := c.files["questions"]; ok {
		var lines []string
		for _, q := range c.questions {
			lines = append(lines, q.line)
		}
		c.compare("questions", strings.Join(lines, "\n"), c.canonical(want))
	}
	if want, ok := c.files["shown"]; ok {
		var lines []string
		for _, q := range c.questions {
			lines = append(lines, q.shown)
		}
		c.compare("shown", strings.Join(lines, "\n"), want)
	}
	if want, ok := c.files["groups"]; ok {
		slices.Sort(c.groups)
		c.compare("groups", strings.Join(c.groups, "\n"), want)
	}
	if want, ok := c.files["proposed"]; ok {
		c.compare("proposed", strings.Join(c.proposed, "\n"), want)
	}
	if want, ok := c.files["children"]; ok {
		c.compare("children", strings.Join(c.printChildren(ctx), "\n"), c.canonical(want))
	}
}

func (c *conformanceCase) printChildren(ctx context.Context) (lines []string) {
	for _, name := range c.contexts(ctx)[1:] {
		last, err := journal.In(c.log, name).LastRun(ctx)
		if err != nil {
			c.t.Fatal(err)
		}
		c.checkLinked(ctx, name)
		checkStanding(c.t, c.log, name)
		lines = append(lines, fmt.Sprintf("%s %s", name, last.Status))
		for _, message := range c.print(ctx, name) {
			if strings.HasSuffix(message, `"type":"plan"}`) {
				break
			}
			lines = append(lines, message)
		}
	}
	return lines
}

// checkLinked holds that a delegate's context and its call name each other.
func (c *conformanceCase) checkLinked(ctx context.Context, name string) {
	for info, err := range c.log.Contexts(ctx, store.ContextFilter{Prefix: name}) {
		if err != nil {
			c.t.Fatal(err)
		}
		if info.Context != name {
			continue
		}
		records, err := journal.In(c.log, info.Origin.Parent).Records(ctx)
		linked := slices.ContainsFunc(records, func(r journal.Record) bool { return r.Call == info.Origin.Call && r.Child == name })
		if err != nil || !linked {
			c.t.Errorf("context %s is not linked to its call: %+v, %v", name, info.Origin, err)
		}
	}
}

// contexts lists the case's context first, and then those of delegates in the
// order of their names.
func (c *conformanceCase) contexts(ctx context.Context) []string {
	names := []string{}
	for info, err := range c.log.Contexts(ctx, store.ContextFilter{}) {
		if err != nil {
			c.t.Fatal(err)
		}
		if info.Context != "c" {
			names = append(names, info.Context)
		}
	}
	slices.Sort(names)
	return append([]string{"c"}, names...)
}
