package engine_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/engine/replay"
	"obelus/store"
	"obelus/store/memory"
)

// countingModel answers and plans, and counts what it is asked.
type countingModel struct {
	mu        sync.Mutex
	requests  []string // the calls of each request for answers; "plan N" for plans
	solutions []plan.Solution
	answer    func(ctx context.Context, q plan.Question) plan.Reply // nil answers "yes"
	limit     int                                                   // of a group; 0 for 16
	timeout   time.Duration
	across    bool // joins questions of several instances
}

func (m *countingModel) Timeout() time.Duration { return m.timeout }

func (m *countingModel) Batch() (int, bool) {
	if m.limit > 0 {
		return m.limit, m.across
	}
	return 16, m.across
}

func (m *countingModel) Answer(ctx context.Context, q plan.Question) (any, error) {
	reply := m.AnswerAll(ctx, []plan.Question{q})[0]
	return reply.Result, reply.Err
}

func (m *countingModel) AnswerAll(ctx context.Context, questions []plan.Question) []plan.Reply {
	var ids []string
	replies := make([]plan.Reply, len(questions))
	for i, q := range questions {
		ids = append(ids, q.ID)
		replies[i] = plan.Reply{Result: plan.Result{Value: "yes"}}
	}
	settle, err := questions[0].Meter.Reserve(ctx, plan.Usage{Model: "m", Input: 10, Output: 1})
	if err != nil {
		for i := range replies {
			replies[i] = plan.Reply{Err: err}
		}
		return replies
	}
	m.mu.Lock()
	m.requests = append(m.requests, strings.Join(ids, " "))
	m.mu.Unlock()
	settle(plan.Usage{Model: "m", Requests: 1, Input: 10, Output: 1})
	if m.answer != nil {
		for i, q := range questions {
			replies[i] = m.answer(ctx, q)
		}
	}
	return replies
}

func (m *countingModel) Propose(ctx context.Context, p plan.Proposal) (*plan.Solution, error) {
	settle, err := p.Meter.Reserve(ctx, plan.Usage{Model: "m", Input: 100, Output: 10})
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	m.requests = append(m.requests, fmt.Sprintf("plan %d", p.Tick))
	m.mu.Unlock()
	settle(plan.Usage{Model: "m", Requests: 1, Input: 100, Output: 10})
	if p.Tick > len(m.solutions) {
		return &plan.Solution{}, nil
	}
	return &m.solutions[p.Tick-1], nil
}

// askedTimes is how many requests were about a call.
func (m *countingModel) askedTimes(call string) (n int) {
	for _, request := range m.requests {
		for _, id := range strings.Fields(request) {
			if id == call {
				n++
			}
		}
	}
	return n
}

// latentTools registers tools that no activity runs.
func latentTools(t testing.TB, r *engine.Runner, names ...string) {
	t.Helper()
	for _, name := range names {
		tool, err := plan.NewTool(name, map[string]any{})
		if err != nil {
			t.Fatal(err)
		}
		r.Registry.Tools[name] = tool
	}
}

