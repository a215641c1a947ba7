package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/engine/replay"
	"obelus/store"
	"obelus/store/memory"
)

type activity = func(ctx context.Context, in plan.Invocation) (plan.Result, error)

// value gives back the parameter "value".
func value(_ context.Context, in plan.Invocation) (plan.Result, error) {
	return plan.Result{Value: in.Call["value"]}, nil
}

// untilStopped has no result before its run is over.
func untilStopped(ctx context.Context, _ plan.Invocation) (plan.Result, error) {
	<-ctx.Done()
	return plan.Result{}, ctx.Err()
}

func newRunner(log store.Log, activities map[string]activity) *engine.Runner {
	registry := plan.NewRegistry()
	for name, f := range activities {
		registry.Activities[name] = &plan.Registered{Name: name, Activity: plan.ActivityFunc(f)}
	}
	return &engine.Runner{Log: log, Registry: registry, Drain: -1}
}

// readPlan is a request of calls, as JSON; of an object, with its output.
func readPlan(t testing.TB, text string) *plan.Request {
	t.Helper()
	v, err := store.DecodeJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	request := &plan.Request{}
	if object, ok := v.(map[string]any); ok {
		v = object["calls"]
		request.Output.Value, request.Output.Set = object["output"]
	}
	for _, call := range v.([]any) {
		request.Calls = append(request.Calls, plan.Source{Call: call})
	}
	return request
}

func start(t testing.TB, text string) engine.Start {
	return engine.Start{Context: "c", Request: readPlan(t, text)}
}

func messages(t testing.TB, text string) []store.Message {
	t.Helper()
	all, err := store.ParseMessages([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// get is the value of a path as JSON, or "missing".
func get(t testing.TB, log store.Log, path string) string {
	t.Helper()
	resolved, err := store.Resolver{Log: log, Context: "c"}.Resolve(t.Context(), store.MustParsePath(path), "")
	if err != nil {
		t.Fatal(err)
	}
	if !resolved.Exists {
		return "missing"
	}
	return string(store.EncodeJSON(resolved.Value))
}

// expect holds an outcome against its status and its calls, as the cases of
// the conformance tests write them.
func expect(t testing.TB, outcome *journal.Outcome, err error, status journal.RunStatus, calls ...string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range outcome.Calls {
		got = append(got, describeRecord(r))
	}
	if outcome.Status != status {
		t.Errorf("the run is %s, not %s", outcome.Status, status)
	}
	if diff := cmp.Diff(calls, got); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// counter counts what ran, by key.
type counter struct {
	mu   sync.Mutex
	runs map[string]int
}

func (c *counter) of(f activity) activity {
	return func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
		c.mu.Lock()
		if c.runs == nil {
			c.runs = map[string]int{}
		}
		c.runs[in.Key]++
		c.mu.Unlock()
		return f(ctx, in)
	}
}

func (c *counter) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(c.runs)) {
		parts = append(parts, fmt.Sprintf("%s×%d", strings.TrimPrefix(key, "c/"), c.runs[key]))
	}
	return strings.Join(parts, " ")
}

// gate is an activity that reports that it has begun and then waits to be cut
// off, the first time; later it gives back its value.
type gate struct {
	begun chan struct{}
	once  sync.Once
}

func newGate() *gate { return &gate{begun: make(chan struct{})} }

func (g *gate) run(ctx context.Context, in plan.Invocation) (plan.Result, error) {
	first := false
	g.once.Do(func() { first = true })
	if first {
		close(g.begun)
		<-ctx.Done()
		return plan.Result{}, ctx.Err()
	}
	return value(ctx, in)
}

// interrupt runs a plan and cancels it once the gate has been reached.
func interrupt(t *testing.T, r *engine.Runner, g *gate, s engine.Start) (*journal.Outcome, error) {
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-g.begun
		cancel()
	}()
	return r.Run(ctx, s)
}

