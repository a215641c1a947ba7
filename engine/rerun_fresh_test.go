package engine_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
	"obelus/store/memory"
)

// freshPlans makes plans whose calls refer to each other in both directions, most to what
// one of them writes alone, and some to what several do, or to what holds it.
type freshPlans struct {
	randomPlans
	calls int
	catch bool // whether references may have fallbacks
}

func (p freshPlans) own(i int) string { return fmt.Sprintf("k%d", i) }

func (p freshPlans) ref() string {
	switch p.IntN(6) {
	case 0:
		return "†s." + p.pick("x", "y")
	case 1:
		return "†s"
	}
	ref := "†" + p.pick("a", "a", "b") + "." + p.own(p.IntN(p.calls))
	if p.IntN(3) == 0 {
		ref += ".n"
	}
	return ref
}

func (p freshPlans) expression() string {
	switch n := p.IntN(10); {
	case n < 2 && p.catch:
		return p.ref() + " || " + p.ref()
	case n == 2 && p.catch:
		return p.ref() + ` || "none"`
	case n == 3:
		return p.ref() + " && " + p.ref()
	case n == 4:
		return "†(" + p.ref() + ` == "3" ? ` + p.ref() + " : " + p.ref() + ")"
	case n == 5:
		return p.pick("p", "q", "r")
	case n == 6 && p.catch && p.IntN(3) == 0:
		return `†error || "none"`
	}
	return p.ref()
}

func (p freshPlans) request(tools ...string) *plan.Request {
	request := &plan.Request{Output: store.Some(nil), Context: []store.Message{
		{Type: store.TypeData, Kind: "s", Data: store.Some(map[string]any{"x": "first", "z": "first"})},
	}}
	for i := range p.calls {
		id := p.own(i)
		call := map[string]any{"_tool": p.pick(tools...), "id": id, "v": p.expression(), "_outputPath": "†a." + id}
		if i < 2 {
			call["v"] = p.pick("p", "q")
		}
		if p.IntN(3) == 0 {
			call["w"] = p.expression()
		}
		switch {
		case call["_tool"] == "branch" || p.catch && p.IntN(3) == 0:
			call["_outputPath"] = "†a." + id + " || †b." + id
		case p.IntN(4) == 0:
			if !p.catch { // for whoever reads more than it, it is nothing to wait for
				call["v"] = p.pick("p", "q")
				delete(call, "w")
			}
			call["_outputPath"] = "†s." + p.pick("x", "y", "x.n")
			call["_outputMethod"] = p.pick("set", "set", "merge")
		}
		if p.IntN(6) == 0 {
			call["_scopes"] = []any{p.pick("s", "s.x")}
			if p.catch {
				call["_scopes"] = []any{p.pick("s", "s.x", "a")}
			}
		}
		if p.IntN(8) == 0 {
			call["_instance"] = "①"
		}
		request.Calls = append(request.Calls, plan.Source{Call: call})
	}
	request.Output.Value = "†(†a." + p.own(p.IntN(p.calls)) + " || †b." + p.own(p.IntN(p.calls)) + " || 0)"
	return request
}

// seen keeps what the activities of a context were given last.
type seen struct {
	mu     sync.Mutex
	by     map[string]string // by key
	broken map[string]bool   // the calls, by id, whose activities fail
}

func sum(text string) int {
	h := fnv.New32a()
	h.Write([]byte(text))
	return int(h.Sum32() >> 3)
}

// valueOf is what a call comes to that is given something.
func valueOf(given string) any { return map[string]any{"n": fmt.Sprint(sum(given) % 7)} }

// registry has activities that come to what they are given, and to nothing else.
func (s *seen) registry() *plan.Registry {
	r := plan.NewRegistry()
	add := func(name string, f func(in plan.Invocation, given string) (plan.Result, error)) {
		r.Activities[name] = &plan.Registered{Name: name, Activity: able{run: func(_ context.Context, in plan.Invocation) (plan.Result, error) {
			given := string(store.EncodeJSON([]any{in.Call["id"], in.Call["v"], in.Call["w"], in.Context}))
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.by[in.Key] = given; s.broken[in.Call["id"].(string)] {
				return plan.Result{}, plan.NewFailure("not yet")
			}
			return f(in, given)
		}, ahead: func(_ context.Context, in plan.Invocation) bool { return sum(in.Key)%3 > 0 }}}
	}
	value := func(in plan.Invocation, given string) plan.Result { return plan.Result{Value: valueOf(given)} }
	add("calc", func(in plan.Invocation, given string) (plan.Result, error) { return value(in, given), nil })
	add("branch", func(in plan.Invocation, given string) (plan.Result, error) {
		result := value(in, given)
		result.To = []string{"†a.", "†b."}[sum(given)%2] + in.Call["id"].(string)
		return result, nil
	})
	add("maybe", func(in plan.Invocation, given string) (plan.Result, error) {
		if sum(given)%3 == 0 {
			return plan.Result{}, plan.NewFailure("no")
		}
		return value(in, given), nil
	})
	return r
}

