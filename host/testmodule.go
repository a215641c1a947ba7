package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	lua "github.com/yuin/gopher-lua"

	"obelus/engine"
	"obelus/host/internal/luacall"
	"obelus/host/internal/luaerr"
	"obelus/host/internal/sandbox"
	"obelus/host/internal/setting"
	"obelus/luastd"
	"obelus/store"
)

// testModule is what require "test" gives, in files of tests alone.
var testModule = []sandbox.Entry[*testRun]{
	{Name: "activity", Fn: testActivity},
	{Name: "clock", Fn: testClock_},
	{Name: "http", Fn: testHTTP},
	{Name: "plan", Fn: testPlan},
}

// test.activity(name, [call], [context]) → result, or nil and the failure's
// fields. The call is held to the tool's schema; of the context, by kind, the
// activity gets what the call's scopes grant, all if it has none.
func testActivity(r *testRun, L *lua.LState) int {
	name := L.CheckString(1)
	tool, _ := r.tests.gen.Registry().Tool(name)
	call := luacall.OptionalObject(r.s, L, 2, "call", tool)
	kinds := luacall.OptionalObject(r.s, L, 3, "context", nil)
	call["_tool"] = name
	if _, ok := call["_outputPath"]; !ok { // without one it would be held to nothing
		call["_outputPath"] = tool.ResultPath()
	}
	ctx, cancel := r.s.Budget.WaitContext()
	defer cancel()
	var result engine.Result
	var err error
	r.tests.serve(func() { result, err = engine.Try(ctx, r.tests.gen.Registry(), call, kinds) })
	var failure *engine.Failure
	switch {
	case errors.As(err, &failure):
		L.Push(lua.LNil)
		L.Push(r.s.ToLua(failure.Fields))
		return 2
	case err != nil:
		L.RaiseError("%s", plainError(err))
	case result.Message != nil:
		L.Push(r.s.ToLua(result.Message))
		return 1
	}
	L.Push(r.s.ToLua(result.Value))
	if result.To == "" {
		return 1
	}
	L.Push(lua.LNil)
	L.Push(lua.LString(result.To))
	return 3
}

// plainError is an error's text, without the place that a call has in a plan
// that nobody wrote.
func plainError(err error) string {
	var refused *engine.PlanError
	if errors.As(err, &refused) {
		return refused.Problems[0].Message
	}
	return err.Error()
}

// test.clock(seconds): what time it is from now on, for this test and what it
// runs; without an argument, the real one
func testClock_(r *testRun, L *lua.LState) int {
	if L.Get(1) == lua.LNil {
		r.tests.clock.set(nil)
		return 0
	}
	t := sandbox.TimeArgument(L, 1)
	r.tests.clock.set(&t)
	return 0
}

// test.plan(file, {input = …, tools = {name = function}, context = {kind = …}})
// → {status, output, error, calls, context}: runs a plan in a log of its own.
// tools are run by the functions, which get what activities get, also where their
// calls have a delegate by name.
func testPlan(r *testRun, L *lua.LState) int {
	file := L.CheckString(1)
	options := planOptions(r, L)
	request, registry, err := r.tests.gen.Plan(file)
	if err != nil {
		L.RaiseError("%s", err.Error())
	}
	registry = replaced(r, L, request, registry, options.RawGetString("tools"))
	start := engine.Start{Context: "test", Request: request}
	if input := options.RawGetString("input"); input != lua.LNil {
		start.Input, start.HasInput = luacall.CheckObject(r.s, L, 2, input, "input", nil), true
		start.Input = request.Lists("input", start.Input, registry.Schemas...)
	}
	laidOver(r, L, request, options.RawGetString("context"))
	log := store.NewMemory()
	ctx, cancel := r.s.Budget.WaitContext()
	defer cancel()
	runner := r.tests.gen.Settings().Runner(log, registry)
	runner.Now, runner.Approve = r.tests.clock.Now, engine.Policy{} // nobody is there to decide
	var outcome *engine.Outcome
	r.tests.serve(func() { outcome, err = runner.Run(ctx, start) })
	if err != nil {
		L.RaiseError("%s", err.Error())
	}
	pushOutcome(r, L, log, outcome)
	return 1
}

var planOptionNames = []string{"context", "input", "tools"}