const chained = `{"calls": [
	{"_tool": "value", "value": 1, "_outputPath": "†state.a"},
	{"_tool": "gate", "value": "†state.a + 1", "_outputPath": "†state.b"},
	{"_tool": "value", "value": "†state.b + 1", "_outputPath": "†state.c"},
	{"_tool": "value", "value": "x", "_outputPath": "†state.d"}
], "output": "†state"}`

func TestResume_RunsCallsWithoutOutcome(t *testing.T) {
	log, ran, g := memory.New(), &counter{}, newGate()
	r := newRunner(log, map[string]activity{"value": ran.of(value), "gate": ran.of(g.run)})
	r.Parallel = 1
	outcome, err := interrupt(t, r, g, start(t, chained))
	expect(t, outcome, err, journal.RunInterrupted,
		"1.1 value done → †state.a", "1.2 gate interrupted", "1.3 value blocked", "1.4 value blocked")
	if _, err := r.Run(t.Context(), start(t, chained)); !errors.As(err, new(*engine.UnfinishedError)) {
		t.Errorf("another run begins before the first has ended: %v", err)
	}
	outcome, err = r.Resume(t.Context(), engine.Resume{Context: "c"})
	expect(t, outcome, err, journal.RunDone,
		"1.1 value done → †state.a", "1.2 gate done → †state.b", "1.3 value done → †state.c", "1.4 value done → †state.d")
	if got, want := ran.String(), "1.1×1 1.2×2 1.3×1 1.4×1"; got != want {
		t.Errorf("ran %s, not %s", got, want)
	}
	if got, want := string(store.EncodeJSON(outcome.Output)), `{"a":1,"b":2,"c":3,"d":"x"}`; got != want {
		t.Errorf("gives %s, and undisturbed %s", got, want)
	}
	again, err := r.Resume(t.Context(), engine.Resume{Context: "c"})
	if err != nil || again.Status != journal.RunDone || ran.String() != "1.1×1 1.2×2 1.3×1 1.4×1" {
		t.Errorf("resuming what is done: %v, %v; ran %s", again, err, ran)
	}
}

// TestStop_LateResultIsKept holds that what an activity has
// done is not done again because the run was stopped meanwhile.
func TestStop_LateResultIsKept(t *testing.T) {
	log, ran, g := memory.New(), &counter{}, newGate()
	stubborn := func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
		_, _ = g.run(ctx, in)
		return value(ctx, in)
	}
	r := newRunner(log, map[string]activity{"value": ran.of(value), "gate": ran.of(stubborn)})
	outcome, err := interrupt(t, r, g, start(t, chained))
	if err != nil || outcome.Status != journal.RunInterrupted || outcome.Calls[1].Status != journal.Done {
		t.Fatal(outcome, err)
	}
	if _, err = r.Resume(t.Context(), engine.Resume{Context: "c"}); err != nil || ran.String() != "1.1×1 1.2×1 1.3×1 1.4×1" {
		t.Errorf("ran %s, %v", ran, err)
	}
}

// printed is a context's log, a message a line.
func printed(t testing.TB, log store.Log) string {
	t.Helper()
	var b strings.Builder
	for m, err := range log.Messages(t.Context(), store.Filter{Context: "c"}) {
		if err != nil {
			t.Fatal(err)
		}
		text, _ := m.MarshalJSON()
		b.Write(append(text, '\n'))
	}
	return b.String()
}

