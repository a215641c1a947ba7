package replay_test

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/engine/replay"
	"obelus/store"
	"obelus/store/memory"
)

// tampered is a log that somebody has edited: it is read otherwise than it was written.
type tampered struct {
	store.Log
	message func(m *store.Message)
	entries func(all []store.Entry) []store.Entry
}

func (l *tampered) Messages(ctx context.Context, f store.Filter) iter.Seq2[*store.Message, error] {
	return func(yield func(*store.Message, error) bool) {
		for m, err := range l.Log.Messages(ctx, f) {
			if err == nil && l.message != nil {
				edited := *m
				l.message(&edited)
				m = &edited
			}
			if !yield(m, err) {
				return
			}
		}
	}
}

func (l *tampered) Journal(ctx context.Context, f store.JournalFilter) iter.Seq2[store.Entry, error] {
	if l.entries == nil {
		return l.Log.Journal(ctx, f)
	}
	return func(yield func(store.Entry, error) bool) {
		var all []store.Entry
		for entry, err := range l.Log.Journal(ctx, f) {
			if err != nil {
				yield(entry, err)
				return
			}
			all = append(all, entry)
		}
		for _, entry := range l.entries(all) {
			if !yield(entry, nil) {
				return
			}
		}
	}
}

// ofAll is a run with calls of each kind whose record can be compared: some read, have a condition,
// are held, handle a failure, bring their result, or have a delegate.
func ofAll(t *testing.T) (*engine.Runner, *plan.Request) {
	t.Helper()
	r := newRunner(memory.New(), map[string]activity{"value": value, "fail": fail, "other": value})
	made, err := plan.NewTool("constant", map[string]any{"properties": map[string]any{"_scopes": map[string]any{}}})
	if err != nil {
		t.Fatal(err)
	}
	r.Registry.Tools["constant"] = made
	r.Registry.Delegates["twice"] = &plan.Delegate{Request: readPlan(t, `{"calls": [
		{"_tool": "value", "value": ["†input.value", "†input.value"], "_outputPath": "†a"}], "output": "†a"}`)}
	s := start(t, `{"calls": [
		{"_tool": "value", "value": 1, "_outputPath": "†state.a"},
		{"_tool": "value", "value": "†state.a", "_if": "†state.a == 1", "_outputPath": "†state.b || †state.c"},
		{"_tool": "constant", "_output": 5, "_outputPath": "†state.d"},
		{"_tool": "hand", "_delegate": "twice", "value": "†state.b", "_outputPath": "†state.e"},
		{"_tool": "fail", "_outputPath": "†state.f || †state.g"},
		{"_tool": "value", "value": "†state.f", "_outputPath": "†state.h"},
		{"_tool": "other", "value": "†state.d", "_outputPath": "†list.all", "_outputMethod": "push"},
		{"_tool": "constant", "thought": "†state.d"},
		{"_tool": "value", "value": 1, "_if": "†state.a == 2", "_outputPath": "†state.i"}], "output": "†state || †list"}`)
	s.Approve = plan.Policy{Tools: []string{"other"}}
	outcome, err := r.Run(t.Context(), s)
	if err != nil || outcome.Status != journal.RunWaiting {
		t.Fatal(outcome, err)
	}
	if err := r.Decide(t.Context(), journal.Decision{Context: "c", Call: "1.7"}); err != nil {
		t.Fatal(err)
	}
	outcome, err = r.Resume(t.Context(), engine.Resume{Context: "c"})
	expect(t, outcome, err, journal.RunDone,
		"1.1 value done → †state.a", "1.2 value done → †state.b", "1.3 constant done → †state.d", "1.4 hand done → †state.e",
		"1.5 fail done → †state.g", "1.6 value skipped", "1.7 other done → †list.all", "1.8 constant done", "1.9 value skipped")
	same(t, r, "c", nil)
	return r, s.Request
}

