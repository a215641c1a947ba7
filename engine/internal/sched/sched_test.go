package sched

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// TestPhases_DiagramOfThePage: the diagram in the package's page is the table of transitions.
func TestPhases_DiagramOfThePage(t *testing.T) {
	page, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	var shown []string
	for line := range strings.Lines(string(page)) {
		if strings.Contains(line, "-->") {
			shown = append(shown, strings.Join(strings.Fields(strings.TrimPrefix(line, "//")), " "))
		}
	}
	var wants []string
	for _, x := range transitions {
		wants = append(wants, fmt.Sprintf("%s -- %s --> %s", x.from, x.on, x.to))
	}
	if !slices.Equal(shown, wants) {
		t.Errorf("doc.go shows\n%s\nand the table has\n%s", strings.Join(shown, "\n"), strings.Join(wants, "\n"))
	}
}

// TestPhases_OtherEventsAreRefused: an event that does not happen in a phase is never taken.
func TestPhases_OtherEventsAreRefused(t *testing.T) {
	for from := range phases {
		for on := range eventKinds {
			known := slices.ContainsFunc(transitions, func(x transition) bool { return x.from == from && x.on == on })
			func() {
				defer func() {
					if refused := recover() != nil; refused == known {
						t.Errorf("%s in phase %s: refused is %t", on, from, refused)
					}
				}()
				from.after(on, "1.1")
			}()
		}
	}
}

// world is a context and the calls of one tick, without a log, a goroutine or a clock.
type world struct {
	t      testing.TB
	state  *State
	values map[string]any // by path
	seq    int64
	now    time.Duration
}

func newWorld(t testing.TB, parallel int, held string, limits map[string]int, calls ...string) *world {
	t.Helper()
	registry := plan.NewRegistry()
	request := &plan.Request{}
	for _, text := range calls {
		call := map[string]any{}
		for _, field := range strings.Fields(text) {
			name, value, ok := strings.Cut(field, "=")
			if !ok {
				name, value = "_tool", field
			}
			call[name] = strings.ReplaceAll(value, "_", " ")
		}
		name := call["_tool"].(string)
		tool, err := plan.NewTool(name, map[string]any{})
		if err != nil {
			t.Fatal(err)
		}
		registry.Tools[name] = tool
		nothing := plan.ActivityFunc(func(context.Context, plan.Invocation) (plan.Result, error) { return plan.Result{}, nil })
		registry.Activities[name] = &plan.Registered{Activity: nothing, Concurrency: limits[name]}
		request.Calls = append(request.Calls, plan.Source{Call: call})
	}
	request, err := request.Normalize()
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.CompileRequest(request, registry, plan.NothingExists)
	if err != nil {
		t.Fatal(err)
	}
	policy, err := plan.ParsePolicy(cmp.Or(held, "never"))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, values: map[string]any{}}
	w.state = New(Config{Plan: p, Approve: policy, Parallel: parallel}, func(i int) journal.Record {
		c := p.Calls[i]
		return journal.Record{Call: journal.CallID(1, c.Position), Tick: 1, Position: c.Position, Tool: c.Tool, Status: journal.Blocked, Unstored: c.FireAndForget()}
	})
	w.state.Restore()
	w.state.Begin(true)
	return w
}

func (w *world) Resolve(_ int, path store.Path, _ string) (store.Resolved, error) {
	v, ok := w.values[path.String()]
	return store.Resolved{Value: v, Exists: ok}, nil
}

func (w *world) Grant(int, map[string]int64) (map[string]any, error) { return nil, nil }

func (w *world) Now() time.Time { return time.Unix(0, 0) }

func (w *world) CheckMethod(int, store.Path) error { return nil }

func (w *world) Explain(_ int, err error) error { return err }

// advance evaluates calls until none can begin.
func (w *world) advance() {
	w.t.Helper()
	for {
		i, ok := w.state.Next()
		if !ok {
			return
		}
		w.state.Dequeue(i)
		d, err := w.state.Evaluate(w.t.Context(), i, w)
		if err != nil {
			w.t.Fatal(err)
		}
		w.seq++
		switch c := w.state.Change(i); d.Action {
		case Start:
			c.Record.At = w.seq
			w.state.Apply(Event{Kind: Started, Call: i})
		case Retry:
			w.state.Apply(Event{Kind: Started, Call: i})
		case Hold:
			c.Record.At, c.Record.Hold = w.seq, &journal.Hold{}
			w.state.Apply(Event{Kind: HeldBack, Call: i})
		case Wait:
			c.Record.WaitingOn = d.WaitsFor
			w.state.Apply(Event{Kind: Missing, Call: i})
		case Skip:
			c.Record.Reason = d.Reason
			w.state.Apply(Event{Kind: Finished, Call: i, Status: journal.Skipped})
		case Reject, Fail:
			w.end(i, d.Err)
		}
	}
}

