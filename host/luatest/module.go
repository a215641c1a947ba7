package luatest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"

	lua "github.com/yuin/gopher-lua"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/host/internal/luacall"
	"obelus/host/internal/luaerr"
	"obelus/host/internal/sandbox"
	"obelus/store"
	"obelus/store/memory"
)

// testModule is the module "test", which only files of tests have.
var testModule = []sandbox.Entry[*testFile]{
	{Name: "activity", Fn: testActivity},
	{Name: "cassette", Fn: testCassette},
	{Name: "clock", Fn: testSetClock},
	{Name: "http", Fn: testHTTP},
	{Name: "model", Fn: testModel},
	{Name: "plan", Fn: testPlan},
}

// test.activity(name, [call], [context]) → result, or nil and the failure's fields. The call is
// checked against the tool's schema, and its references are to the context. The activity gets the
// part of the context, by kind, that the call's scopes grant, all of it without scopes.
func testActivity(r *testFile, L *lua.LState) int {
	name := L.CheckString(1)
	tool, _ := r.tests.gen.Registry().Tool(name)
	call := luacall.OptionalObject(r.s, L, 2, "call", tool)
	kinds := luacall.OptionalObject(r.s, L, 3, "context", nil)
	call["_tool"] = name
	if _, ok := call["_outputPath"]; !ok { // else it would not be checked
		call["_outputPath"] = tool.ResultPath()
	}
	ctx, cancel := r.s.Budget.WaitContext()
	defer cancel()
	var result plan.Result
	var err error
	r.tests.serve(func() { result, err = engine.Try(ctx, r.tests.withModel(r.tests.gen.Registry()), call, kinds) })
	var failure *plan.Failure
	switch {
	case errors.As(err, &failure):
		return sandbox.Push(L, lua.LNil, r.s.ToLua(failure.Fields))
	case err != nil:
		L.RaiseError("%s", plainError(err))
	case result.Message != nil:
		return sandbox.Push(L, r.s.ToLua(result.Message))
	}
	L.Push(r.s.ToLua(result.Value))
	if result.To == "" {
		return 1
	}
	L.Push(lua.LNil)
	L.Push(lua.LString(result.To))
	return 3
}

// plainError returns an error's text, without the place of the call in a plan that does not exist.
func plainError(err error) string {
	var refused *plan.PlanError
	if errors.As(err, &refused) {
		return refused.Problems[0].Message
	}
	return err.Error()
}

// test.clock(seconds): the time from now on, for this test and the code that it runs; without an
// argument, the real one
func testSetClock(r *testFile, L *lua.LState) int {
	if L.Get(1) == lua.LNil {
		r.tests.clock.set(nil)
		return 0
	}
	t := sandbox.TimeArgument(L, 1)
	r.tests.clock.set(&t)
	return 0
}

// test.plan(file, {input = …, tools = {name = function}, context = {kind = …}}) → {status, output,
// error, calls, context}: runs a plan in its own log. The functions run the calls of tools, with
// the arguments of activities, also of calls with a delegate by name.
func testPlan(r *testFile, L *lua.LState) int {
	file := L.CheckString(1)
	options := planOptions(r, L)
	request, registry, err := r.tests.gen.Plan(file)
	if err != nil {
		L.RaiseError("%s", err.Error())
	}
	registry = r.tests.withModel(replaceTools(r, L, request, registry, options.RawGetString("tools")))
	start := engine.Start{Context: "test", Request: request}
	if input := options.RawGetString("input"); input != lua.LNil {
		start.Input = store.Some(luacall.CheckObject(r.s, L, 2, input, "input", nil))
		start.Input.Value = request.Lists("input", start.Input.Value, registry.Schemas...)
	}
	addContext(r, L, request, options.RawGetString("context"))
	log := memory.New()
	ctx, cancel := r.s.Budget.WaitContext()
	defer cancel()
	runner := r.tests.gen.Settings().Runner(log, registry)
	runner.Now, runner.Approve = r.tests.clock.Now, plan.Policy{} // no person decides
	var outcome *journal.Outcome
	r.tests.serve(func() { outcome, err = runner.Run(ctx, start) })
	if err != nil {
		L.RaiseError("%s", err.Error())
	}
	pushOutcome(r, L, log, outcome)
	return 1
}

var planOptionNames = []string{"context", "input", "tools"}

func planOptions(r *testFile, L *lua.LState) *lua.LTable {
	options := L.OptTable(2, L.CreateTable(0, 0))
	r.s.Fill(options)
	for key, _ := options.Next(lua.LNil); key != lua.LNil; key, _ = options.Next(key) {
		if name := key.String(); !slices.Contains(planOptionNames, name) {
			L.ArgError(2, "unknown option "+strconv.Quote(name)+luaerr.DidYouMean(name, planOptionNames))
		}
	}
	return options
}

// addContext adds a context's values to a request's values.
func addContext(r *testFile, L *lua.LState, request *plan.Request, context lua.LValue) {
	if context == lua.LNil {
		return
	}
	kinds := luacall.CheckObject(r.s, L, 2, context, "context", nil)
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		request.Context = append(request.Context, store.Message{Type: store.TypeData, Kind: kind, Data: store.Some(request.Lists(kind, kinds[kind], r.tests.gen.Registry().Schemas...))})
	}
}