// TestRun_Tampered: where the log is not as a run would have written it, the place is named.
func TestRun_Tampered(t *testing.T) {
	r, _ := ofAll(t)
	wrote := func(call string, data any) func(*store.Message) {
		return func(m *store.Message) {
			if m.Call == call {
				m.Data.Value = data
			}
		}
	}
	replaced := func(call, event, old, new string) func([]store.Entry) []store.Entry {
		return func(all []store.Entry) []store.Entry {
			for i := range all {
				if e := &all[i]; e.Context == "c" && e.Call == call && (e.Event == event || event == "") {
					e.Data = strings.ReplaceAll(e.Data, old, new)
				}
			}
			return all
		}
	}
	for name, test := range map[string]struct {
		message func(*store.Message)
		entries func([]store.Entry) []store.Entry
		want    string // a difference: context, call and what
	}{
		"the value that a condition read":     {wrote("1.1", map[string]any{"a": 2}), nil, "1.2 _if"},
		"the value of the output":             {wrote("1.2", map[string]any{"b": 7}), nil, "c.1.4 †input"},
		"the value of a constant":             {wrote("1.3", map[string]any{"d": 6}), nil, "1.3 †state.d"},
		"the value of a delegate":             {wrote("1.4", map[string]any{"e": []any{"1"}}), nil, "1.4 †state.e"},
		"the value of a handled failure":      {wrote("1.5", map[string]any{"g": "none"}), nil, "output"},
		"a value that is not at its path":     {wrote("1.5", map[string]any{"x": 1}), nil, "output"},
		"a plan's condition":                  {func(m *store.Message) { editPlan(m, 1, "_if", "†state.a == 2") }, nil, "1.2 _if"},
		"a plan's tool":                       {func(m *store.Message) { editPlan(m, 0, "_tool", "other") }, nil, "1.1 _call"},
		"a plan's argument":                   {func(m *store.Message) { editPlan(m, 6, "value", "†state.a") }, nil, "1.7 _call"},
		"a plan's output path":                {func(m *store.Message) { editPlan(m, 0, "_outputPath", "†state.z") }, nil, "1.1 writes"},
		"the method of a message":             {func(m *store.Message) { m.Method = map[bool]store.Method{true: store.Set}[m.Call == "1.7"] }, nil, "1.7 _outputMethod"},
		"the call of a message":               {func(m *store.Message) { m.Call = strings.Replace(m.Call, "1.3", "1.1", 1) }, nil, "1.1 writes"},
		"a call that was done":                {nil, replaced("1.1", "done", `"status":"done"`, `"status":"failed"`), "1.1 writes"},
		"a call that was skipped":             {nil, replaced("1.6", "skipped", `"status":"skipped"`, `"status":"done"`), "1.6 status"},
		"a call whose condition did not hold": {nil, replaced("1.9", "skipped", `"holds":false`, `"holds":true`), "1.9 _if"},
		"a call that is said to be skipped":   {nil, replaced("1.2", "done", `"status":"done"`, `"status":"skipped"`), "1.2 status"},
		"a handled failure":                   {nil, replaced("1.5", "done", "†state.g", "†state.f"), "1.5 writes"},
		"the paths of a call":                 {nil, replaced("1.2", "done", "†state.b", "†state.c"), "1.2 writes"},
		"what a call read":                    {nil, replaced("1.2", "", `"†state.a":`, `"†state.z":`), "1.2 _if"},
		"what was shown to a person":          {nil, replaced("1.7", "", `"arguments":{"value":5}`, `"arguments":{"value":6}`), "1.7 arguments"},
		"a thought":                           {nil, replaced("1.8", "done", `"thought":5`, `"thought":6`), "1.8 arguments"},
		"the status of the run":               {nil, replaced("", "run", `"status":"done"`, `"status":"failed"`), "status"},
		"the output of the run":               {nil, replaced("", "run", `"a":1`, `"a":2`), "output"},
		"the order of calls":                  {nil, func(all []store.Entry) []store.Entry { return later(all, "1.1", "1.2") }, "1.2 status"},
	} {
		t.Run(name, func(t *testing.T) {
			edited := *r
			edited.Log = &tampered{r.Log, test.message, test.entries}
			replayed, err := replay.Run(t.Context(), &edited, "c", nil)
			if err != nil {
				t.Fatal(err)
			}
			var all []string
			for _, d := range replayed.Differences {
				all = append(all, strings.Join(strings.Fields(d.Context+" "+d.Call+" "+d.What), " "))
			}
			if !slices.Contains(all, test.want) {
				t.Errorf("it finds %q, and not %q", all, test.want)
			}
		})
	}
}

// TestRun_TamperedReport: an error message that reports a failed call says what its record says.
func TestRun_TamperedReport(t *testing.T) {
	r := newRunner(memory.New(), map[string]activity{"fail": fail})
	outcome, err := r.Run(t.Context(), start(t, `[{"_tool": "fail", "_outputPath": "†state.a"}]`))
	expect(t, outcome, err, journal.RunFailed, "1.1 fail failed ! no")
	same(t, r, "c", nil)
	for _, name := range []string{"call", "tool", "error"} {
		edited := *r
		edited.Log = &tampered{Log: r.Log, message: func(m *store.Message) {
			if m.Kind == store.KindError {
				report := maps.Clone(m.Data.Value.(map[string]any))
				report[name] = "other"
				m.Data.Value = report
			}
		}}
		replayed, err := replay.Run(t.Context(), &edited, "c", nil)
		if err != nil {
			t.Fatal(err)
		}
		isReported := func(d replay.Difference) bool { return d.Call == "1.1" && d.What == "†error" }
		if !slices.ContainsFunc(replayed.Differences, isReported) {
			t.Errorf("%s: it finds %+v", name, replayed.Differences)
		}
	}
}

