package luatest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"

	lua "github.com/yuin/gopher-lua"

	"obelus/engine/lazyregexp"
	"obelus/engine/plan"
	"obelus/host/internal/luacall"
	"obelus/host/internal/luaerr"
	"obelus/host/internal/sandbox"
	"obelus/host/model"
	"obelus/store"
)

// cassettes is the folder of recorded answers, below the project.
const cassettes = "tests/cassettes"

var cassetteName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// test.cassette(name): models answer from tests/cassettes/NAME.json, as they have answered before
func testCassette(r *testFile, L *lua.LState) int {
	name := L.CheckString(1)
	if !cassetteName().MatchString(name) {
		L.ArgError(1, "the name of a cassette is a file's name, without a folder and without .json")
	}
	tape, err := r.tests.cassette(name)
	if err != nil {
		L.RaiseError("%s", err.Error())
	}
	r.tests.setModels(nil, tape)
	return 0
}

// test.model(fn): fn(question) answers in place of every model. Of a call the question has tool,
// call, context, schema and thoughts, and the function returns the result, or nil and a failure. Of
// a plan it has plan = true, tick, mode, context, tools, schema, last and errors, and the function
// returns a table with calls and output. Of a script's question it has ask = true, prompt, data and
// schema, and the function returns the answer, or nil and an error.
func testModel(r *testFile, L *lua.LState) int {
	r.tests.setModels(&scriptedModel{r, L, L.CheckFunction(1)}, nil)
	return 0
}

// setModels sets what answers in place of models, for the test that runs.
func (t *Tests) setModels(m *scriptedModel, tape *model.Cassette) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.model, t.tape = m, tape
}

// takeMissed returns the error of a request of the test that nothing answered, nil for none.
func (t *Tests) takeMissed() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	missed := t.missed
	t.missed = nil
	return missed
}

// cassette returns a cassette, from its beginning.
func (t *Tests) cassette(name string) (*model.Cassette, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known, ok := t.tapes[name]; ok {
		known.Rewind()
		return known, nil
	}
	file := path.Join(cassettes, name+".json")
	if t.dir == "" {
		return nil, fmt.Errorf("%s: the project has no folder on disk", file)
	}
	made, err := model.LoadCassette(filepath.Join(t.dir, filepath.FromSlash(file)))
	if err != nil {
		return nil, err
	}
	made.Name = file
	t.tapes[name] = made
	return made, nil
}

// Cassettes returns the cassettes that tests have used, by their names.
func (t *Tests) Cassettes() map[string]*model.Cassette {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.tapes)
}

// Record has models asked for what cassettes do not have: by default nothing is.
func (t *Tests) Record(recording model.Recording) { t.recording = recording }

// testAsker answers requests to a model of the project: from the cassette of the test.
type testAsker struct {
	tests  *Tests
	client model.Asker
}

// Ask implements [model.Asker].
func (a *testAsker) Ask(ctx context.Context, r *model.Request, meter *plan.Meter) (*model.Answer, error) {
	a.tests.mu.Lock()
	tape := a.tests.tape
	a.tests.mu.Unlock()
	if tape == nil {
		err := fmt.Errorf("a test asks no model: answer %s by test.model(fn) or test.cassette(name)", r.Model)
		a.tests.miss(err)
		return nil, err
	}
	answer, err := tape.Asker(a.client, a.tests.recording).Ask(ctx, r, meter)
	if _, spent := errors.AsType[*plan.Fault](err); err != nil && !spent && ctx.Err() == nil {
		a.tests.miss(err)
	}
	return answer, err
}

// miss keeps the first error of a request that nothing answers: it fails the test, whatever the
// plan makes of it.
func (t *Tests) miss(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.missed = cmp.Or(t.missed, err)
}

// withModel returns a registry in which a function of the test answers in place of every model; the
// registry itself where there is no such function.
func (t *Tests) withModel(registry *plan.Registry) *plan.Registry {
	t.mu.Lock()
	scripted := t.model
	t.mu.Unlock()
	if scripted == nil {
		return registry
	}
	out := *registry
	out.Model, out.Models = scripted, map[string]plan.Model{}
	for name := range registry.Models {
		out.Models[name] = scripted
	}
	if registry.File != nil {
		out.File = func(name string) (*plan.Delegate, error) {
			d, err := registry.File(name)
			if err != nil || d.Registry == nil {
				return d, err
			}
			return &plan.Delegate{Request: d.Request, Registry: t.withModel(d.Registry)}, nil
		}
	}
	return &out
}

// scriptedModel is a model whose answers a function of the test gives, on the test's own goroutine.
type scriptedModel struct {
	r  *testFile
	L  *lua.LState
	fn *lua.LFunction
}

var _ plan.PlanModel = (*scriptedModel)(nil)