// story tells how the calls of a run stand, what each was given and where it wrote.
func (s *seen) story(outcome *journal.Outcome, name string) string {
	var b strings.Builder
	for _, r := range outcome.Calls {
		fmt.Fprintf(&b, "%s %s %s %v", r.Call, r.Tool, r.Status, r.Writes)
		if r.Started != "" { // else it was refused, or skipped
			fmt.Fprint(&b, " ", s.by[name+"/"+r.Call])
		}
		b.WriteByte('\n')
	}
	fmt.Fprintln(&b, outcome.Status, string(store.EncodeJSON(outcome.Output)))
	return b.String()
}

// fresh makes what the two tests below need: a plan that is good and whose values do not
// depend on timing, a runner and what it gives.
func (p freshPlans) fresh(t *testing.T, tools ...string) (*plan.Request, *engine.Runner, *seen) {
	for {
		s := &seen{by: map[string]string{}, broken: map[string]bool{}}
		r := &engine.Runner{Log: memory.New(), Registry: s.registry(), Parallel: 1 + p.IntN(6)}
		p.calls = 2 + p.IntN(9)
		request := p.request(tools...)
		if checked, err := r.Check(t.Context(), engine.Start{Context: "c", Request: request}); err == nil && !hasUnordered(checked) {
			return request, r, s
		}
	}
}

// TestRerun_EqualsFreshRun: what runs again in a fork, with an argument corrected, is given what
// the corrected plan gives it from the start, and so comes to the same; also where the
// graph leaves out most of its edges. What replays it says so too.
func TestRerun_EqualsFreshRun(t *testing.T) {
	for _, writers := range []int{64, 1} {
		defer engine.BoundWriters(writers)()
		p, compared := freshPlans{randomPlans: randomPlans{rand.New(rand.NewPCG(*firstSeed, 3))}, catch: true}, 0
		for range *plans {
			request, r, s := p.fresh(t, "calc", "branch", "branch", "maybe")
			if outcome, err := r.Run(t.Context(), engine.Start{Context: "c", Request: request}); err != nil || !outcome.Status.Finished() {
				continue
			}
			maps.Copy(s.by, inFork(s.by, "c", "f"))
			if _, err := journal.Fork(t.Context(), r.Log, "c", 0, "f"); err != nil {
				t.Fatal(err)
			}
			x, set := p.IntN(2), map[string]any{"v": p.pick("p", "q", "r", "s", "t")} // where v holds no reference, so that the graph is the same
			again, err := r.Resume(t.Context(), engine.Resume{Context: "f", From: fmt.Sprintf("1.%d", x+1), Set: set})
			if err != nil {
				continue
			}
			corrected := *request
			corrected.Calls = slices.Clone(request.Calls)
			call := maps.Clone(corrected.Calls[x].Call.(map[string]any))
			maps.Copy(call, set)
			corrected.Calls[x].Call = call
			outcome, err := r.Run(t.Context(), engine.Start{Context: "g", Request: &corrected})
			if err != nil || !outcome.Status.Finished() || overtakes(again.Calls) {
				continue
			}
			compared++
			if got, want := s.story(again, "f"), s.story(outcome, "g"); got != want {
				t.Fatalf("seed %d: again, from call %d with %v\n%s\nbut from the start\n%s\n%s", *firstSeed, x+1, set, got, want, callsOf(request))
			}
			replays(t, r, "f", again, request)
		}
		if compared < *plans/20 {
			t.Errorf("compared %d", compared)
		}
	}
}

// overtakes tells whether what a call writes when it runs again is now newer than what one
// after it wrote there that does not.
func overtakes(calls []journal.Record) bool {
	overlap := func(a, b journal.Record) bool {
		return slices.ContainsFunc(a.Writes, func(path string) bool {
			return slices.ContainsFunc(b.Writes, func(other string) bool {
				return store.MustParsePath(path).Overlaps(store.MustParsePath(other))
			})
		})
	}
	for i, a := range calls {
		if a.Before != 0 && slices.ContainsFunc(calls[i+1:], func(b journal.Record) bool { return b.Before == 0 && overlap(a, b) }) {
			return true
		}
	}
	return false
}