func TestRetry_RequeuesSkippedCalls(t *testing.T) {
	log, ran, broken := memory.New(), &counter{}, true
	r := newRunner(log, map[string]activity{"value": ran.of(value), "flaky": ran.of(func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
		if broken {
			return plan.Result{}, &plan.Failure{Fields: map[string]any{"message": "not now", "code": "busy"}}
		}
		return value(ctx, in)
	})})
	r.Parallel = 1
	outcome, err := r.Run(t.Context(), start(t, `[
		{"_tool": "flaky", "value": 1, "_outputPath": "†state.a"},
		{"_tool": "value", "value": "†state.a + 1", "_outputPath": "†state.b"},
		{"_tool": "value", "value": "†state.b + 1", "_outputPath": "†state.c"},
		{"_tool": "value", "value": "†state.a || 0", "_outputPath": "†state.d"},
		{"_tool": "flaky", "value": 1, "_outputPath": "†state.e"}]`))
	expect(t, outcome, err, journal.RunFailed, "1.1 flaky failed ! busy: not now",
		"1.2 value skipped … call 1.1 (flaky) failed, and so did not write †state.a",
		"1.3 value skipped … call 1.2 (value) was skipped, and so did not write †state.b",
		"1.4 value done → †state.d", "1.5 flaky failed ! busy: not now")
	for _, name := range []string{"1.2", "1.9", "2.1", "x"} {
		if _, err := r.Resume(t.Context(), engine.Resume{Context: "c", Retry: []string{name}}); !errors.As(err, new(*journal.NoSuchCallError)) {
			t.Errorf("retry of %s: %v", name, err)
		}
	}
	broken = false
	outcome, err = r.Resume(t.Context(), engine.Resume{Context: "c", Retry: []string{"1.1"}})
	expect(t, outcome, err, journal.RunFailed, "1.1 flaky done → †state.a", "1.2 value done → †state.b",
		"1.3 value done → †state.c", "1.4 value done → †state.d", "1.5 flaky failed ! busy: not now")
	if got, want := ran.String(), "1.1×2 1.2×1 1.3×1 1.4×1 1.5×1"; got != want {
		t.Errorf("ran %s, not %s", got, want)
	}
	if got := strings.Count(printed(t, log), `"kind":"error"`); got != 2 {
		t.Errorf("%d error messages of two failures", got)
	}
	outcome, err = r.Resume(t.Context(), engine.Resume{Context: "c", Skip: []string{"1.5"}})
	if err != nil || outcome.Status != journal.RunDone {
		t.Error(outcome, err)
	}
}

// TestResume_KnowsToolsOfThePlan holds that a stored plan stands by
// itself, consts and their numbers among it.
func TestResume_KnowsToolsOfThePlan(t *testing.T) {
	log := memory.New()
	r := newRunner(log, map[string]activity{"value": value})
	s := start(t, `[{"_tool": "own", "x": "†input.x", "_outputPath": "†state.a"}]`)
	tools, _ := store.DecodeJSON([]byte(`{"own": {"_activity": "value", "properties": {"value": {"const": 1.10}}}}`))
	s.Request.Tools = tools.(map[string]any)
	if outcome, err := r.Run(t.Context(), s); err != nil || outcome.Status != journal.RunWaiting {
		t.Fatal(outcome, err)
	}
	if _, err := engine.Append(t.Context(), log, "c", messages(t, `{"type": "input", "x": 1}`)); err != nil {
		t.Fatal(err)
	}
	outcome, err := r.Resume(t.Context(), engine.Resume{Context: "c"})
	expect(t, outcome, err, journal.RunDone, "1.1 own done → †state.a")
	if got := get(t, log, "†state.a"); got != "1.10" {
		t.Errorf("wrote %s", got)
	}
}

// TestTicks_CountOn holds that "ticks count on through a context's life", and
// that a value of an earlier tick is there for the next one.
func TestTicks_CountOn(t *testing.T) {
	log := memory.New()
	r := newRunner(log, map[string]activity{"value": value})
	if _, err := engine.Append(t.Context(), log, "c", messages(t, `{"type": "state", "n": 0}`)); err != nil {
		t.Fatal(err)
	}
	for tick := 1; tick <= 3; tick++ {
		outcome, err := r.Run(t.Context(), start(t, `[{"_tool": "value", "value": "†state.n", "_outputPath": "†state.list", "_outputMethod": "push"},
			{"_tool": "value", "value": "†(len(†state.list))", "_outputPath": "†state.n"}]`))
		expect(t, outcome, err, journal.RunDone, fmt.Sprintf("%d.1 value done → †state.list", tick), fmt.Sprintf("%d.2 value done → †state.n", tick))
	}
	if got := get(t, log, "†state"); got != `{"list":[0,1,2],"n":3}` {
		t.Errorf("gives %s", got)
	}
}