// TestModel_CrashBetweenAnswerAndCommit ends the process before and after each append of a run whose
// calls a model answers: a call with a recorded outcome is never asked about again, any other at most
// once more, and the run ends as if nothing had happened.
func TestModel_CrashBetweenAnswerAndCommit(t *testing.T) {
	const text = `{"calls": [
		{"_tool": "judge", "n": 1, "_outputPath": "†state.a"},
		{"_tool": "judge", "n": 2, "_outputPath": "†state.b"},
		{"_tool": "judge", "n": "†state.a", "_outputPath": "†state.c"}
	], "output": ["†state.a", "†state.b", "†state.c"]}`
	for n, crashed := 0, true; crashed; n++ {
		for _, after := range []bool{false, true} {
			inner, model := memory.New(), &countingModel{}
			r := newRunner(&crashing{Log: inner, left: n, after: after}, nil)
			latentTools(t, r, "judge")
			r.Registry.Model = model
			_, err := r.Run(t.Context(), start(t, text))
			if crashed = err != nil; !crashed {
				continue
			}
			recorded, err := journal.In(inner, "c").Records(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			before := map[string]int{}
			for _, record := range recorded {
				before[record.Call] = model.askedTimes(record.Call)
			}
			r.Log = inner
			outcome, err := r.Resume(t.Context(), engine.Resume{Context: "c"})
			if errors.As(err, new(*journal.NoSuchCallError)) {
				continue // nothing had been recorded
			}
			if err != nil || string(store.EncodeJSON(outcome.Output)) != `["yes","yes","yes"]` {
				t.Fatalf("crash %d, after %t: %+v, %v", n, after, outcome, err)
			}
			for _, record := range recorded {
				again := model.askedTimes(record.Call) - before[record.Call]
				if record.Status == journal.Done && again > 0 || again > 1 {
					t.Errorf("crash %d, after %t: call %s, %s when it crashed, was asked about %d times more", n, after, record.Call, record.Status, again)
				}
			}
			if replayed, err := replay.Run(t.Context(), r, "c", nil); err != nil || len(replayed.Differences) > 0 {
				t.Errorf("crash %d, after %t: replayed: %+v, %v", n, after, replayed, err)
			}
		}
	}
}

// TestModel_BudgetOverResume: what a run had spent before it was resumed counts.
func TestModel_BudgetOverResume(t *testing.T) {
	log := memory.New()
	model := &countingModel{solutions: []plan.Solution{
		{Calls: []plan.Source{{Call: map[string]any{"_tool": "judge", "n": "†input.more", "_outputPath": "†state.a"}}}},
	}}
	r := newRunner(log, nil)
	latentTools(t, r, "judge")
	r.Registry.Model, r.Budget = model, plan.Budget{Requests: 2}
	request := &plan.Request{Planner: &plan.Planning{}, Context: []store.Message{{Type: store.TypeData, Kind: "input", Schema: map[string]any{"type": "object"}}}}
	outcome, err := r.Run(t.Context(), engine.Start{Context: "c", Request: request})
	if err != nil || outcome.Status != journal.RunWaiting {
		t.Fatalf("%+v, %v", outcome, err)
	}
	if _, err := engine.Append(t.Context(), log, "c", []store.Message{{Type: store.TypeData, Kind: "input", Data: store.Some(map[string]any{"more": 1})}}); err != nil {
		t.Fatal(err)
	}
	again := newRunner(log, nil) // another process
	again.Registry, again.Budget = r.Registry, r.Budget
	outcome, err = again.Resume(t.Context(), engine.Resume{Context: "c", Request: request})
	if err != nil || outcome.Status != journal.RunFailed || !strings.Contains(outcome.Error, "budget for models is spent: it has sent 2 requests, and may send 2") {
		t.Fatalf("%+v, %v", outcome, err)
	}
	if got := strings.Join(model.requests, ", "); got != "plan 1, 1.1" {
		t.Errorf("asked: %s", got)
	}
	spent, err := journal.SpentOn(t.Context(), journal.In(log, "c"), 1)
	if err != nil || spent.Requests != 2 || spent.Input != 110 || spent.Output != 11 {
		t.Errorf("spent %+v, %v", spent, err)
	}
}

// TestModel_BudgetIsAFault: no alternative takes a call that the budget does not allow.
func TestModel_BudgetIsAFault(t *testing.T) {
	model := &countingModel{limit: 1}
	r := newRunner(memory.New(), nil)
	latentTools(t, r, "judge")
	r.Registry.Model, r.Budget, r.Parallel = model, plan.Budget{Tokens: 5}, 1
	outcome, err := r.Run(t.Context(), start(t, `[{"_tool": "judge", "_outputPath": "†state.a || †state.b"}, {"_tool": "judge", "n": "†state.a", "_outputPath": "†state.c || †state.d"}]`))
	if err != nil || outcome.Status != journal.RunFailed {
		t.Fatalf("%+v, %v", outcome, err)
	}
	if r := outcome.Calls[1]; r.Error["code"] != "budget" || len(r.Writes) > 0 {
		t.Errorf("the second call: %+v", r)
	}
}

// TestModel_GroupTakesOneSlot: calls that one request answers begin together, whatever the limit on
// calls at work is, and leave the others their room.
func TestModel_GroupTakesOneSlot(t *testing.T) {
	release, begun := make(chan struct{}), make(chan struct{})
	model := &countingModel{answer: func(context.Context, plan.Question) plan.Reply {
		<-release
		return plan.Reply{Result: plan.Result{Value: "yes"}}
	}}
	r := newRunner(memory.New(), map[string]activity{"value": func(context.Context, plan.Invocation) (plan.Result, error) {
		close(begun)
		return plan.Result{Value: 1}, nil
	}})
	latentTools(t, r, "judge")
	r.Registry.Model, r.Parallel = model, 2
	done := make(chan error, 1)
	go func() {
		outcome, err := r.Run(context.Background(), start(t, `[{"_tool": "judge", "_outputPath": "†state.a"}, {"_tool": "judge", "_outputPath": "†state.b"},
			{"_tool": "judge", "_outputPath": "†state.c"}, {"_tool": "value", "_outputPath": "†state.d"}]`))
		if err == nil && outcome.Status != journal.RunDone {
			err = errors.New(outcome.Error)
		}
		done <- err
	}()
	<-begun // beside the three
	close(release)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(model.requests, ", "); got != "1.1 1.2 1.3" {
		t.Errorf("asked: %s", got)
	}
}

// TestModel_BrokenGroups: a model that breaks down, gives too few answers, or does not answer in
// time fails each call of the group; an answer that it has given by then counts.
func TestModel_BrokenGroups(t *testing.T) {
	const text = `[{"_tool": "judge", "_outputPath": "†state.a"}, {"_tool": "judge", "_outputPath": "†state.b"}]`
	late := func(ctx context.Context, q plan.Question) plan.Reply {
		if q.ID == "1.2" {
			return plan.Reply{Result: plan.Result{Value: "yes"}}
		}
		<-ctx.Done()
		return plan.Reply{Err: ctx.Err()}
	}
	for _, test := range []struct {
		name  string
		model plan.Model
		want  string
	}{
		{"breaks down", &countingModel{answer: func(context.Context, plan.Question) plan.Reply { panic("no luck") }}, "the model broke down: no luck; the model broke down: no luck"},
		{"too few", fewAnswers{&countingModel{}}, "the model gave 1 answers to 2 questions; the model gave 1 answers to 2 questions"},
		{"too late", &countingModel{answer: late, timeout: time.Second}, "timed out after 1s; done"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRunner(memory.New(), nil)
				latentTools(t, r, "judge")
				r.Registry.Model = test.model
				outcome, err := r.Run(t.Context(), start(t, text))
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, record := range outcome.Calls {
					said := string(record.Status)
					if message, ok := record.Error["message"].(string); ok {
						said, _, _ = strings.Cut(place.ReplaceAllString(message, ""), "\n")
					}
					got = append(got, said)
				}
				if text := strings.Join(got, "; "); text != test.want {
					t.Errorf("got %s, want %s", text, test.want)
				}
			})
		})
	}
}