// inFork is what calls of a context were given, for a fork of it.
func inFork(by map[string]string, of, name string) map[string]string {
	copied := map[string]string{}
	for key, given := range by {
		if rest, ok := strings.CutPrefix(key, of+"/"); ok {
			copied[name+"/"+rest] = given
		}
	}
	return copied
}

// TestRetry_EqualsFreshRun: calls that failed and are tried again, and those behind them, are
// given what they are where nothing fails.
func TestRetry_EqualsFreshRun(t *testing.T) {
	for _, writers := range []int{64, 1} {
		defer engine.BoundWriters(writers)()
		p, compared := freshPlans{randomPlans: randomPlans{rand.New(rand.NewPCG(*firstSeed, 4))}}, 0
		for range *plans {
			request, r, s := p.fresh(t, "calc", "calc", "branch")
			p.breaks(s, request)
			outcome, err := r.Run(t.Context(), engine.Start{Context: "c", Request: request})
			for err == nil && isRetried(outcome) {
				outcome, err = r.Resume(t.Context(), p.mends(s, outcome))
			}
			if err != nil {
				t.Fatal(err)
			}
			clear(s.broken)
			fresh, err := r.Run(t.Context(), engine.Start{Context: "g", Request: request})
			if err != nil || !fresh.Status.Finished() || slices.ContainsFunc(fresh.Calls, isFailed) {
				continue
			}
			compared++
			if got, want := s.story(outcome, "c"), s.story(fresh, "g"); got != want {
				t.Fatalf("seed %d: retried\n%s\nbut undisturbed\n%s\n%s", *firstSeed, got, want, callsOf(request))
			}
			replays(t, r, "c", outcome, request)
		}
		if compared < *plans/20 {
			t.Errorf("compared %d", compared)
		}
	}
}

// breaks has some calls fail behind which others are skipped that miss what they write.
func (p freshPlans) breaks(s *seen, request *plan.Request) {
	for i := range request.Calls {
		call := request.Calls[i].Call.(map[string]any)
		s.broken[p.own(i)] = call["_tool"] == "calc" && call["_outputPath"] == "†a."+p.own(i) && p.IntN(2) == 0
	}
}

// mends has some calls that failed do so no more, or come to what they would come to, as
// somebody knows who has seen what they were given.
func (p freshPlans) mends(s *seen, outcome *journal.Outcome) engine.Resume {
	resume := engine.Resume{Context: "c", Result: map[string]any{}}
	for _, call := range outcome.Calls {
		switch {
		case !isFailed(call):
		case p.IntN(4) == 0:
			resume.Result[call.Call] = valueOf(s.by["c/"+call.Call])
			delete(s.broken, p.own(call.Position-1))
		case p.IntN(2) == 0:
			resume.Retry = append(resume.Retry, call.Call)
			delete(s.broken, p.own(call.Position-1))
		}
	}
	return resume
}

// isRetried tells whether there is something to be tried again.
func isRetried(outcome *journal.Outcome) bool {
	return outcome.Status == journal.RunFailed && slices.ContainsFunc(outcome.Calls, isFailed)
}

func isFailed(r journal.Record) bool { return r.Status == journal.Failed }

// TestRerun_ReadsTheSameValues: what runs again in a fork reads what it read, whatever was appended
// there since.
func TestRerun_ReadsTheSameValues(t *testing.T) {
	r := newRunner(memory.New(), map[string]activity{"value": value})
	s := start(t, `[{"_tool": "value", "value": "†state.n", "x": 1, "_outputPath": "†a"}]`)
	s.Request.Output.Set, s.Request.Output.Value = true, "†a"
	s.Request.Context = messages(t, `{"type": "state", "n": "old"}`)
	if outcome, err := r.Run(t.Context(), s); err != nil || outcome.Status != journal.RunDone {
		t.Fatal(outcome, err)
	}
	if _, err := journal.Fork(t.Context(), r.Log, "c", 0, "f"); err != nil {
		t.Fatal(err)
	}
	if _, err := engine.Append(t.Context(), r.Log, "f", messages(t, `{"type": "state", "n": "new"}`)); err != nil {
		t.Fatal(err)
	}
	outcome, err := r.Resume(t.Context(), engine.Resume{Context: "f", From: "1.1", Set: map[string]any{"x": 2}})
	if err != nil || outcome.Output != "old" {
		t.Errorf("it read %+v, %v", outcome, err)
	}
}