// end settles a call: its last alternative takes a failure.
func (w *world) end(i int, err error) {
	c, out := w.state.Change(i), w.state.Plan.Calls[i].Output
	status := journal.Done
	switch {
	case err != nil && (out == nil || len(out.Alternatives) < 2):
		status = journal.Failed
	case out != nil:
		paths := out.Alternatives[0]
		if err != nil {
			paths = out.Alternatives[len(out.Alternatives)-1]
		}
		c.Written = paths
		for _, path := range paths {
			w.values[path.String()] = w.state.Plan.Calls[i].Tool
		}
	}
	w.state.Apply(Event{Kind: Finished, Call: i, Status: status})
}

// act has something happen, by name, to a call by its tool.
func (w *world) act(event string) {
	w.t.Helper()
	what, tool, _ := strings.Cut(event, " ")
	if what == "message" {
		w.values[tool] = "foreign"
		w.state.ApplyMessage(store.MustParsePath(tool))
		return
	}
	if what == "time" {
		w.now += time.Second
		w.state.ApplyTime(w.now)
		return
	}
	i := slices.IndexFunc(w.state.Plan.Calls, func(c *plan.Call) bool { return c.Tool == tool })
	switch what {
	case "done":
		w.end(i, nil)
	case "fails":
		w.end(i, errors.New("failed"))
	case "pauses":
		w.state.Apply(Event{Kind: AttemptFailed, Call: i, Due: w.now + time.Second})
	case "returns":
		w.state.Apply(Event{Kind: Returned, Call: i})
	case "cut":
		w.state.Apply(Event{Kind: Cut, Call: i, Status: journal.Interrupted})
	case "approved", "rejected":
		w.state.Apply(Event{Kind: Decided, Call: i, Hold: &journal.Hold{Decision: what, Reason: "no"}})
	case "delegate":
		w.state.Change(i).Record.Child = "inside"
		w.state.Apply(Event{Kind: Missing, Call: i})
	case "arrived":
		w.state.Apply(Event{Kind: Arrived, Call: i})
	default:
		w.t.Fatalf("what is %q?", event)
	}
}

// phases are the calls by their phases, as "a b running, c blocked".
func (w *world) phases() string {
	var order []Phase
	tools := map[Phase][]string{}
	for i, c := range w.state.Calls {
		if tools[c.Phase] == nil {
			order = append(order, c.Phase)
		}
		name := w.state.Plan.Calls[i].Tool
		if c.Record.Status == journal.Failed || c.Record.Status == journal.Skipped {
			name += "(" + string(c.Record.Status) + ")"
		}
		tools[c.Phase] = append(tools[c.Phase], name)
	}
	var all []string
	for _, p := range order {
		all = append(all, strings.Join(tools[p], " ")+" "+p.String())
	}
	return strings.Join(all, ", ")
}