// place is where a function panicked.
var place = regexp.MustCompile(` at [a-z_]+\.go:\d+`)

// fewAnswers loses all answers but the first.
type fewAnswers struct{ *countingModel }

func (m fewAnswers) AnswerAll(ctx context.Context, questions []plan.Question) []plan.Reply {
	return m.countingModel.AnswerAll(ctx, questions)[:1]
}

// TestModel_GroupAcrossInstances: calls of several instances are one request only where the model
// joins instances; each question shows the values of its own.
func TestModel_GroupAcrossInstances(t *testing.T) {
	for _, across := range []bool{false, true} {
		var mu sync.Mutex
		shown := map[string]string{}
		model := &countingModel{across: across, answer: func(_ context.Context, q plan.Question) plan.Reply {
			mu.Lock()
			defer mu.Unlock()
			shown[q.ID] = string(store.EncodeJSON(q.Kinds[0].Value.Value))
			return plan.Reply{Result: plan.Result{Value: "yes"}}
		}}
		log := memory.New()
		for i, instance := range []string{"①", "②"} {
			item := store.Message{Type: store.TypeData, Kind: "item", Instance: instance, Data: store.Some(i)}
			if _, err := engine.Append(t.Context(), log, "c", []store.Message{item}); err != nil {
				t.Fatal(err)
			}
		}
		r := newRunner(log, nil)
		latentTools(t, r, "judge")
		r.Registry.Model = model
		outcome, err := r.Run(t.Context(), start(t, `[{"_tool": "judge", "item": "†item", "_instance": "*", "_outputPath": "†state.a"}]`))
		if err != nil || outcome.Status != journal.RunDone {
			t.Fatalf("%+v, %v", outcome, err)
		}
		want := map[bool]int{false: 2, true: 1}[across]
		if len(model.requests) != want || shown["1.1"] != "0" || shown["1.2"] != "1" {
			t.Errorf("joined %t: asked %v, which shows %v", across, model.requests, shown)
		}
	}
}

