package model

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"obelus/engine"
	"obelus/engine/expr"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/engine/replay"
	"obelus/engine/schema"
	"obelus/host/model/modeltest"
	"obelus/store"
	"obelus/store/memory"
)

var answeredPlans = flag.Int("answered-plans", 150, "how many random plans with answers are checked by their logs")

// answerTools are the tools of plans with answers: one that writes, one whose result a model gives,
// and one that thinks.
var answerTools = map[string]any{
	"write": map[string]any{"properties": map[string]any{"value": map[string]any{}, "_outputMethod": map[string]any{"enum": []any{"merge"}}}, "required": []any{"value"}},
	"judge": map[string]any{
		"properties": map[string]any{
			"of": map[string]any{}, "_if": map[string]any{"type": "string"}, "_after": map[string]any{"type": "string"},
			"_scopes": map[string]any{"type": "array", "items": map[string]any{"enum": []any{"state", "state.a", "state.new"}}},
		},
		"required": []any{"of"}, "_output": map[string]any{"type": "string"},
	},
	"think": map[string]any{"properties": map[string]any{"of": map[string]any{}}, "_output": map[string]any{"type": "string"}},
}

// answering is an asker that plans at random, within the schema that it is sent, and answers so too.
type answering struct {
	t      testing.TB
	random *rand.Rand
	plans  int
}

func (a *answering) Ask(_ context.Context, r *Request, meter *plan.Meter) (*Answer, error) {
	meter.Spend(plan.Usage{Requests: 1, Model: r.Model, Request: r.Hash(), Input: 1, Output: 1})
	var of any
	if err := json.Unmarshal([]byte(jsonText(r.Schema)), &of); err != nil {
		return nil, err
	}
	var value any
	if r.Purpose == purposeAnswer {
		seed, err := strconv.ParseUint(r.Hash()[:16], 16, 64) // calls are answered side by side
		if err != nil {
			return nil, err
		}
		value = modeltest.Generate(of, seed)
	} else {
		value = a.plan(r)
	}
	compiled, err := schema.New(of)
	if err != nil {
		return nil, err
	}
	if err := compiled.Validate(value, "answer"); err != nil {
		a.t.Errorf("the schema does not permit %s: %v", jsonText(value), err)
	}
	return &Answer{Value: store.Some(value), Text: jsonText(value)}, nil
}

// plan gives some calls, and at the third question none.
func (a *answering) plan(r *Request) any {
	if a.plans++; a.plans > 2 {
		return map[string]any{"calls": []any{}, "output": "done"}
	}
	pick := func(texts ...string) string { return texts[a.random.IntN(len(texts))] }
	chance := func(n int) bool { return a.random.IntN(n) == 0 }
	reference := func() string {
		return pick("†state.a", "†state.b", "†state.c", "†state.new", "†state.long", "†state", "†input.late", "†state.a || †state.new", "†state.new || †state.b", "†(†state.a + 1)", "†item")
	}
	instances := strings.Contains(jsonText(r.Schema), `"_instance"`)
	var calls []any
	for i := range 1 + a.random.IntN(4) {
		call := map[string]any{"_tool": pick("write", "judge", "judge", "judge", "think")}
		calls = append(calls, call)
		if call["_tool"] == "write" {
			call["value"] = any(a.random.IntN(3))
			if chance(4) {
				call["value"] = map[string]any{"deep": 1}
			}
			call["_outputPath"] = pick("†state.a", "†state.b", "†state.new", "†state.c.deep", "†state.c")
			if chance(4) {
				call["_outputMethod"] = "merge"
			}
			if instances && chance(3) {
				call["_instance"] = "①"
			}
			continue
		}
		call["of"] = reference()
		if chance(8) {
			call["of"] = "a text"
		}
		if !chance(4) {
			call["_output"] = fmt.Sprintf("given %d.%d", a.plans, i)
		}
		if call["_tool"] == "think" {
			continue
		}
		call["_outputPath"] = fmt.Sprintf("†out.p%d.c%d", a.plans, i)
		if chance(6) {
			call["_if"] = pick("†state.b", "†state.new", "†input.late", "†state.a || †state.new")
		}
		if chance(6) {
			call["_scopes"] = []any{pick("state", "state.a", "state.new")}
		}
		if chance(10) {
			call["_after"] = pick("†state.a", "†state.new")
		}
		if instances && chance(4) {
			call["_instance"] = pick("*", "①")
		}
	}
	return map[string]any{"calls": calls, "output": nil}
}