// TestWhy_ChoiceAmongExistingValues holds that calls stand behind different
// alternatives only if they need what is written there: with both references
// in the context already, both run.
func TestWhy_ChoiceAmongExistingValues(t *testing.T) {
	r := newRunner(memory.New(), map[string]activity{"value": value})
	s := start(t, `[{"_tool": "value", "value": "†input.x", "_outputPath": "†out"},
		{"_tool": "value", "value": "†input.y", "_outputPath": "†out"},
		{"_tool": "value", "value": 3, "_outputPath": "†input.x || †input.y"}]`)
	for given, want := range map[string]bool{`{"type": "meta", "meta": 1}`: false, `{"type": "input", "x": 1, "y": 2}`: true} {
		s.Request.Context = messages(t, given)
		checked, err := r.Check(t.Context(), s)
		if err != nil || hasUnordered(checked) != want {
			t.Errorf("with %s: %v, %v", given, checked, err)
		}
	}
}

// TestPlan_ManyWritersOfOnePath holds that calls which each read and write one path
// still run one after the other when there are more than are wired one by one,
// and that one which only reads it waits for all of them.
func TestPlan_ManyWritersOfOnePath(t *testing.T) {
	const calls = 300
	request := &plan.Request{Output: store.Some("†state.seen")}
	for range calls {
		request.Calls = append(request.Calls, plan.Source{Call: map[string]any{
			"_tool": "value", "value": "†state.n + 1", "_scopes": []any{"state"}, "_outputPath": "†state.n",
		}})
	}
	request.Calls = append(request.Calls, plan.Source{Call: map[string]any{"_tool": "value", "value": "†state.n", "_outputPath": "†state.seen"}})
	request.Context = []store.Message{{Type: store.TypeData, Kind: "state", Data: store.Some(map[string]any{"n": json.Number("0")})}}
	r := newRunner(memory.New(), map[string]activity{"value": value})
	r.Parallel = 16
	outcome, err := r.Run(t.Context(), engine.Start{Context: "c", Request: request})
	if err != nil || outcome.Output != json.Number(strconv.Itoa(calls)) {
		t.Errorf("%v, %v", outcome, err)
	}
}

// TestConcurrency_SkippedCallFreesItsSlot holds that a call which fails before it
// takes its activity's one place leaves that place to the next.
func TestConcurrency_SkippedCallFreesItsSlot(t *testing.T) {
	r := newRunner(memory.New(), map[string]activity{"value": value})
	r.Registry.Activities["value"].Concurrency = 1
	s := start(t, `{"calls": [{"_tool": "value", "value": 1, "_outputPath": "†out.a"},
		{"_tool": "value", "value": "†state.name * 2", "_outputPath": "†out.b"}, {"_tool": "value", "value": 3, "_outputPath": "†out.c"}]}`)
	s.Request.Context = []store.Message{{Type: store.TypeData, Kind: "state", Data: store.Some(map[string]any{"name": "x"})}}
	outcome, err := r.Run(t.Context(), s)
	if err != nil || outcome.Status != journal.RunFailed || outcome.Calls[2].Status != journal.Done {
		t.Errorf("%+v, %v", outcome, err)
	}
}