func planOptions(r *testRun, L *lua.LState) *lua.LTable {
	options := L.OptTable(2, L.CreateTable(0, 0))
	r.s.Fill(options)
	for key, _ := options.Next(lua.LNil); key != lua.LNil; key, _ = options.Next(key) {
		if name := key.String(); !slices.Contains(planOptionNames, name) {
			L.ArgError(2, "unknown option "+strconv.Quote(name)+luaerr.DidYouMean(name, planOptionNames))
		}
	}
	return options
}

// laidOver adds a context's values to those that a request brings.
func laidOver(r *testRun, L *lua.LState, request *engine.Request, context lua.LValue) {
	if context == lua.LNil {
		return
	}
	kinds := luacall.CheckObject(r.s, L, 2, context, "context", nil)
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		request.Context = append(request.Context, store.Message{Type: store.TypeData, Kind: kind, Data: request.Lists(kind, kinds[kind], r.tests.gen.Registry().Schemas...), HasData: true})
	}
}

// replaced is a registry in which functions of the test run some tools.
func replaced(r *testRun, L *lua.LState, request *engine.Request, registry *engine.Registry, tools lua.LValue) *engine.Registry {
	if tools == lua.LNil {
		return registry
	}
	t, ok := tools.(*lua.LTable)
	if !ok {
		L.ArgError(2, "tools must be a table of functions, not a "+sandbox.TypeName(tools))
	}
	r.s.Fill(t)
	standIns := map[string]*engine.Registered{}
	known := callable(request, registry)
	for key, fn := t.Next(lua.LNil); key != lua.LNil; key, fn = t.Next(key) {
		name := key.String()
		if request.Planner == nil && !slices.Contains(known, name) {
			L.ArgError(2, "unknown tool "+strconv.Quote(name)+luaerr.DidYouMean(name, known))
		}
		if fn.Type() != lua.LTFunction {
			L.RaiseError("tools.%s must be a function", name)
		}
		standIns[name] = &engine.Registered{Name: name, StandIn: true, Activity: engine.ActivityFunc(func(ctx context.Context, in engine.Invocation) (engine.Result, error) {
			return standIn(r, ctx, L, fn, in)
		})}
	}
	return withStandIns(registry, standIns)
}

// withStandIns is a registry in which other activities run some tools, in delegates
// from files too, of those that the plan knows.
func withStandIns(registry *engine.Registry, standIns map[string]*engine.Registered) *engine.Registry {
	out := *registry
	out.Activities = maps.Clone(registry.Activities)
	maps.Copy(out.Activities, standIns)
	if registry.File == nil {
		return &out
	}
	out.File = func(name string) (*engine.Delegate, error) {
		d, err := registry.File(name)
		if err != nil || d.Registry == nil {
			return d, err
		}
		return &engine.Delegate{Request: d.Request, Registry: withStandIns(d.Registry, standIns)}, nil
	}
	return &out
}

