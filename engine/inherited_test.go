package engine_test

import (
	"context"
	"strings"
	"testing"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
	"obelus/store/memory"
)

// statusOf returns the status of a call of a context.
func statusOf(t *testing.T, log store.Log, name, call string) string {
	t.Helper()
	records, err := journal.In(log, name).Records(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if r.Call == call {
			return r.Outcome()
		}
	}
	return "absent"
}

// resumed resumes a context, and returns the status of its run.
func resumed(t *testing.T, r *engine.Runner, s engine.Resume) journal.RunStatus {
	t.Helper()
	outcome, err := r.Resume(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return outcome.Status
}

// TestFork_RerunsAreDecidedAnew: where a person had a call run again that has not settled since, it
// is in doubt in a fork, corrected or not, and one that had settled since stays as it is.
func TestFork_RerunsAreDecidedAnew(t *testing.T) {
	for name, does := range map[string]engine.Resume{
		"retried":               {Context: "f", Retry: []string{"1.1"}},
		"run again":             {Context: "f", From: "1.1"},
		"run again, as changed": {Context: "f", From: "1.1", Set: map[string]any{"value": 2}},
	} {
		overLogs(t, name, func(t *testing.T, log store.Log) {
			r, ran, _ := forked(t, log, `[{"_tool": "flaky", "value": 1, "_outputPath": "†a"}, {"_tool": "value", "value": "†b.late", "_outputPath": "†c"}]`)
			stopped, stop := context.WithCancel(t.Context())
			does.Begun = stop // before the call can begin
			if _, err := r.Resume(stopped, does); err != nil {
				t.Fatal(err)
			}
			if _, err := journal.Fork(t.Context(), log, "f", 0, "g"); err != nil {
				t.Fatal(err)
			}
			if status := statusOf(t, log, "g", "1.1"); status != "in-doubt" {
				t.Errorf("in the fork it is %s", status)
			}
			clear(ran.runs)
			if resumed(t, r, engine.Resume{Context: "g"}); ran.String() != "" {
				t.Errorf("it ran: %s", ran)
			}
			resumed(t, r, engine.Resume{Context: "f"})
			if ran.runs["f/1.1"] != 1 {
				t.Errorf("where it was decided it ran: %s", ran)
			}
			if _, err := journal.Fork(t.Context(), log, "f", 0, "h"); err != nil {
				t.Fatal(err)
			}
			if status := statusOf(t, log, "h", "1.1"); status != "failed" {
				t.Errorf("once it has settled it is %s in a fork", status)
			}
		})
	}
}

// TestFork_OfAnOlderVersion: a fork that began with a decision of its origin holds the call again as
// it is resumed, unless the call has settled there.
func TestFork_OfAnOlderVersion(t *testing.T) {
	overLogs(t, "approved", func(t *testing.T, log store.Log) {
		ran := &counter{}
		r := newRunner(log, map[string]activity{"pay": ran.of(value)})
		s := start(t, `[{"_tool": "pay", "value": 1, "_outputPath": "†a"}]`)
		s.Approve = plan.Policy{Tools: []string{"pay"}}
		if _, err := r.Run(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if err := r.Decide(t.Context(), journal.Decision{Context: "c", Call: "1.1", Arguments: map[string]any{"value": 9}}); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"f", "g"} {
			b := store.Batch{Context: name, ExpectSeq: store.AnySeq, Create: &store.Origin{Fork: "c", At: 1}, Journal: []store.Entry{{Event: "fork", Data: `{"from":"c","at":1}`}}}
			if _, err := log.Append(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
		if status := resumed(t, r, engine.Resume{Context: "f"}); status != journal.RunWaiting || ran.String() != "" {
			t.Errorf("it is %s, and has run %s", status, ran)
		}
		held, err := journal.In(log, "f").Holds(t.Context())
		if err != nil || len(held) != 1 || string(store.EncodeJSON(held[0].Hold.Arguments["value"])) != "1" {
			t.Errorf("held is %+v, %v", held, err)
		}
		if err := r.Decide(t.Context(), journal.Decision{Context: "f", Call: "1.1"}); err != nil {
			t.Error(err)
		}
		if status := resumed(t, r, engine.Resume{Context: "f"}); status != journal.RunDone || ran.runs["f/1.1"] != 1 {
			t.Errorf("it is %s, and has run %s", status, ran)
		}
	})
}

// TestFork_PlansOfAPlannerWaitAgain: where a lazy plan was released as its run was started, each of
// its planner's plans waits in a fork.
func TestFork_PlansOfAPlannerWaitAgain(t *testing.T) {
	log := memory.New()
	ran := &counter{}
	r := newRunner(log, map[string]activity{"value": ran.of(value)})
	request := &plan.Request{Mode: plan.ModeLazy, Planner: plan.PlannerFunc(func(_ context.Context, ask plan.Ask) (*plan.Solution, error) {
		if ask.Kinds["b"] != nil {
			return &plan.Solution{Output: "done"}, nil
		}
		path := "†a"
		if ask.Kinds["a"] != nil {
			path = "†b"
		}
		return &plan.Solution{Calls: []plan.Source{{Call: map[string]any{"_tool": "value", "value": 1, "_outputPath": path}}}}, nil
	})}
	request.SetMode(plan.ModeEager)
	outcome, err := r.Run(t.Context(), engine.Start{Context: "c", Request: request})
	expect(t, outcome, err, journal.RunDone)
	clear(ran.runs)
	if _, err := journal.Fork(t.Context(), log, "c", 1, "f"); err != nil {
		t.Fatal(err)
	}
	for releases := 0; ; releases++ {
		if status := resumed(t, r, engine.Resume{Context: "f", Request: request}); status == journal.RunDone {
			if releases != 2 {
				t.Errorf("it was released %d times", releases)
			}
			return
		}
		if len(ran.runs) != releases {
			t.Fatalf("after %d releases it has run %s", releases, ran)
		}
		if _, err := (&engine.Runner{Log: log}).DecidePlan(t.Context(), journal.PlanDecision{Context: "f"}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPolicy_With: two policies together hold what either holds.
func TestPolicy_With(t *testing.T) {
	for _, c := range [][3]string{{"never", "pay", "pay"}, {"pay", "never", "pay"}, {"pay,scopes", "pay,book", "book,pay,scopes"}, {"planned", "always", "planned,always"}} {
		a, err := plan.ParsePolicy(c[0])
		if err != nil {
			t.Fatal(err)
		}
		b, err := plan.ParsePolicy(c[1])
		if err != nil {
			t.Fatal(err)
		}
		if got := a.With(b).String(); !strings.EqualFold(got, c[2]) {
			t.Errorf("%s with %s is %s", c[0], c[1], got)
		}
	}
}