// TestFireAndForget_Waits holds that such a call, too, waits for what is open.
func TestFireAndForget_Waits(t *testing.T) {
	log, ran := memory.New(), &counter{}
	r := newRunner(log, map[string]activity{"value": ran.of(value)})
	outcome, err := r.Run(t.Context(), start(t, `[{"_tool": "value", "value": "†input.later"}, {"_tool": "value", "value": 1, "_outputPath": "†out.a"}]`))
	if err != nil || outcome.Status != journal.RunWaiting {
		t.Fatalf("%+v, %v", outcome, err)
	}
	messages, err := store.ParseMessages([]byte(`[{"type": "input", "later": 5}, {"type": "data", "kind": "error", "data": {"call": {"x": 1}}}]`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := engine.Append(t.Context(), log, "c", messages); err != nil {
		t.Fatal(err)
	}
	r.Drain = 0
	outcome, err = r.Resume(t.Context(), engine.Resume{Context: "c"})
	if err != nil || outcome.Status != journal.RunDone || outcome.Calls[0].Status != journal.Done {
		t.Errorf("%+v, %v", outcome, err)
	}
}

// TestClockSetBack: no call takes less than no time.
func TestClockSetBack(t *testing.T) {
	r := newRunner(memory.New(), map[string]activity{"value": value})
	var mu sync.Mutex
	now := time.Now()
	r.Now = func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(-time.Hour)
		return now
	}
	outcome, err := r.Run(t.Context(), start(t, `[{"_tool": "value", "value": 1, "_outputPath": "†a"}, {"_tool": "value", "value": "†a", "_outputPath": "†b"}]`))
	if err != nil || outcome.Status != journal.RunDone {
		t.Fatal(outcome, err)
	}
	for _, record := range outcome.Calls {
		if record.Duration < 0 {
			t.Errorf("%s took %v ms", record.Call, record.Duration)
		}
	}
}

func TestRun_ChecksContextName(t *testing.T) {
	log := memory.New()
	r := newRunner(log, map[string]activity{"value": value})
	if _, err := r.Run(t.Context(), start(t, `[]`)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "a b", "a/b", "†", strings.Repeat("x", 65), ".", ".."} {
		s := start(t, `[]`)
		s.Context = name
		_, ran := r.Run(t.Context(), s)
		_, appended := engine.Append(t.Context(), log, name, messages(t, `{"type": "input", "x": 1}`))
		_, forked := journal.Fork(t.Context(), log, "c", 0, name)
		for _, err := range []error{ran, appended, forked} {
			if err == nil || !strings.Contains(err.Error(), "is no name for a context") {
				t.Errorf("%q: %v", name, err)
			}
		}
	}
}

// TestContextNamedAsAFolder_StaysReadable: a log of an older obelus may have one.
func TestContextNamedAsAFolder_StaysReadable(t *testing.T) {
	for kind, log := range logs(t) {
		r := newRunner(log, map[string]activity{"value": value})
		if _, err := r.Run(t.Context(), start(t, `[{"_tool": "value", "value": 1, "_outputPath": "†state.a"}]`)); err != nil {
			t.Fatal(err)
		}
		b := store.Batch{Context: "..", ExpectSeq: store.AnySeq, Create: &store.Origin{}}
		for m, err := range log.Messages(t.Context(), store.Filter{Context: "c"}) {
			if err != nil {
				t.Fatal(err)
			}
			b.Messages = append(b.Messages, *m)
		}
		for e, err := range log.Journal(t.Context(), store.JournalFilter{Context: "c"}) {
			if err != nil {
				t.Fatal(err)
			}
			b.Journal = append(b.Journal, e)
		}
		if _, err := log.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		records, err := journal.In(log, "..").Records(t.Context())
		if err != nil || len(records) != 1 || records[0].Status != journal.Done {
			t.Errorf("%s: %v, %v", kind, records, err)
		}
		if last, err := journal.In(log, "..").LastRun(t.Context()); err != nil || last.Status != journal.RunDone {
			t.Errorf("%s: %v, %v", kind, last, err)
		}
		if _, err := journal.Fork(t.Context(), log, "..", 0, "copy"); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// TestRun_EmptyContextName: to a log an empty name is that of all contexts.
func TestRun_EmptyContextName(t *testing.T) {
	log := memory.New()
	r := newRunner(log, map[string]activity{"value": value})
	if _, err := r.Run(t.Context(), start(t, `[{"_tool": "value", "value": 1}]`)); err != nil {
		t.Fatal(err)
	}
	errs := map[string]error{"decide": r.Decide(t.Context(), journal.Decision{Call: "1.1"}), "cancel": engine.Cancel(t.Context(), log, "", journal.Who{})}
	_, errs["last run"] = journal.In(log, "").LastRun(t.Context())
	_, errs["records"] = journal.In(log, "").Records(t.Context())
	_, errs["holds"] = journal.In(log, "").Holds(t.Context())
	_, errs["held call"] = journal.In(log, "").HeldCall(t.Context(), "1.1")
	_, errs["lazy"] = journal.In(log, "").Lazy(t.Context())
	_, errs["release"] = (&engine.Runner{Log: log}).DecidePlan(t.Context(), journal.PlanDecision{Context: ""})
	_, errs["stands"] = engine.ReadOutcome(t.Context(), log, "")
	_, errs["woken"] = journal.In(log, "").HasInput(t.Context())
	_, errs["root plan"] = journal.In(log, "").RootPlan(t.Context())
	_, errs["resume"] = r.Resume(t.Context(), engine.Resume{})
	_, errs["replay"] = replay.Run(t.Context(), r, "", nil)
	_, errs["rounds"] = journal.ReadHistory(t.Context(), r.Log, "")
	for what, err := range errs {
		if err == nil || !strings.Contains(err.Error(), `"" is no name for a context`) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestGiven_Counts: a value that is there counts without a word that it is; what
// can't count is refused.
func TestGiven_Counts(t *testing.T) {
	log := memory.New()
	r := newRunner(log, map[string]activity{"value": value})
	s := engine.Start{Context: "c", Request: &plan.Request{Output: store.Some("†input.n")}, Input: store.Some(map[string]any{"n": 7})}
	outcome, err := r.Run(t.Context(), s)
	if err != nil || fmt.Sprint(outcome.Output) != "7" {
		t.Errorf("%+v, %v", outcome, err)
	}
	for want, again := range map[string]engine.Resume{
		"no call that they are for": {Context: "c", Set: map[string]any{"n": 8}},
		"call 1.1 is named twice":   {Context: "c", Retry: []string{"1.1"}, Skip: []string{"1.1"}},
		"call 1.2 is named twice":   {Context: "c", From: "1.2", Retry: []string{"1.2"}},
		"call 1.3 is named twice":   {Context: "c", Skip: []string{"1.3", "1.4", "1.3"}},
	} {
		if _, err := r.Resume(t.Context(), again); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, not %q", err, want)
		}
	}
}

// TestClock_DatesEverything: what a run appends has the dates of its clock, whatever it is.
func TestClock_DatesEverything(t *testing.T) {
	now := time.Date(2020, 2, 29, 12, 0, 0, 0, time.UTC)
	for kind, log := range logs(t) {
		r := newRunner(log, map[string]activity{"value": value})
		r.Now = func() time.Time { return now }
		s := start(t, `[{"_tool": "value", "value": "†input.b", "_outputPath": "†state.b"}]`)
		s.Request.Context = messages(t, `{"type": "state", "a": 1}`)
		s.Input = store.Some(map[string]any{"b": 2})
		if outcome, err := r.Run(t.Context(), s); err != nil || outcome.Status != journal.RunDone {
			t.Fatal(outcome, err)
		}
		count, entries := 0, 0
		for m, err := range log.Messages(t.Context(), store.Filter{Context: "c"}) {
			if count++; err != nil || !m.Date.Equal(now) {
				t.Errorf("%s: message %d is of %s: %v", kind, m.Seq, m.Date, err)
			}
		}
		for e, err := range log.Journal(t.Context(), store.JournalFilter{Context: "c"}) {
			if entries++; err != nil || !e.Date.Equal(now) {
				t.Errorf("%s: entry %d, %s, is of %s: %v", kind, e.N, e.Event, e.Date, err)
			}
		}
		if count != 4 || entries < 4 {
			t.Errorf("%s: %d messages, %d entries", kind, count, entries)
		}
	}
}
