package luatest

import (
	"context"
	"maps"
	"slices"
	"strconv"

	lua "github.com/yuin/gopher-lua"

	"obelus/engine/plan"
	"obelus/host/internal/luacall"
	"obelus/host/internal/luaerr"
	"obelus/host/internal/sandbox"
	"obelus/store"
)

// replaced returns a registry in which functions of the test run some tools.
func replaced(r *testFile, L *lua.LState, request *plan.Request, registry *plan.Registry, tools lua.LValue) *plan.Registry {
	if tools == lua.LNil {
		return registry
	}
	t, ok := tools.(*lua.LTable)
	if !ok {
		L.ArgError(2, "tools must be a table of functions, not a "+sandbox.TypeName(tools))
	}
	r.s.Fill(t)
	standIns := map[string]*plan.Registered{}
	known := callable(request, registry)
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

// callable names the tools of a plan: the tools of its registry, and the tools that it or a
// delegate has or calls.
func callable(request *plan.Request, registry *plan.Registry) []string {
	names := registry.Names()
	bring := func(request *plan.Request) {
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
func standIn(r *testFile, ctx context.Context, L *lua.LState, fn lua.LValue, in plan.Invocation) (result plan.Result, err error) {
	if !r.tests.there(ctx, func() { result, err = callStandIn(r, L, fn, in) }) {
		err = ctx.Err()
	}
	return result, err
}

func callStandIn(r *testFile, L *lua.LState, fn lua.LValue, in plan.Invocation) (plan.Result, error) {
	r.failed = nil
	results, err := r.s.CallApart(L, fn, luacall.Arguments(r.s, in)...)
	if f, raised := err.(*sandbox.Fault); raised {
		r.s.Raised = nil
		if r.asserted(f.Message) {
			r.fails(f)
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
