package engine_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/engine/replay"
	"obelus/store"
	"obelus/store/memory"
)

var plans = flag.Int("plans", 600, "how many random plans are held to give the same at every parallelism")

// randomPlans makes calls over few paths, so that they meet often.
type randomPlans struct{ *rand.Rand }

func (r randomPlans) pick(all ...string) string { return all[r.IntN(len(all))] }

func (r randomPlans) path() string {
	path := "†" + r.pick("state", "state", "out") + "." + r.pick("a", "b", "c", "d", "e", "f", "g", "h")
	if r.IntN(3) == 0 {
		path += "." + r.pick("x", "y")
	}
	return path
}

func (r randomPlans) expression() string {
	switch r.IntN(6) {
	case 0:
		return r.path() + " || " + r.path()
	case 1:
		return r.path() + " && " + r.path()
	case 2:
		return r.path() + ` || "none"`
	}
	return r.path()
}

// condition is an _if, which holds about as often as not.
func (r randomPlans) condition() any {
	switch r.IntN(7) {
	case 0:
		return r.IntN(2) == 0
	case 3, 4: // many are each other's negation
		return r.pick(`†state.a == "old"`, `†state.a != "old"`, `not (†state.a == "old")`, `not (†state.a != "old")`)
	case 1:
		return "(" + r.expression() + `) == "old"`
	case 2:
		return "(" + r.expression() + `) != "old"`
	}
	return r.expression()
}

func (r randomPlans) call() map[string]any {
	first, second := r.path(), r.path()
	call := map[string]any{"_tool": r.pick("value", "value", "value", "to", "fail"), "_outputPath": first}
	switch {
	case call["_tool"] == "to" || r.IntN(4) == 0:
		call["_outputPath"] = first + " || " + second
	case r.IntN(4) == 0:
		call["_outputPath"] = first + " && " + second
	}
	call["path"] = store.Dagger + r.pick(first, second)
	switch r.IntN(4) {
	case 0:
		call["value"] = map[string]any{"x": r.expression()}
	case 1:
		call["value"] = []any{r.expression(), r.pick("k", "l")}
	case 2:
		call["value"] = r.pick("m", "n")
	default:
		call["value"] = r.expression()
	}
	call["_outputMethod"] = r.pick("set", "set", "merge", "push")
	if r.IntN(8) == 0 {
		call["_scopes"] = []any{"state"}
	}
	if r.IntN(5) == 0 {
		call["_instance"] = r.pick("①", "②")
	}
	if r.IntN(6) == 0 {
		call["_if"] = r.condition()
	}
	switch r.IntN(12) {
	case 0:
		call["_after"] = r.path()
	case 1:
		call["_after"] = []any{r.path(), r.path()}
	}
	return call
}

func (r randomPlans) request() *plan.Request {
	request := &plan.Request{Output: store.Some("†state || †out")}
	for range 1 + r.IntN(10) {
		request.Calls = append(request.Calls, plan.Source{Call: r.call()})
	}
	for range 2 + r.IntN(12) {
		path := store.MustParsePath(r.path())
		request.Context = append(request.Context, store.Message{
			Type: store.TypeData, Kind: path.Kind(), Data: store.Some(store.Wrap(path, "old")),
		})
	}
	return request
}

// yielding lets others run in between, now and then.
func yielding(seed uint64) *plan.Registry {
	r := plan.NewRegistry()
	add := func(name string, f func(in plan.Invocation) (plan.Result, error)) {
		r.Activities[name] = &plan.Registered{Name: name, Activity: able{run: func(_ context.Context, in plan.Invocation) (plan.Result, error) {
			for range rand.New(rand.NewPCG(seed, uint64(len(in.Key)+int(in.Key[len(in.Key)-1])))).IntN(20) {
				runtime.Gosched()
			}
			return f(in)
		}, ahead: func(context.Context, plan.Invocation) bool { return seed%2 == 0 }}}
	}
	add("value", func(in plan.Invocation) (plan.Result, error) { return plan.Result{Value: in.Call["value"]}, nil })
	add("to", func(in plan.Invocation) (plan.Result, error) {
		return plan.Result{Value: in.Call["value"], To: in.Call["path"].(string)}, nil
	})
	add("fail", func(plan.Invocation) (plan.Result, error) { return plan.Result{}, plan.NewFailure("no") })
	return r
}