// TestAnswers_NameWhatTheyHaveSeen has random plans bring answers to their latent calls: each answer in
// the log names a question whose prompt held, whole, what the call read.
func TestAnswers_NameWhatTheyHaveSeen(t *testing.T) {
	seen := map[string]int{}
	for seed := range *answeredPlans {
		checkAnswers(t, seed, seen)
		if t.Failed() {
			t.Fatalf("run %d", seed)
		}
	}
	t.Logf("%v", seen)
	for _, kind := range []string{"counts", "missing", "newer", "cut", "every", "after", "corrected", "asked"} {
		if seen[kind] < *answeredPlans/50 {
			t.Errorf("%d answers of the kind %q in %d runs", seen[kind], kind, *answeredPlans)
		}
	}
}

// checkAnswers runs one request whose plans bring answers, with a person who corrects calls and appends
// input, forks it and corrects a call there, and checks both logs.
func checkAnswers(t *testing.T, seed int, seen map[string]int) {
	ctx, random := t.Context(), rand.New(rand.NewPCG(uint64(seed), 53))
	registry := plan.NewRegistry()
	for name, definition := range answerTools {
		tool, err := plan.NewTool(name, definition)
		if err != nil {
			t.Fatal(err)
		}
		registry.Tools[name] = tool
	}
	registry.Activities["write"] = &plan.Registered{Name: "write", Activity: plan.ActivityFunc(func(_ context.Context, in plan.Invocation) (plan.Result, error) {
		return plan.Result{Value: in.Call["value"]}, nil
	})}
	registry.Model = New(Config{Name: "m", NoReasons: true, Window: []int{0, 3600}[random.IntN(2)], Params: Params{MaxTokens: 100}, Batch: 1 + random.IntN(3)}, Keep(&answering{t: t, random: random}, func(text string) string { return text }))
	r := &engine.Runner{Log: memory.New(), Registry: registry, Ticks: 4, Parallel: 4}
	state := map[string]any{"a": 1, "b": "x", "long": strings.Repeat("long ", 1500)}
	// What is not there yet is named by a schema: else a reference to it would be one to nothing.
	toCome := func(names ...string) map[string]any {
		properties := map[string]any{}
		for _, name := range names {
			properties[name] = map[string]any{}
		}
		return map[string]any{"properties": properties}
	}
	request := &plan.Request{Planner: &plan.Planning{}, Context: []store.Message{
		{Type: store.TypeData, Kind: "state", Data: store.Some(state), Schema: toCome("new", "c")},
		{Type: store.TypeData, Kind: "input", Schema: toCome("late")},
		{Type: store.TypeData, Kind: "item", Schema: map[string]any{}},
	}}
	if random.IntN(3) == 0 {
		for _, instance := range []string{"①", "②"} {
			request.Context = append(request.Context, store.Message{Type: store.TypeData, Kind: "item", Instance: instance, Data: store.Some(instance)})
		}
	}
	start := engine.Start{Context: "c", Request: request}
	if random.IntN(4) == 0 {
		start.Approve = plan.Policy{Tools: []string{"judge"}}
	}
	outcome, err := r.Run(ctx, start)
	for halts := 0; err == nil && outcome.Status == journal.RunWaiting && halts < 4; halts++ {
		for i := range outcome.Calls {
			if held := &outcome.Calls[i]; held.Status == journal.Held {
				d := journal.Decision{Context: "c", Call: held.Call}
				if random.IntN(2) == 0 {
					d.Arguments = map[string]any{"of": "corrected"}
				}
				if err := r.Decide(ctx, d); err != nil {
					t.Fatal(err)
				}
			}
		}
		late := []store.Message{{Type: store.TypeData, Kind: "input", Data: store.Some(map[string]any{"late": halts})}}
		if halts > 0 {
			late = append(late, store.Message{Type: store.TypeData, Kind: "state", Data: store.Some(map[string]any{"a": 7, "c": map[string]any{}, "new": 8})})
			late = append(late, store.Message{Type: store.TypeData, Kind: "item", Data: store.Some(9)})
		}
		if _, err = engine.Append(ctx, r.Log, "c", late); err == nil {
			outcome, err = r.Resume(ctx, engine.Resume{Context: "c", Request: request})
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	checkLog(t, r.Log, "c", seen)
	if outcome.Status == journal.RunWaiting {
		return
	}
	if replayed, err := replay.Run(ctx, r, "c", nil); err != nil || len(replayed.Differences) > 0 {
		t.Errorf("a replay gives %+v, %v", replayed, err)
	}
	rerunCorrected(t, r, request)
	checkLog(t, r.Log, "fork", seen)
}

// rerunCorrected runs the first judgement of the last tick with calls again in a fork, corrected.
func rerunCorrected(t *testing.T, r *engine.Runner, request *plan.Request) {
	ctx := t.Context()
	records, err := journal.In(r.Log, "c").Records(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, record := range records {
		if record.Tool != "judge" && record.Tool != "write" || !record.Status.Settled() {
			continue
		}
		set := map[string]any{"of": "again"}
		if record.Tool == "write" {
			set = map[string]any{"value": 5}
		}
		var ended int64 // when the tick had ended
		for entry, err := range r.Log.Journal(ctx, store.JournalFilter{Context: "c", Event: journal.EventRun}) {
			if err != nil {
				t.Fatal(err)
			}
			if end, _, err := journal.ReadRunEvent(entry); err == nil && end.Tick == record.Tick {
				ended = entry.Seq
			}
		}
		if _, err := journal.Fork(ctx, r.Log, "c", ended, "fork"); err != nil {
			t.Fatal(err)
		}
		_, err := r.Resume(ctx, engine.Resume{Context: "fork", Request: request, From: record.Call, Set: set})
		if refused := (*journal.NoSuchCallError)(nil); err != nil && !errors.As(err, &refused) {
			t.Fatal(err)
		}
		return
	}
	if _, err := journal.Fork(ctx, r.Log, "c", 0, "fork"); err != nil {
		t.Fatal(err)
	}
}

// checkLog holds of each answer in a log that the question that it names held, whole, what its call
// read. It reads the log and the prompts that are kept there, alone.
func checkLog(t *testing.T, log store.Log, name string, seen map[string]int) {
	ctx, in := t.Context(), journal.In(log, name)
	prompts := map[string]*Request{}
	for entry, err := range log.Journal(ctx, store.JournalFilter{Context: name}) {
		if err != nil {
			t.Fatal(err)
		}
		kept, err := log.Exchanges(ctx, entry.N)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range kept {
			if prompts[x.Hash], err = ParseRequest([]byte(x.Request)); err != nil {
				t.Fatal(err)
			}
		}
	}
	records, err := in.Records(ctx)
	if err != nil {
		t.Fatal(err)
	}
	plans, err := in.Plans(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i := range records {
		r := &records[i]
		noteKinds(r, seen)
		if r.Answered == nil {
			continue
		}
		prompt := prompts[r.Answered.Hash]
		if prompt == nil {
			t.Errorf("%s, call %s: its answer names the question %q, which the log does not keep", name, r.Call, r.Answered.Hash)
			continue
		}
		var issued map[string]any
		for _, p := range plans {
			if p.Tick == r.Tick {
				calls, err := in.PlanMessage(ctx, p.Seq)
				if err != nil {
					t.Fatal(err)
				}
				issued = calls[r.Position-1].(map[string]any)
			}
		}
		// A call that runs again reads what it did then, but for the calls that have run again too.
		var hidden []int64
		for m, err := range log.Messages(ctx, store.Filter{Context: name}) {
			if err != nil {
				t.Fatal(err)
			}
			again := int64(0) // where its call has run again
			for _, other := range records {
				if other.Call == m.Call {
					again = other.SupersededUpTo
				}
			}
			isAfter := r.Before > 0 && m.Seq > r.Before && again == 0
			if superseded := m.Seq <= again; isAfter || superseded {
				hidden = append(hidden, m.Seq)
			}
		}
		checkShown(t, log, name, r, issued, prompt, func(seq int64) bool { return slices.Contains(hidden, seq) })
	}
}

// noteKinds counts the kinds of answers.
func noteKinds(r *journal.Record, seen map[string]int) {
	note := func(kind string, is bool) {
		if is {
			seen[kind]++
		}
	}
	note("counts", r.Answered != nil && r.Answered.How == journal.WithPlan)
	note("asked", r.Answered != nil && r.Answered.How == journal.WhenAsked)
	if aside := r.SetAside; aside != nil {
		note("missing", len(aside.Missing) > 0)
		note("newer", len(aside.Newer) > 0)
		note("cut", len(aside.Cut) > 0)
		note("every", strings.Contains(aside.Never, "instance"))
		note("after", strings.Contains(aside.Never, "_after"))
		note("corrected", r.Hold != nil && len(r.Hold.Corrected) > 0)
	}
}

// checkShown holds that a prompt showed what a call read, whole, and showed nothing where something was
// missing.
func checkShown(t *testing.T, log store.Log, name string, r *journal.Record, issued map[string]any, prompt *Request, hides func(int64) bool) {
	corrected := r.Hold != nil && len(r.Hold.Corrected) > 0
	if r.Answered.How == journal.WithPlan && corrected {
		t.Errorf("%s, call %s: its arguments were corrected, and its answer came with the plan", name, r.Call)
	}
	arguments := map[string]any{}
	read := func(path store.Path) (value any, exists bool) {
		seq, exists := r.Reads[path.String()]
		if exists {
			resolved, err := store.Resolver{Log: store.Hiding(log, hides), Context: name, At: r.At}.Resolve(t.Context(), path, r.Instance)
			if err != nil || !resolved.Exists {
				t.Errorf("%s, call %s read %s, which was missing at %d: %v", name, r.Call, path, seq, err)
			}
			value = resolved.Value
		}
		return value, exists
	}
	compare := func(path store.Path, value any, exists bool) {
		shown, was := shownAt(prompt, path, r.Instance)
		if was != exists || exists && !reflect.DeepEqual(plain(shown), plain(value)) {
			t.Errorf("%s, call %s, answered %s, read %s: %v %s, and the prompt has %v %.200s", name, r.Call, r.Answered.How, path, exists, store.EncodeJSON(value), was, jsonText(shown))
		}
	}
	lookup := func(path store.Path) (value any, exists, open bool, err error) {
		value, exists = read(path)
		if r.Answered.How == journal.WithPlan {
			compare(path, value, exists)
		}
		return value, exists, false, nil
	}
	for argument, v := range issued {
		if strings.HasPrefix(argument, "_") && argument != "_if" {
			continue
		}
		template, err := expr.ParseTemplate(v, argument)
		if err == nil {
			arguments[argument], _, err = template.Eval(t.Context(), lookup)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	delete(arguments, "_if")
	if corrected {
		arguments = r.Hold.Arguments
	}
	if r.Answered.How == journal.WhenAsked && !strings.Contains(strings.Join(prompt.Blocks, "\n"), "## Call "+r.Call+" "+r.Tool) {
		t.Errorf("%s: the question does not ask about call %s", name, r.Call)
	}
	if r.Answered.How == journal.WhenAsked && !strings.Contains(strings.Join(prompt.Blocks, "\n"), jsonText(arguments)) {
		t.Errorf("%s: the question about call %s does not have %s:\n%s", name, r.Call, jsonText(arguments), strings.Join(prompt.Blocks, "\n"))
	}
	scopes, _ := issued["_scopes"].([]any)
	for _, scope := range scopes {
		path, err := store.ParseTyped(scope.(string))
		if err != nil {
			t.Fatal(err)
		}
		value, exists := read(path)
		compare(path, value, exists)
	}
}

// plain returns a value as JSON has it.
func plain(v any) (made any) {
	_ = json.Unmarshal(store.EncodeJSON(v), &made)
	return made
}

// shownAt returns the value that the data of a prompt has at a path, for an instance.
func shownAt(prompt *Request, path store.Path, instance string) (v any, exists bool) {
	for _, heading := range []string{strings.TrimSpace("## Data: " + store.KindPath(path.Kind()).String() + " " + instance), "## Data: " + store.KindPath(path.Kind()).String()} {
		for _, block := range prompt.Blocks {
			lines := strings.Split(block, "\n")
			if lines[0] != heading {
				continue
			}
			for _, line := range lines[1:] {
				if value, err := store.DecodeJSON([]byte(line)); err == nil {
					return store.Dig(value, path)
				}
			}
			return nil, false
		}
	}
	return nil, false
}