// editPlan gives a call of a plan another property.
func editPlan(m *store.Message, call int, name string, v any) {
	calls, ok := m.Data.Value.([]any)
	if !ok || m.Type != store.TypePlan || len(calls) < 9 {
		return
	}
	calls = slices.Clone(calls)
	edited := maps.Clone(calls[call].(map[string]any))
	edited[name] = v
	calls[call] = edited
	m.Data.Value = calls
}

// later moves the outcome of a call behind that of another.
func later(all []store.Entry, call, other string) []store.Entry {
	is := func(of string) func(store.Entry) bool {
		return func(e store.Entry) bool { return e.Context == "c" && e.Call == of && e.Event == "done" }
	}
	from, to := slices.IndexFunc(all, is(call)), slices.IndexFunc(all, is(other))
	if from < 0 || to < 0 {
		return all
	}
	moved := all[from]
	all = slices.Insert(all, to+1, moved)
	return slices.Delete(all, from, from+1)
}

// TestRun_TamperedPlanner: where a function plans otherwise than recorded, the tick is named, and no
// other.
func TestRun_TamperedPlanner(t *testing.T) {
	asked := []int{}
	call := func(n int) []plan.Source {
		return []plan.Source{{Call: map[string]any{"_tool": "value", "value": n, "_outputPath": "†state.a", "_outputMethod": "push"}}}
	}
	planner := func(other int) *plan.Request {
		return &plan.Request{Planner: plan.PlannerFunc(func(_ context.Context, ask plan.Ask) (*plan.Solution, error) {
			asked = append(asked, ask.Tick)
			state, _ := ask.Kinds["state"].(map[string]any)
			list, _ := state["a"].([]any)
			if len(list) != ask.Tick-1 {
				t.Errorf("in tick %d it sees %v", ask.Tick, list)
			}
			switch {
			case ask.Tick == other && other == 3:
				return &plan.Solution{Output: "†state.a", Calls: call(3)}, nil
			case ask.Tick == other:
				return nil, fmt.Errorf("it is tick %d", other)
			case ask.Tick == 4:
				return &plan.Solution{Output: "†state.a"}, nil
			}
			return &plan.Solution{Calls: call(ask.Tick)}, nil
		})}
	}
	r := newRunner(memory.New(), map[string]activity{"value": value})
	outcome, err := r.Run(t.Context(), engine.Start{Context: "c", Request: planner(0)})
	expect(t, outcome, err, journal.RunDone)
	for other, want := range map[int]string{0: "", 2: "2 plan", 3: "3 output"} {
		asked = nil
		replayed, err := replay.Run(t.Context(), r, "c", planner(other))
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, d := range replayed.Differences {
			all = append(all, fmt.Sprint(d.Tick, " ", d.What))
		}
		if strings.Join(all, ", ") != want || !slices.Equal(asked, []int{1, 2, 3, 4}) {
			t.Errorf("tick %d: it finds %q, and not %q, and asked in ticks %v", other, all, want, asked)
		}
	}
	r.Log = &tampered{r.Log, nil, func(all []store.Entry) []store.Entry {
		for i := range all {
			if e := &all[i]; e.Event == journal.EventRun {
				e.Data = strings.Replace(e.Data, `"tick":2,"status":"continued"`, `"tick":2,"status":"done"`, 1)
			}
		}
		return all
	}}
	replayed, err := replay.Run(t.Context(), r, "c", nil)
	if err != nil || len(replayed.Differences) != 1 || replayed.Differences[0].Tick != 2 || replayed.Differences[0].What != "status" {
		t.Errorf("%+v, %v", replayed, err)
	}
}

// TestRun_ReadsTheLogOnce: a replay reads each entry and each message of the run once, and besides
// no more than its newest entries.
func TestRun_ReadsTheLogOnce(t *testing.T) {
	for _, n := range []int{4, 400} {
		r, log := ran(t, n)
		same(t, r, "c", nil)
		if entries := 2*n + 2; log.entries > entries+5 || log.messages > n+1 {
			t.Errorf("of %d entries and %d messages it reads %d and %d", entries, n+1, log.entries, log.messages)
		}
	}
}
