package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"obelus/engine"
	"obelus/engine/plan"
	"obelus/store"
	"obelus/store/memory"
)

// keepingModel has the log keep each request: its first plan is refused.
type keepingModel struct {
	asked, planned int
}

func (m *keepingModel) keep(meter *plan.Meter, what string) {
	meter.Spend(plan.Usage{Model: "m", Requests: 1, Request: what})
	meter.Keep(store.NewExchange(what, `{"about":"`+what+`"}`, "answer to "+what, "", ""))
}

// ask is an activity that asks the model itself. Its first attempt fails.
func (m *keepingModel) ask(_ context.Context, in plan.Invocation) (plan.Result, error) {
	m.asked++
	m.keep(in.Models.Meter, fmt.Sprintf("attempt %d", m.asked))
	if m.asked == 1 {
		return plan.Result{}, plan.NewFailure("try again")
	}
	return plan.Result{Value: "yes"}, nil
}

func (m *keepingModel) Answer(context.Context, plan.Question) (any, error) {
	return nil, errors.New("no call is latent")
}

func (m *keepingModel) Propose(_ context.Context, p plan.Proposal) (*plan.Solution, error) {
	m.planned++
	m.keep(p.Meter, "plan")
	m.keep(p.Meter, "repair")
	switch m.planned {
	case 1:
		return &plan.Solution{Calls: []plan.Source{{Call: map[string]any{"_tool": "absent"}}}}, nil
	case 2:
		return &plan.Solution{Calls: []plan.Source{{Call: map[string]any{"_tool": "judge", "_outputPath": "†state.a"}}}}, nil
	}
	return &plan.Solution{Output: "†state.a"}, nil
}

// contested is a log in which another append comes in before each of the first few with exchanges.
type contested struct {
	store.Log
	left int
}

func (l *contested) Append(ctx context.Context, b store.Batch) (store.Appended, error) {
	for i := range b.Journal {
		if l.left > 0 && len(b.Journal[i].Exchanges) > 0 && b.ExpectSeq > 0 {
			l.left--
			foreign := store.Batch{Context: b.Context, ExpectSeq: store.AnySeq, Messages: []store.Message{{Type: store.TypeText, Data: store.Some("meanwhile")}}}
			if _, err := l.Log.Append(ctx, foreign); err != nil {
				return store.Appended{}, err
			}
			break
		}
	}
	return l.Log.Append(ctx, b)
}

// TestExchanges_WithTheirRecord holds that what a model keeps is in the log once, with the event that
// has its usage: of an attempt that failed, of one that did not, and of plans, also where other appends
// come in between.
func TestExchanges_WithTheirRecord(t *testing.T) {
	for _, conflicts := range []int{0, 3} {
		log := &contested{memory.New(), conflicts}
		m := &keepingModel{}
		r := newRunner(log, map[string]activity{"judge": m.ask})
		r.Registry.Model = m
		r.Registry.Activities["judge"].Retries, r.Registry.Activities["judge"].Backoff = 1, time.Millisecond
		outcome, err := r.Run(t.Context(), engine.Start{Context: "c", Request: &plan.Request{Planner: &plan.Planning{}}})
		if err != nil || outcome.Output != "yes" {
			t.Fatalf("%+v, %v", outcome, err)
		}
		if log.left > 0 {
			t.Errorf("%d appends of exchanges are missing", log.left)
		}
		var got []string
		for e, err := range log.Journal(t.Context(), store.JournalFilter{Context: "c"}) {
			if err != nil {
				t.Fatal(err)
			}
			kept, err := log.Exchanges(t.Context(), e.N)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range kept {
				if got = append(got, e.Event+" "+e.Call+": "+x.Answer); !strings.Contains(e.Data, `"requests":`) {
					t.Errorf("an exchange is with an event without usage: %s", e.Data)
				}
			}
		}
		want := "plan : answer to plan, plan : answer to repair, plan : answer to plan, plan : answer to repair, " +
			"running 2.1: answer to attempt 1, done 2.1: answer to attempt 2, plan : answer to plan, plan : answer to repair"
		if all := strings.Join(got, ", "); all != want {
			t.Errorf("after %d conflicts: %s", conflicts, all)
		}
	}
}