// TestModel_InterruptedGroup: a run that is stopped while a group is asked about asks again when it
// is resumed, once for all of them.
func TestModel_InterruptedGroup(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	model := &countingModel{}
	model.answer = func(ctx context.Context, q plan.Question) plan.Reply {
		if len(model.requests) > 1 {
			return plan.Reply{Result: plan.Result{Value: "yes"}}
		}
		stop()
		<-ctx.Done()
		return plan.Reply{Err: ctx.Err()}
	}
	log := memory.New()
	r := newRunner(log, nil)
	latentTools(t, r, "judge")
	r.Registry.Model, r.Drain = model, -1
	outcome, err := r.Run(ctx, start(t, `[{"_tool": "judge", "_outputPath": "†state.a"}, {"_tool": "judge", "_outputPath": "†state.b"}]`))
	if err != nil || outcome.Status != journal.RunInterrupted {
		t.Fatalf("%+v, %v", outcome, err)
	}
	outcome, err = r.Resume(t.Context(), engine.Resume{Context: "c"})
	if err != nil || outcome.Status != journal.RunDone {
		t.Fatalf("%+v, %v", outcome, err)
	}
	if got := strings.Join(model.requests, ", "); got != "1.1 1.2, 1.1 1.2" {
		t.Errorf("asked: %s", got)
	}
	spent, err := journal.SpentOn(t.Context(), journal.In(log, "c"), 1)
	if err != nil || spent.Requests != 2 {
		t.Errorf("spent %+v, %v: the request that was cut off counts", spent, err)
	}
}

// TestModel_ReplayAsks: a replay takes the plans of a model from the record, and asks it again only
// where it is told to.
func TestModel_ReplayAsks(t *testing.T) {
	log := memory.New()
	call := func(n int) []plan.Source {
		return []plan.Source{{Call: map[string]any{"_tool": "value", "value": n, "_outputPath": "†state.a"}}}
	}
	model := &countingModel{solutions: []plan.Solution{{Calls: call(1)}, {Output: "†state.a"}}}
	r := newRunner(log, map[string]activity{"value": value})
	r.Registry.Model = model
	request := &plan.Request{Planner: &plan.Planning{}}
	if outcome, err := r.Run(t.Context(), engine.Start{Context: "c", Request: request}); err != nil || outcome.Status != journal.RunDone {
		t.Fatalf("%+v, %v", outcome, err)
	}
	if replayed, err := replay.Run(t.Context(), r, "c", request); err != nil || len(replayed.Differences) > 0 || len(model.requests) != 2 {
		t.Errorf("%+v, %v, asked %v", replayed, err, model.requests)
	}
	if replayed, err := replay.Ask(t.Context(), r, "c", request); err != nil || len(replayed.Differences) > 0 || len(model.requests) != 4 {
		t.Errorf("%+v, %v, asked %v", replayed, err, model.requests)
	}
	model.solutions[0].Calls = call(2)
	if replayed, err := replay.Ask(t.Context(), r, "c", request); err != nil || len(replayed.Differences) == 0 {
		t.Errorf("another plan made no difference: %+v, %v", replayed, err)
	}
}