// callable names the tools of a plan: those of its registry, and those that it or
// a delegate brings or calls.
func callable(request *engine.Request, registry *engine.Registry) []string {
	names := registry.Names()
	bring := func(request *engine.Request) {
		names = slices.AppendSeq(names, maps.Keys(request.Tools))
		for _, call := range request.Calls {
			object, _ := call.Call.(map[string]any)
			tool, _ := object["_tool"].(string)
			names = append(names, tool)
		}
		for _, m := range request.Context {
			if definitions, ok := m.Data.(map[string]any); ok && m.Type == store.TypeTool {
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
func standIn(r *testRun, ctx context.Context, L *lua.LState, fn lua.LValue, in engine.Invocation) (result engine.Result, err error) {
	if !r.tests.there(ctx, func() { result, err = callStandIn(r, L, fn, in) }) {
		err = ctx.Err()
	}
	return result, err
}

func callStandIn(r *testRun, L *lua.LState, fn lua.LValue, in engine.Invocation) (engine.Result, error) {
	r.failed = nil
	results, err := r.s.CallApart(L, fn, luacall.Arguments(r.s, in)...)
	if f, raised := err.(*sandbox.Fault); raised {
		r.s.Raised = nil
		if r.asserted(f.Message) {
			r.fails(f)
		}
		if failure := luacall.Failure(f); failure != nil {
			return engine.Result{}, failure
		}
		return engine.Result{}, f.ScriptError
	}
	if err != nil {
		return engine.Result{}, err
	}
	return luacall.Outcome(r.s, results, engine.OutputSchema(in.Tool))
}

// pushOutcome gives a test how a run ended.
func pushOutcome(r *testRun, L *lua.LState, log store.Log, outcome *engine.Outcome) {
	records, err := engine.Records(context.Background(), log, outcome.Context)
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

// test.http(fn): fn(request) answers what this test, and what it runs, ask of
// the network. It gets method, url, headers and body, and gives back status,
// headers, whose arrays are a field for each element, and body (a table becomes
// JSON), or nil and an error. What else goes wrong in it fails the test, whatever
// becomes of that in what asked.
func testHTTP(r *testRun, L *lua.LState) int {
	fn := L.CheckFunction(1)
	r.tests.stub(func(request luastd.HTTPRequest) (luastd.HTTPResponse, error) {
		return answerHTTP(r, L, fn, request)
	})
	return 0
}

func answerHTTP(r *testRun, L *lua.LState, fn *lua.LFunction, asked luastd.HTTPRequest) (luastd.HTTPResponse, error) {
	headers := map[string]any{}
	for name, values := range asked.Headers {
		headers[name] = luastd.JoinHeader(name, values)
	}
	request := map[string]any{"method": asked.Method, "url": asked.URL, "headers": headers, "body": asked.Body}
	results, err := r.s.CallApart(L, fn, r.s.ToLua(request))
	if err == nil && (len(results) == 0 || results[0] == lua.LNil) {
		message := "no answer"
		if len(results) > 1 {
			message = words(r, results[1])
		}
		return luastd.HTTPResponse{}, errors.New(message)
	}
	var answer luastd.HTTPResponse
	if err != nil {
		r.s.Raised, err = nil, luaerr.From(err)
		r.fails(err)
	} else if answer, err = response(r, results[0]); err != nil {
		err = fmt.Errorf("test.http: %w", err)
		r.fails(fmt.Errorf("%s %s: %w", asked.Method, asked.URL, err))
	}
	return answer, err
}

// response reads what a function of a test answers.
func response(r *testRun, v lua.LValue) (luastd.HTTPResponse, error) {
	given, err := r.s.FromLua(v, "response")
	if err != nil {
		return luastd.HTTPResponse{}, err
	}
	object, ok := given.(map[string]any)
	if !ok {
		return luastd.HTTPResponse{}, errors.New("the function must return a table with status, headers and body")
	}
	return readResponse(object)
}

var responseNames = []string{"body", "headers", "status"}

func readResponse(given map[string]any) (answer luastd.HTTPResponse, err error) {
	answer = luastd.HTTPResponse{Status: 200, Headers: map[string][]string{}}
	for name := range given {
		if !slices.Contains(responseNames, name) {
			return answer, fmt.Errorf("an answer has no %s%s", strconv.Quote(name), luaerr.DidYouMean(name, responseNames))
		}
	}
	if status, ok := given["status"]; ok {
		if answer.Status, err = setting.Count(status); err != nil {
			return answer, fmt.Errorf("status %w", err)
		}
		if answer.Status < 100 || answer.Status > 999 {
			return answer, errors.New("status is a number of three digits")
		}
	}
	headers, ok := given["headers"].(map[string]any)
	if !ok && given["headers"] != nil {
		return answer, errors.New("headers is a table by name")
	}
	for name, v := range headers {
		if answer.Headers[name], ok = headerTexts(v); !ok {
			return answer, fmt.Errorf("headers.%s is text, a number, a boolean, or an array of them", name)
		}
	}
	body, ok := given["body"]
	switch body := body.(type) {
	case nil:
		if ok {
			answer.Body = "null"
		}
	case string:
		answer.Body = body
	default:
		answer.Body = string(store.EncodeJSON(body))
	}
	return answer, nil
}

// headerTexts returns the values of the fields that a header of an answer stands for: one for
// each element of an array.
func headerTexts(v any) (texts []string, ok bool) {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	for _, v := range list {
		switch v.(type) {
		case nil, []any, map[string]any:
			return nil, false
		}
		texts = append(texts, fmt.Sprint(v))
	}
	return texts, true
}