// outcomeOf runs a request and tells all of it that timing must not change.
func outcomeOf(t *testing.T, request *plan.Request, parallel int, seed uint64) string {
	log := memory.New()
	r := &engine.Runner{Log: log, Registry: yielding(seed), Parallel: parallel}
	outcome, err := r.Run(t.Context(), engine.Start{Context: "c", Request: request})
	if err != nil {
		t.Fatal(err)
	}
	holdReads(t, log, outcome)
	if outcome.Status.Finished() {
		replayed, err := replay.Run(t.Context(), r, "c", nil)
		if err != nil || len(replayed.Differences) > 0 {
			t.Fatalf("replayed: %v, %+v", err, replayed)
		}
	}
	var b strings.Builder
	for _, record := range outcome.Calls {
		fmt.Fprintln(&b, describeRecord(record))
	}
	fmt.Fprintln(&b, outcome.Status, outcome.Error, string(store.EncodeJSON(outcome.Output)))
	for _, instance := range []string{"", "①", "②"} {
		for _, kind := range []string{"state", "out", "error"} {
			resolved, err := store.Resolver{Log: log, Context: "c"}.Resolve(t.Context(), store.KindPath(kind), instance)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintln(&b, kind, instance, resolved.Exists, string(store.EncodeJSON(resolved.Value)))
		}
	}
	return b.String()
}

func callsOf(request *plan.Request) string {
	calls := make([]any, len(request.Calls))
	for i, src := range request.Calls {
		calls[i] = src.Call
	}
	return string(store.EncodeJSON(calls))
}

// TestSimulation_TimingDecidesNothing holds protocol §7: "in a plan that checks without the
// warning on unordered writers, what a call reads never depends on timing."
func TestSimulation_TimingDecidesNothing(t *testing.T) {
	r := randomPlans{rand.New(rand.NewPCG(*firstSeed, 0))}
	ran, statuses := 0, map[journal.Status]int{}
	for ran < *plans {
		request := r.request()
		checker := &engine.Runner{Log: memory.New(), Registry: yielding(0)}
		checked, err := checker.Check(t.Context(), engine.Start{Context: "c", Request: request})
		if err != nil {
			if !errors.As(err, new(*plan.PlanError)) && !errors.As(err, new(*plan.MessageError)) {
				t.Fatal(err)
			}
			continue
		}
		if hasUnordered(checked) || pushesMeet(checked) {
			continue
		}
		ran++
		want := outcomeOf(t, request, 1, 0)
		for _, status := range []journal.Status{journal.Done, journal.Failed, journal.Skipped, journal.Waiting, journal.Blocked} {
			statuses[status] += strings.Count(want, " "+string(status))
		}
		for _, parallel := range []int{2, 16} {
			if got := outcomeOf(t, request, parallel, r.Uint64()); got != want {
				t.Fatalf("seed %d: at parallel %d\n%s\nbut at 1\n%s\n%s", *firstSeed, parallel, got, want, callsOf(request))
			}
		}
	}
	t.Logf("%d plans, calls %v", ran, statuses)
}

// pushesMeet tells whether two calls push to one path: the elements then stand
// in the order of completion, and nobody is warned of it.
func pushesMeet(p *plan.Plan) bool {
	seen := map[store.Path]bool{}
	for _, call := range p.Calls {
		for _, path := range call.Output.Writes() {
			if call.Method == store.Push && seen[path] {
				return true
			}
			seen[path] = seen[path] || call.Method == store.Push
		}
	}
	return false
}

func hasUnordered(p *plan.Plan) bool {
	for _, warning := range p.Warnings {
		if warning.Code == plan.CodeUnordered {
			return true
		}
	}
	return false
}