// TestState_EventsInPhasesOut: what happens, and where the calls stand once all that can begin has.
func TestState_EventsInPhasesOut(t *testing.T) {
	type step struct{ event, phases string }
	for _, test := range []struct {
		name     string
		parallel int
		held     string
		limits   map[string]int
		calls    []string
		first    string
		steps    []step
	}{
		{
			name: "a reader waits for the writer", calls: []string{"b x=†state.a _outputPath=†state.b", "a _outputPath=†state.a"},
			first: "b blocked, a running",
			steps: []step{{"done a", "b running, a settled"}, {"done b", "b a settled"}},
		}, {
			name: "as many as there is room for", parallel: 2, calls: []string{"a", "b _outputPath=†state.b", "c _outputPath=†state.c", "d _outputPath=†state.d"},
			first: "a b c running, d queued", // a is fire-and-forget: it takes no room from others
			steps: []step{{"done c", "a b d running, c settled"}},
		}, {
			name: "an activity at its limit holds up no other", limits: map[string]int{"a": 1},
			calls: []string{"a _outputPath=†state.a", "a _outputPath=†state.b", "c _outputPath=†state.c"},
			first: "a c running, a parked",
			steps: []step{{"done a", "a settled, a c running"}},
		}, {
			name: "a writer waits until others have read", parallel: 1,
			calls: []string{"a _outputPath=†state.a", "b x=†state.a _outputPath=†state.b", "c _outputPath=†state.a"},
			first: "a running, b c blocked",
			steps: []step{{"done a", "a settled, b running, c queued"}, {"done b", "a b settled, c running"}},
		}, {
			name: "a branch that was not taken", calls: []string{"a _outputPath=†state.a_||_†error.a", "b x=†state.a _outputPath=†state.b", "c x=†error.a _outputPath=†state.c", "d x=†state.c _outputPath=†state.d"},
			first: "a running, b c d blocked",
			steps: []step{{"done a", "a c(skipped) d(skipped) settled, b running"}},
		}, {
			name: "a failure that nothing handles", calls: []string{"a _outputPath=†state.a", "b x=†state.a _outputPath=†state.b"},
			first: "a running, b blocked",
			steps: []step{{"fails a", "a(failed) b(skipped) settled"}},
		}, {
			name: "a value from outside", calls: []string{"a x=†input.x _outputPath=†state.a"},
			first: "a waiting",
			steps: []step{{"message †input.y", "a waiting"}, {"message †input.x", "a running"}},
		}, {
			name: "held and approved", held: "always", calls: []string{"a _outputPath=†state.a"},
			first: "a held",
			steps: []step{{"approved a", "a running"}, {"done a", "a settled"}},
		}, {
			name: "held and rejected", held: "always", calls: []string{"a _outputPath=†state.a_||_†error.a", "b x=†error.a _outputPath=†state.b"},
			first: "a held, b blocked",
			steps: []step{{"rejected a", "a settled, b held"}},
		}, {
			name: "a pause takes no room", parallel: 1, calls: []string{"a _outputPath=†state.a", "b _outputPath=†state.b"},
			first: "a running, b queued",
			steps: []step{{"pauses a", "a paused, b running"}, {"time", "a queued, b running"}, {"done b", "a running, b settled"}},
		}, {
			name: "a call that had not begun", parallel: 1, calls: []string{"a _outputPath=†state.a", "b _outputPath=†state.b"},
			first: "a running, b queued",
			steps: []step{{"returns a", "a running, b queued"}, {"cut a", "a stopped, b running"}},
		}, {
			name: "a retry that is due, and left to another run", limits: map[string]int{"a": 1},
			calls: []string{"a _outputPath=†state.a", "a _outputPath=†state.b"},
			first: "a running, a parked",
			steps: []step{{"pauses a", "a paused, a running"}, {"time", "a parked, a running"}, {"returns a", "a parked, a running"}},
		}, {
			name: "calls parked behind fire-and-forget ones that have no room", parallel: 2, limits: map[string]int{"a": 1},
			calls: []string{"b", "a _outputPath=†state.a", "a", "c", "d _outputPath=†state.d", "a x=†state.d _outputPath=†state.e"},
			first: "b a c d running, a parked, a blocked",
			steps: []step{{"done d", "b a c running, a a parked, d settled"}, {"done a", "b c a running, a d settled, a queued"}},
		}, {
			name: "a delegate that waits", calls: []string{"a _outputPath=†state.a"},
			first: "a running",
			steps: []step{{"delegate a", "a waiting"}, {"arrived a", "a running"}},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, cmp.Or(test.parallel, 8), test.held, test.limits, test.calls...)
			w.advance()
			if got := w.phases(); got != test.first {
				t.Fatalf("at first: %s; want %s", got, test.first)
			}
			for _, s := range test.steps {
				w.act(s.event)
				w.advance()
				if got := w.phases(); got != s.phases {
					t.Fatalf("after %q: %s; want %s", s.event, got, s.phases)
				}
			}
		})
	}
}

// TestQueue_Order: calls come by when they are due, then by place, in whatever order they were added.
func TestQueue_Order(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		var q queue
		var all []queuedCall
		for i := range r.IntN(40) {
			c := queuedCall{time.Duration(r.Int64N(5)), i}
			all = append(all, c)
		}
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, c := range all {
			q.push(c)
		}
		slices.SortFunc(all, func(a, b queuedCall) int {
			if a.before(b) {
				return -1
			}
			return 1
		})
		for _, want := range all {
			if got := q.pop(); got != want.call {
				t.Fatalf("call %d came before %d", got, want.call)
			}
		}
	}
}

// TestDecideEnd: how a run goes on once the calls of a tick have settled.
func TestDecideEnd(t *testing.T) {
	wrong := errors.New("nothing wrote †out")
	for name, test := range map[string]struct {
		given        error
		limit, asked int
		repeated     bool

		status    journal.RunStatus
		problem   string
		exhausted bool
	}{
		"as its calls tell":       {nil, 0, 0, false, journal.RunDone, "", false},
		"a problem fails it":      {wrong, 0, 0, false, journal.RunFailed, "nothing wrote †out", false},
		"asked again":             {wrong, 2, 1, false, journal.RunContinued, "", false},
		"asked too often":         {nil, 2, 2, false, journal.RunFailed, "the planner has been asked 2 times without giving an output: the setting ticks allows no more", true},
		"the last time":           {wrong, 2, 2, false, journal.RunFailed, "the planner has been asked 2 times without giving an output: the setting ticks allows no more; the last time: nothing wrote †out", true},
		"the same solution again": {wrong, 2, 1, true, journal.RunFailed, "the planner gave the same solution again after it had been refused: nothing wrote †out", false},
	} {
		status, problem, exhausted := DecideEnd(journal.RunDone, test.given, test.limit, test.asked, test.repeated)
		text := ""
		if problem != nil {
			text = problem.Error()
		}
		if status != test.status || text != test.problem || exhausted != test.exhausted {
			t.Errorf("%s: %s, %q, %t", name, status, text, exhausted)
		}
	}
}