// TestModel_GroupsAreOfTheStructure: which calls are one request does not depend on how many calls run
// at once: a call that only waits until another has read begins before one that waits for its outcome.
func TestModel_GroupsAreOfTheStructure(t *testing.T) {
	const text = `[{"_tool": "value", "value": "†state.x", "_outputPath": "†state.v"},
		{"_tool": "judge", "n": "†state.v", "_outputPath": "†state.a"},
		{"_tool": "judge", "n": 2, "_outputPath": "†state.x"}]`
	for _, parallel := range []int{1, 8} {
		model := &countingModel{}
		log := memory.New()
		if _, err := engine.Append(t.Context(), log, "c", []store.Message{{Type: store.TypeData, Kind: "state", Data: store.Some(map[string]any{"x": 1})}}); err != nil {
			t.Fatal(err)
		}
		r := newRunner(log, map[string]activity{"value": value})
		latentTools(t, r, "judge")
		r.Registry.Model, r.Parallel = model, parallel
		if outcome, err := r.Run(t.Context(), start(t, text)); err != nil || outcome.Status != journal.RunDone {
			t.Fatalf("%+v, %v", outcome, err)
		}
		slices.Sort(model.requests)
		if got := strings.Join(model.requests, ", "); got != "1.2, 1.3" {
			t.Errorf("parallel %d: asked %s", parallel, got)
		}
	}
}

// TestModel_AppendWhileItPlans: a message that comes while a model plans does not have it asked again.
func TestModel_AppendWhileItPlans(t *testing.T) {
	log := memory.New()
	model := &appendingModel{countingModel: &countingModel{solutions: []plan.Solution{{Output: "done"}}}, log: log}
	r := newRunner(log, nil)
	r.Registry.Model = model
	if _, err := engine.Append(t.Context(), log, "c", []store.Message{{Type: store.TypeText, Data: store.Some("first")}}); err != nil {
		t.Fatal(err)
	}
	outcome, err := r.Run(t.Context(), engine.Start{Context: "c", Request: &plan.Request{Planner: &plan.Planning{}}})
	if err != nil || outcome.Output != "done" || len(model.requests) != 1 {
		t.Fatalf("%+v, %v, asked %v", outcome, err, model.requests)
	}
	if spent, err := journal.SpentOn(t.Context(), journal.In(log, "c"), 1); err != nil || spent.Requests != 1 {
		t.Errorf("spent %+v, %v", spent, err)
	}
}

// appendingModel has a message appended while it plans.
type appendingModel struct {
	*countingModel
	log store.Log
}

func (m *appendingModel) Propose(ctx context.Context, p plan.Proposal) (*plan.Solution, error) {
	if _, err := engine.Append(ctx, m.log, p.Context, []store.Message{{Type: store.TypeText, Data: store.Some("meanwhile")}}); err != nil {
		return nil, err
	}
	return m.countingModel.Propose(ctx, p)
}