// TestReplay_CallsThatRanAgain forks random plans anywhere, and runs calls of theirs
// again, tries them again, goes on without them, and appends: replay brings out what the
// log says.
func TestReplay_CallsThatRanAgain(t *testing.T) {
	r := randomPlans{rand.New(rand.NewPCG(*firstSeed, 0))}
	replays := 0
	for range *plans {
		request, log, registry := r.request(), memory.New(), yielding(r.Uint64())
		registry.Delegates["twice"] = &plan.Delegate{Request: &plan.Request{Output: store.Some("†b"), Calls: []plan.Source{
			{Call: map[string]any{"_tool": "value", "value": "†input.value", "_outputPath": "†a"}},
			{Call: map[string]any{"_tool": "value", "value": []any{"†a", "†a"}, "_outputPath": "†b || †c"}},
		}}}
		calls := request.Calls
		for _, src := range calls {
			switch call := src.Call.(map[string]any); {
			case r.IntN(8) == 0:
				call["_delegate"] = plan.Anonymous
			case r.IntN(8) == 0 && call["_tool"] == "value":
				call["_delegate"] = "twice"
			case r.IntN(8) == 0 && call["_tool"] != "to":
				delete(call, "_outputPath")
				delete(call, "_outputMethod")
			}
		}
		if r.IntN(3) == 0 {
			request = r.planned(request)
		}
		runner := &engine.Runner{Log: log, Registry: registry, Parallel: 4}
		if _, err := runner.Run(t.Context(), engine.Start{Context: "c", Request: request}); err != nil {
			continue
		}
		head, err := log.Head(t.Context(), "c")
		if err != nil {
			t.Fatal(err)
		}
		at := head - r.Int64N(head)*r.Int64N(2)
		if _, err := journal.Fork(t.Context(), log, "c", at, "f"); errors.As(err, new(*store.ForkError)) {
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		said := []any{"fork", at}
		for range 1 + r.IntN(3) {
			if r.IntN(4) == 0 {
				m := store.MustParsePath(r.path())
				said = append(said, "append", m)
				if _, err := engine.Append(t.Context(), log, "f", []store.Message{{Type: store.TypeData, Kind: m.Kind(), Data: store.Some(store.Wrap(m, "new"))}}); err != nil {
					t.Fatal(err)
				}
			}
			again := r.again(t, log)
			said = append(said, again.From, again.Set, again.Retry, again.Skip)
			again.Request = request
			if outcome, err := runner.Resume(t.Context(), again); err != nil || !outcome.Status.Finished() {
				continue
			}
			for _, planner := range []*plan.Request{nil, request} {
				replays++
				replayed, err := replay.Run(t.Context(), runner, "f", planner)
				if err != nil || len(replayed.Differences) > 0 {
					t.Fatalf("seed %d: with its planner %t: %v, %+v\n%s\n%+v", *firstSeed, planner != nil, err, replayed, callsOf(&plan.Request{Calls: calls}), said)
				}
			}
		}
	}
	if replays < *plans/10 {
		t.Errorf("replayed %d times", replays)
	}
}

// planned gives the calls in two plans, after one that is refused now and then.
func (r randomPlans) planned(request *plan.Request) *plan.Request {
	half := r.IntN(len(request.Calls) + 1)
	ticks := [][]plan.Source{request.Calls[:half], request.Calls[half:]}
	if r.IntN(3) == 0 {
		ticks = append([][]plan.Source{{{Call: map[string]any{"_tool": "none"}}}}, ticks...)
	}
	return &plan.Request{Context: request.Context, Planner: plan.PlannerFunc(func(_ context.Context, ask plan.Ask) (*plan.Solution, error) {
		last := ask.Tick >= len(ticks)
		if last {
			return &plan.Solution{Calls: ticks[len(ticks)-1], Output: request.Output.Value}, nil
		}
		return &plan.Solution{Calls: ticks[ask.Tick-1]}, nil
	})}
}

// again is something that a person may ask for in context f.
func (r randomPlans) again(t *testing.T, log store.Log) engine.Resume {
	records, err := journal.In(log, "f").Records(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	again := engine.Resume{Context: "f"}
	if len(records) == 0 {
		return again
	}
	switch call := records[r.IntN(len(records))]; {
	case call.Status == journal.Failed && r.IntN(3) == 0:
		again.Retry = []string{call.Call}
	case call.Status == journal.Failed && r.IntN(3) == 0:
		again.Skip = []string{call.Call}
	default:
		again.From = call.Call
		if r.IntN(3) == 0 {
			again.Set = map[string]any{"value": "other"}
		}
	}
	return again
}