// Answer implements [plan.Model].
func (m *scriptedModel) Answer(ctx context.Context, q plan.Question) (any, error) {
	question := map[string]any{"tool": q.Call["_tool"], "call": q.Call, "context": kindsOf(q.Kinds, instanceOf(q)), "thoughts": listOf(q.Thoughts)}
	if q.Schema != nil {
		question["schema"] = q.Schema
	}
	var result plan.Result
	err := m.call(ctx, question, func(results []lua.LValue) (err error) {
		result, err = luacall.Outcome(m.r.s, results, q.Schema)
		return err
	})
	return result, err
}

// Ask answers the question of a script.
func (m *scriptedModel) Ask(ctx context.Context, in model.AskInput, _ *plan.Meter) (any, error) {
	question := map[string]any{"ask": true, "prompt": in.Prompt}
	if in.Data != nil {
		question["data"] = in.Data
	}
	if in.Schema != nil {
		question["schema"] = in.Schema
	}
	var result plan.Result
	err := m.call(ctx, question, func(results []lua.LValue) (err error) {
		result, err = luacall.Outcome(m.r.s, results, in.Schema)
		return err
	})
	return result.Value, err
}

// Propose implements [plan.PlanModel].
func (m *scriptedModel) Propose(ctx context.Context, p plan.Proposal) (*plan.Solution, error) {
	var tools, last []any
	for _, o := range p.Tools {
		tools = append(tools, o.Name)
	}
	for _, l := range p.SoFar {
		if l.Tick == p.Tick-1 {
			last = append(last, map[string]any{"call": l.Call, "tool": l.Tool, "status": l.Status, "reason": l.Reason, "set_aside": l.SetAside})
		}
	}
	question := map[string]any{
		"plan": true, "tick": int64(p.Tick), "mode": p.Mode, "context": plan.Literal(kindsOf(p.Kinds, "")),
		"tools": tools, "last": last, "errors": listOf(p.Errors),
	}
	if p.Schema != nil {
		question["schema"] = p.Schema
	}
	solution := &plan.Solution{}
	err := m.call(ctx, question, func(results []lua.LValue) error {
		if len(results) == 0 {
			results = append(results, lua.LNil)
		}
		v, err := m.r.s.FromLua(results[0], "plan")
		if err != nil {
			return err
		}
		given, ok := luacall.Listed(v, luacall.RequestSchema).(map[string]any)
		if !ok {
			return errors.New("the function of test.model must return a table with calls, output or both")
		}
		for _, name := range slices.Sorted(maps.Keys(given)) {
			if name != "calls" && name != "output" {
				return fmt.Errorf("the function of test.model returned the unknown field %q%s", name, luaerr.DidYouMean(name, []string{"calls", "output"}))
			}
		}
		calls, _ := given["calls"].([]any)
		for _, call := range calls {
			solution.Calls = append(solution.Calls, plan.Source{Call: call})
		}
		solution.Output = given["output"]
		return nil
	})
	return solution, err
}

// call calls the function with a question, and reads what it returns. An error that it raises fails
// the test.
func (m *scriptedModel) call(ctx context.Context, question map[string]any, read func([]lua.LValue) error) (err error) {
	if !m.r.tests.runOnTest(ctx, func() {
		v, wrong := store.FromGo(question, "question")
		if wrong != nil {
			err = wrong
			return
		}
		var results []lua.LValue
		if results, err = m.r.s.CallApart(m.L, m.fn, m.r.s.ToLua(v)); err == nil {
			err = read(results)
		}
		if f, raised := err.(*sandbox.Fault); raised {
			m.r.s.Raised = nil
			m.r.fail(f)
			err = f.ScriptError
		}
	}) {
		return ctx.Err()
	}
	return err
}

// kindsOf are the values that a model is shown, by kind; of instances, as planners get them.
func kindsOf(kinds []plan.Shown, instance string) map[string]any {
	values, instances := map[string]any{}, map[string]any{}
	for _, k := range kinds {
		switch {
		case !k.Value.Set:
		case k.Instance == instance || k.Instance == "":
			values[k.Kind] = k.Value.Value
		default:
			own, _ := instances[k.Instance].(map[string]any)
			if own == nil {
				own = map[string]any{}
				instances[k.Instance] = own
			}
			own[k.Kind] = k.Value.Value
		}
	}
	if len(instances) > 0 {
		values[plan.InstancesKey] = instances
	}
	return values
}

// instanceOf is the instance of a question's call.
func instanceOf(q plan.Question) string {
	instance, _ := q.Call["_instance"].(string)
	return instance
}

func listOf(objects []map[string]any) []any {
	list := make([]any, len(objects))
	for i, object := range objects {
		list[i] = object
	}
	return list
}