// TestModel_InterruptedWhileItPlans: what was used for a plan that was not made counts.
func TestModel_InterruptedWhileItPlans(t *testing.T) {
	log := memory.New()
	ctx, stop := context.WithCancel(t.Context())
	model := &stoppingModel{countingModel: &countingModel{solutions: []plan.Solution{
		{Calls: []plan.Source{{Call: map[string]any{"_tool": "value", "value": 1, "_outputPath": "†state.a"}}}}, {Output: "done"},
	}}, stop: stop}
	r := newRunner(log, map[string]activity{"value": value})
	r.Registry.Model = model
	request := &plan.Request{Planner: &plan.Planning{}}
	outcome, err := r.Run(ctx, engine.Start{Context: "c", Request: request})
	if err != nil || outcome.Status != journal.RunInterrupted {
		t.Fatalf("%+v, %v", outcome, err)
	}
	outcome, err = r.Resume(t.Context(), engine.Resume{Context: "c", Request: request})
	if err != nil || outcome.Output != "done" {
		t.Fatalf("%+v, %v", outcome, err)
	}
	if spent, err := journal.SpentOn(t.Context(), journal.In(log, "c"), 1); err != nil || spent.Requests != 3 || len(model.requests) != 3 {
		t.Errorf("spent %+v, %v, asked %v", spent, err, model.requests)
	}
}

// stoppingModel stops the run in its second plan.
type stoppingModel struct {
	*countingModel
	stop func()
}

func (m *stoppingModel) Propose(ctx context.Context, p plan.Proposal) (*plan.Solution, error) {
	s, err := m.countingModel.Propose(ctx, p)
	if len(m.requests) == 2 {
		m.stop()
		return nil, context.Canceled
	}
	return s, err
}

// TestModel_SpentInForks: a fork has what was used in it, and not what its calls had used before.
func TestModel_SpentInForks(t *testing.T) {
	log := memory.New()
	model := &countingModel{answer: func(_ context.Context, q plan.Question) plan.Reply {
		if q.ID == "1.2" {
			return plan.Reply{Err: plan.NewFailure("no idea")}
		}
		return plan.Reply{Result: plan.Result{Value: "yes"}}
	}}
	r := newRunner(log, nil)
	latentTools(t, r, "judge")
	r.Registry.Model = model
	outcome, err := r.Run(t.Context(), start(t, `[{"_tool": "judge", "_outputPath": "†state.a"}, {"_tool": "judge", "n": "†state.a", "_outputPath": "†state.b"}]`))
	if err != nil || outcome.Status != journal.RunFailed {
		t.Fatalf("%+v, %v", outcome, err)
	}
	if _, err := journal.Fork(t.Context(), log, "c", 0, "f"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Resume(t.Context(), engine.Resume{Context: "f", Retry: []string{"1.2"}}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"c": 2, "f": 1} {
		if spent, err := journal.SpentOn(t.Context(), journal.In(log, name), 1); err != nil || spent.Requests != want {
			t.Errorf("context %s: %+v, %v", name, spent, err)
		}
	}
}

// TestModel_BudgetOfTheFamily: a delegate that is resumed by its own name has what its root's run has
// left.
func TestModel_BudgetOfTheFamily(t *testing.T) {
	log := memory.New()
	model := &countingModel{limit: 1}
	r := newRunner(log, nil)
	latentTools(t, r, "judge")
	r.Registry.Model, r.Budget = model, plan.Budget{Requests: 2}
	inner := start(t, `[{"_tool": "judge", "_outputPath": "†state.a"}, {"_tool": "judge", "n": "†input.more", "_outputPath": "†state.b"}]`).Request
	r.Registry.Delegates["inside"] = &plan.Delegate{Request: inner}
	outcome, err := r.Run(t.Context(), start(t, `[{"_tool": "judge", "_outputPath": "†state.a"}, {"_tool": "x", "n": "†state.a", "_delegate": "inside", "_outputPath": "†state.b"}]`))
	if err != nil || outcome.Status != journal.RunWaiting {
		t.Fatalf("%+v, %v", outcome, err)
	}
	if _, err := engine.Append(t.Context(), log, "c.1.2", []store.Message{{Type: store.TypeData, Kind: "input", Data: store.Some(map[string]any{"more": 1})}}); err != nil {
		t.Fatal(err)
	}
	outcome, err = r.Resume(t.Context(), engine.Resume{Context: "c.1.2"})
	if err != nil || outcome.Status != journal.RunFailed || outcome.Calls[1].Error["code"] != "budget" {
		t.Errorf("%+v, %v, asked %v", outcome, err, model.requests)
	}
}