// pushOutcome pushes the end of a run.
func pushOutcome(r *testFile, L *lua.LState, log store.Reader, outcome *journal.Outcome) {
	records, err := journal.In(log, outcome.Context).Records(context.Background())
	if err != nil {
		L.RaiseError("%s", err.Error())
	}
	calls := make([]any, len(records))
	for i, r := range records {
		call := map[string]any{"call": r.Call, "tool": r.Tool, "status": string(r.Status)}
		if r.Error != nil {
			call["error"] = map[string]any(r.Error)
		}
		if r.Reason != "" {
			call["reason"] = r.Reason
		}
		if due, ok := r.WaitsUntil(); ok {
			call["due"] = store.FormatDate(due)
		}
		if len(r.WaitingOn) > 0 {
			waits := make([]any, len(r.WaitingOn))
			for i, path := range r.WaitingOn {
				waits[i] = path
			}
			call["waiting_on"] = waits
		}
		calls[i] = call
	}
	kinds := map[string]any{}
	held, err := log.Kinds(context.Background(), outcome.Context)
	for _, h := range held {
		if h.Instance != "" || err != nil {
			continue
		}
		if resolved, _ := (store.Resolver{Log: log, Context: outcome.Context}).Resolve(context.Background(), store.KindPath(h.Kind), ""); resolved.Exists {
			kinds[h.Kind] = resolved.Value
		}
	}
	run := map[string]any{"status": string(outcome.Status), "output": outcome.Output, "calls": calls, "context": kinds}
	if outcome.Error != "" {
		run["error"] = outcome.Error
	}
	L.Push(r.s.ToLua(run))
}

// replaceTools returns a registry in which functions of the test run some tools.
func replaceTools(r *testFile, L *lua.LState, request *plan.Request, registry *plan.Registry, tools lua.LValue) *plan.Registry {
	if tools == lua.LNil {
		return registry
	}
	t, ok := tools.(*lua.LTable)
	if !ok {
		L.ArgError(2, "tools must be a table of functions, not a "+sandbox.TypeName(tools))
	}
	r.s.Fill(t)
	standIns := map[string]*plan.Registered{}
	known := callableTools(request, registry)
	for key, fn := t.Next(lua.LNil); key != lua.LNil; key, fn = t.Next(key) {
		name := key.String()
		if request.Planner == nil && !slices.Contains(known, name) {
			L.ArgError(2, "unknown tool "+strconv.Quote(name)+luaerr.DidYouMean(name, known))
		}
		if fn.Type() != lua.LTFunction {
			L.RaiseError("tools.%s must be a function", name)
		}
		standIns[name] = &plan.Registered{Name: name, StandIn: true, Activity: plan.ActivityFunc(func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
			return standIn(r, ctx, L, fn, in)
		})}
	}
	return withStandIns(registry, standIns)
}

// withStandIns returns a registry in which other activities run some tools, also in delegates from
// files.
func withStandIns(registry *plan.Registry, standIns map[string]*plan.Registered) *plan.Registry {
	out := *registry
	out.Activities = maps.Clone(registry.Activities)
	maps.Copy(out.Activities, standIns)
	if registry.File == nil {
		return &out
	}
	out.File = func(name string) (*plan.Delegate, error) {
		d, err := registry.File(name)
		if err != nil || d.Registry == nil {
			return d, err
		}
		return &plan.Delegate{Request: d.Request, Registry: withStandIns(d.Registry, standIns)}, nil
	}
	return &out
}

// callableTools names the tools of a plan: the tools of its registry, and the tools that it or a
// delegate has or calls.
func callableTools(request *plan.Request, registry *plan.Registry) []string {
	names := registry.Names()
	bring := func(request *plan.Request) {
		names = slices.AppendSeq(names, maps.Keys(request.Tools))
		for _, call := range request.Calls {
			object, _ := call.Call.(map[string]any)
			tool, _ := object["_tool"].(string)
			names = append(names, tool)
		}
		for _, m := range request.Context {
			if definitions, ok := m.Data.Value.(map[string]any); ok && m.Type == store.TypeTool {
				names = slices.AppendSeq(names, maps.Keys(definitions))
			}
		}
	}
	bring(request)
	for _, delegate := range registry.Delegates {
		bring(delegate.Request)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// standIn runs a call by a function of the test, on the test's own goroutine.
func standIn(r *testFile, ctx context.Context, L *lua.LState, fn lua.LValue, in plan.Invocation) (result plan.Result, err error) {
	if !r.tests.runOnTest(ctx, func() { result, err = callStandIn(r, L, fn, in) }) {
		err = ctx.Err()
	}
	return result, err
}

func callStandIn(r *testFile, L *lua.LState, fn lua.LValue, in plan.Invocation) (plan.Result, error) {
	r.failed = nil
	results, err := r.s.CallApart(L, fn, luacall.Arguments(r.s, in)...)
	if f, raised := err.(*sandbox.Fault); raised {
		r.s.Raised = nil
		if r.isAssertion(f.Message) {
			r.fail(f)
		}
		if failure := luacall.Failure(f); failure != nil {
			return plan.Result{}, failure
		}
		return plan.Result{}, f.ScriptError
	}
	if err != nil {
		return plan.Result{}, err
	}
	return luacall.Outcome(r.s, results, plan.OutputSchema(in.Tool))
}
